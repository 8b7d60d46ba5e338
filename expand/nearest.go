package expand

import (
	"context"
	"slices"

	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// mostNear is how many words of a clause the nearest known ones are looked
// for, which takes up to a millisecond each.
const mostNear = 8

// nearWords gives the words that no document has, and that have no row, the
// rows of the nearest known words.
func (a bm25) nearWords(ctx context.Context, targets []*target) error {
	if !a.s.profile.NearestWords {
		return nil
	}
	unknown := func(t *target) bool {
		return slices.ContainsFunc(t.Terms.Origins, func(o terms.Origin) bool { return o.Unknown() })
	}
	if !slices.ContainsFunc(targets, unknown) {
		return nil
	}
	targets = slices.DeleteFunc(slices.Clone(targets), func(t *target) bool { return !unknown(t) })
	return each(targets, func(t *target) error { return a.nearWordsOf(ctx, t) })
}

func (a bm25) nearWordsOf(ctx context.Context, t *target) error {
	var origins []*terms.Origin
	var words []string
	for i := range t.Terms.Origins {
		if o := &t.Terms.Origins[i]; o.Unknown() {
			origins, words = append(origins, o), append(words, o.Term)
		}
	}
	var fields []string // a word is known if one of them has it
	for _, f := range t.clause.Fields {
		if f.Terms != nil || t.clause.TermCentric { // others are no texts
			fields = append(fields, f.Name)
		}
	}
	had := make([]int64, len(words))
	for _, field := range fields {
		docFreqs := make([]int64, len(words))
		if _, err := a.cluster.Statistics(ctx, a.s.indices, field, words, docFreqs); err != nil {
			return failed(StageStatistics, err)
		}
		for k, df := range docFreqs {
			had[k] += df
		}
	}
	looked := 0
	for k, o := range origins {
		if had[k] > 0 || looked == mostNear {
			continue
		}
		looked++
		known, similarity := t.rows.Nearest(o.Term)
		if len(known) == 0 || slices.ContainsFunc(known, t.Terms.Has) {
			continue
		}
		rows := make([]simmatrix.Row, len(known))
		if err := t.rows.Rows(ctx, known, rows); err != nil {
			return failed(StageRows, err)
		}
		o.TakeNearest(known, rows, similarity)
	}
	return nil
}
