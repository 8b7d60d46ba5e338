package combine

import (
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// TallyThesaurus counts which entries of a thesaurus with an expression, or
// exact ones, are left in what became of it. termOf returns the term of a word
// or an expression of words, "" for none. Entries that go both ways count once.
func TallyThesaurus(thesaurus, left *simmatrix.Matrix, termOf func(word string) string) (exact, similar simmatrix.Tally) {
	exact.Kind, similar.Kind = "exact synonyms", "similar expressions"
	t := thesaurus.Table()
	neighbors := map[string]bool{} // those left, of one term
	for i, word := range t.Terms {
		cols, sims := t.Row(i)
		if len(cols) == 0 {
			continue
		}
		clear(neighbors)
		term := termOf(word)
		for n := range left.Row(term).All() {
			neighbors[n.Term] = true
		}
		for k, col := range cols {
			other := t.Terms[col]
			tally := &similar
			if sims[k] == simmatrix.UnitsOfOne {
				tally = &exact
			} else if !simmatrix.IsExpression(word) && !simmatrix.IsExpression(other) {
				continue
			}
			_, both := t.Find(int(col), uint32(i), sims[k])
			if both && int(col) < i {
				continue
			}
			kept := neighbors[termOf(other)]
			if !kept && both { // maybe the other way, as for words of no document
				for n := range left.Row(termOf(other)).All() {
					kept = kept || n.Term == term
				}
			}
			tally.Count(kept, simmatrix.Spelled(word)+" – "+simmatrix.Spelled(other))
		}
	}
	return exact, similar
}

// WithTallies returns a matrix with tallies in its Params.
func WithTallies(m *simmatrix.Matrix, tallies ...simmatrix.Tally) (*simmatrix.Matrix, error) {
	t := *m.Table()
	t.Meta.Params = settings.With(t.Meta.Params, "", nil)
	for k := range tallies {
		tallies[k].AddTo(t.Meta.Params)
	}
	return t.Matrix()
}
