package combine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// A Finding has the entries of one kind that were found in documents.
type Finding struct {
	Kind    string  // in the plural, such as acronyms
	Cosine  float64 // how alike documents must use both sides, see [Weigh]; 0 to ask for nothing
	Unlike  string  // says that they do not
	Entries []FoundEntry
}

// A FoundEntry says that one term or expression stands for another.
type FoundEntry struct {
	Term, For string // terms of a matrix
	Both      bool   // each stands for the other
	Docs      int    // in how many documents it was found
	LeftOut   string // why it is not added, "" to add it
	Note      string // where it comes from
	// TermForm and ForForm are how documents write Term and For, in lower case; ""
	// where the matrix says it.
	TermForm, ForForm string
}

// AddFound adds to a matrix of documents what was found in the same documents,
// with similarity 0.5, and leaves out entries whose sides the documents do not
// use alike, and those that have a reason for it. docFreq returns a word's
// document frequency. The result's Params have the tally of each finding, see
// [simmatrix.Tallies].
func AddFound(m *simmatrix.Matrix, docFreq func(word string) uint32, findings ...Finding) (*simmatrix.Matrix, error) {
	g := newWeigher(m)
	g.docFreq = docFreq
	for _, f := range findings {
		from := m.Table()
		p := plan{from: from, changes: map[string]map[string]uint16{}}
		forms := map[string]string{}
		tally := simmatrix.Tally{Kind: f.Kind}
		slices.SortStableFunc(f.Entries, func(a, b FoundEntry) int { return cmp.Compare(b.Docs, a.Docs) })
		for _, e := range f.Entries {
			why, example := e.LeftOut, cmp.Or(e.ForForm, m.Written(e.For))+" – "+cmp.Or(e.TermForm, m.Written(e.Term))
			if why == "" && f.Cosine > 0 && g.cosine(slices.Collect(simmatrix.WordsOf(e.For)), slices.Collect(simmatrix.WordsOf(e.Term))) < f.Cosine {
				why = f.Unlike
			}
			if why != "" {
				tally.LeaveOut(why, example)
				continue
			}
			tally.Keep(example)
			p.set(direction{e.For, e.Term}, simmatrix.ToUnits(weighedSimilarity))
			if e.Both {
				p.set(direction{e.Term, e.For}, simmatrix.ToUnits(weighedSimilarity))
			}
			for term, form := range map[string]string{e.For: e.ForForm, e.Term: e.TermForm} {
				if simmatrix.IsExpression(term) && forms[term] == "" {
					forms[term] = simmatrix.WithNote(form, e.Note)
				}
			}
		}
		p.settle()
		origins, own := from.Meta.Origins, uint8(0)
		if origins != nil && p.counts.Set > 0 {
			origins, own = append(slices.Clip(origins), f.Kind), 1<<len(origins)
		}
		params := settings.With(from.Meta.Params, "", nil)
		tally.AddTo(params)
		out := p.table(origins, own, params)
		for i, term := range out.Terms {
			if out.DocFreqs[i] == 0 && !simmatrix.IsExpression(term) {
				out.DocFreqs[i] = docFreq(term)
			}
		}
		out.TakeForms(func(i int) string { return cmp.Or(forms[out.Terms[i]], from.Form(out.Terms[i])) })
		var err error
		if m, err = out.Matrix(); err != nil {
			return nil, fmt.Errorf("%s found in documents: %w", f.Kind, err)
		}
	}
	return m, nil
}
