package combine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A Finding has the entries of one kind that were found in documents.
type Finding struct {
	Kind    string  // in the plural, such as acronyms
	Cosine  float64 // how alike documents must use both sides, see [Weigh]; 0 to ask for nothing
	Entries []FoundEntry
	LeftOut int // entries that were left out before
}

// A FoundEntry says that one term or expression stands for another.
type FoundEntry struct {
	Term, For string // terms of a matrix
	Both      bool   // each stands for the other
	Docs      int    // in how many documents it was found
	Form      string // how documents write what is an expression, in lower case
	Note      string // where it comes from
}

// written returns how people write one of the sides.
func (e *FoundEntry) written(term string) string {
	if simmatrix.IsExpression(term) && e.Form != "" {
		return e.Form
	}
	return simmatrix.Spelled(term)
}

// AddFound adds to a matrix of documents what was found in the same documents,
// with similarity 0.5, and leaves out entries whose sides the documents do not
// use alike. docFreq returns a word's document frequency. The
// result's Params have the tally of each finding, see [simmatrix.Tallies].
func AddFound(m *simmatrix.Matrix, docFreq func(word string) uint32, findings ...Finding) (*simmatrix.Matrix, error) {
	g := newWeigher(m)
	g.docFreq = docFreq
	old := m.Table()
	out := &simmatrix.Table{Meta: old.Meta}
	out.Meta.Params, out.Meta.Origins = maps.Clone(old.Meta.Params), slices.Clone(old.Meta.Origins)
	if out.Meta.Params == nil {
		out.Meta.Params = map[string]string{}
	}
	added := map[string]map[string]uint8{} // their origins, by row and neighbor
	forms := map[string]string{}
	add := func(term, neighbor string, origins uint8) {
		if added[term] == nil {
			added[term] = map[string]uint8{}
		}
		added[term][neighbor] |= origins
	}
	for _, f := range findings {
		var origins uint8
		tally := simmatrix.Tally{Kind: f.Kind, LeftOut: f.LeftOut}
		slices.SortStableFunc(f.Entries, func(a, b FoundEntry) int { return cmp.Compare(b.Docs, a.Docs) })
		for _, e := range f.Entries {
			kept := f.Cosine == 0 || g.cosine(slices.Collect(simmatrix.WordsOf(e.For)), slices.Collect(simmatrix.WordsOf(e.Term))) >= f.Cosine
			tally.Count(kept, e.written(e.For)+" – "+e.written(e.Term))
			if !kept {
				continue
			}
			if old.Origins != nil && origins == 0 {
				origins = 1 << len(out.Meta.Origins)
				out.Meta.Origins = append(out.Meta.Origins, f.Kind)
			}
			add(e.For, e.Term, origins)
			if e.Both {
				add(e.Term, e.For, origins)
			}
			for _, term := range []string{e.For, e.Term} {
				if simmatrix.IsExpression(term) && forms[term] == "" {
					forms[term] = simmatrix.WithNote(e.Form, e.Note)
				}
			}
		}
		tally.AddTo(out.Meta.Params)
	}
	if len(added) > 0 {
		appendFound(out, old, added, docFreq)
		out.TakeForms(func(i int) string { return cmp.Or(forms[out.Terms[i]], old.Form(out.Terms[i])) })
	} else {
		out.Terms, out.DocFreqs, out.Forms, out.Entries = old.Terms, old.DocFreqs, old.Forms, old.Entries
	}
	m, err := out.Matrix()
	if err != nil {
		return nil, fmt.Errorf("entries found in documents: %w", err)
	}
	return m, nil
}

// appendFound sets the terms and entries of out to those of old and the added
// ones.
func appendFound(out, old *simmatrix.Table, added map[string]map[string]uint8, docFreq func(string) uint32) {
	terms := slices.Clone(old.Terms)
	for term, row := range added {
		terms = slices.AppendSeq(append(terms, term), maps.Keys(row))
	}
	slices.Sort(terms)
	out.Terms = slices.Compact(terms)
	out.DocFreqs = make([]uint32, len(out.Terms))
	from, to := make([]int, len(out.Terms)), make([]uint32, 0, len(old.Terms)) // rows of old by those of out, -1 for none, and back
	for i, term := range out.Terms {
		from[i] = -1
		if k := len(to); k < len(old.Terms) && old.Terms[k] == term {
			from[i], out.DocFreqs[i] = k, old.DocFreqs[k]
			to = append(to, uint32(i))
		} else if !simmatrix.IsExpression(term) {
			out.DocFreqs[i] = docFreq(term)
		}
	}
	out.Entries = simmatrix.NewEntries(len(out.Terms), len(old.Cols)+len(added), old.Origins != nil)
	var row []simmatrix.Entry
	for i, term := range out.Terms {
		row = row[:0]
		if k := from[i]; k >= 0 {
			cols, sims := old.Row(k)
			for at, col := range cols {
				row = append(row, simmatrix.Entry{Col: to[col], Units: sims[at], Origins: old.OriginsAt(k, at)})
			}
		}
		for neighbor, origins := range added[term] {
			col, _ := slices.BinarySearch(out.Terms, neighbor)
			n := simmatrix.Entry{Col: uint32(col), Units: simmatrix.ToUnits(weighedSimilarity), Origins: origins} //nolint:gosec // at most MaxTerms
			if k := slices.IndexFunc(row, func(e simmatrix.Entry) bool { return e.Col == n.Col }); k < 0 {
				row = append(row, n)
			} else {
				row[k].Units, row[k].Origins = max(row[k].Units, n.Units), row[k].Origins|n.Origins
			}
		}
		out.AppendRow(row)
	}
}
