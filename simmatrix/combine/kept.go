package combine

import (
	"slices"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// TallyThesaurus counts which entries of a thesaurus with an expression, or
// exact ones, are left in what became of it. termsOf returns the terms of a
// word or an expression of words. Entries that go both ways count once.
func TallyThesaurus(thesaurus, left *simmatrix.Matrix, termsOf func(word string) []string) (exact, similar simmatrix.Tally) {
	exact.Kind, similar.Kind = "exact synonyms", "similar expressions"
	t := thesaurus.Table()
	m := left.Table()
	has := func(terms, others []string) bool {
		return slices.ContainsFunc(terms, func(term string) bool {
			return slices.ContainsFunc(others, func(other string) bool {
				there, _, _ := entryOf(m, direction{term, other})
				return there
			})
		})
	}
	several := func(word string, terms []string) bool {
		return simmatrix.IsExpression(word) || slices.ContainsFunc(terms, simmatrix.IsExpression)
	}
	for i, word := range t.Terms {
		cols, sims := t.Row(i)
		terms := termsOf(word)
		for k, col := range cols {
			others := termsOf(t.Terms[col])
			tally := &similar
			if sims[k] == simmatrix.UnitsOfOne {
				tally = &exact
			} else if !several(word, terms) && !several(t.Terms[col], others) {
				continue
			}
			_, both := t.Find(int(col), uint32(i), sims[k])
			if both && int(col) < i {
				continue
			}
			// Maybe only the other way is left, as for words of no document.
			kept := has(terms, others) || both && has(others, terms)
			example := t.Written(word) + " – " + t.Written(t.Terms[col])
			if kept {
				tally.Keep(example)
			} else {
				tally.LeaveOut("", example)
			}
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
