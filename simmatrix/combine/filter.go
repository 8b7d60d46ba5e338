package combine

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// leftOut is the number of a term that is left out.
const leftOut = math.MaxUint32

// A TermFilter selects the terms of a matrix; the zero value selects all.
type TermFilter struct {
	MinDocFreq uint32         // smallest document frequency
	Drop       *regexp.Regexp // may be nil; drop terms that it matches
}

// Match reports whether f keeps a term in docFreq of docs documents. If docs is
// 0, unknown, a docFreq of 0 is not too small.
func (f *TermFilter) Match(term string, docFreq uint32, docs uint64) bool {
	if docFreq < f.MinDocFreq && (docFreq > 0 || docs > 0) && !simmatrix.IsExpression(term) { // of which nobody counts the documents
		return false
	}
	return f.Drop == nil || !f.Drop.MatchString(term)
}

// Apply returns m without the rows and columns of terms that do not match, and
// their number. The result's Params are those of m and the settings, prefixed
// with "filter_". It returns [simmatrix.ErrNoVocabulary] if no term matches.
func (f *TermFilter) Apply(matrix *simmatrix.Matrix) (filtered *simmatrix.Matrix, dropped int, err error) {
	m := matrix.Table()
	out := &simmatrix.Table{Meta: m.Meta, Entries: simmatrix.NewEntries(len(m.Terms), 0, m.Origins != nil)}
	out.Meta.Params = settings.With(m.Meta.Params, "filter_", map[string]string{"min_doc_freq": strconv.FormatUint(uint64(f.MinDocFreq), 10)})
	if f.Drop != nil {
		out.Meta.Params["filter_drop"] = f.Drop.String()
	}
	index := make([]uint32, len(m.Terms)) // by term: its number in out
	for i, term := range m.Terms {
		index[i] = leftOut
		if f.Match(term, m.DocFreqs[i], m.Meta.Docs) {
			index[i] = uint32(min(len(out.Terms), math.MaxInt32)) // at most MaxTerms
			out.Terms = append(out.Terms, term)
			out.DocFreqs = append(out.DocFreqs, m.DocFreqs[i])
		}
	}
	dropped = len(m.Terms) - len(out.Terms)
	if len(out.Terms) == 0 && dropped > 0 {
		return nil, dropped, fmt.Errorf("%w: the filter matches none of %d terms", simmatrix.ErrNoVocabulary, dropped)
	}
	for i := range m.Terms {
		if index[i] == leftOut {
			continue
		}
		cols, sims := m.Row(i)
		for k, col := range cols {
			if index[col] != leftOut {
				out.AppendEntry(simmatrix.Entry{Col: index[col], Units: sims[k], Origins: m.OriginsAt(i, k)})
			}
		}
		out.Offsets = append(out.Offsets, len(out.Cols))
	}
	out.TakeForms(func(i int) string { return m.Form(out.Terms[i]) })
	filtered, err = out.Matrix()
	return filtered, dropped, err
}
