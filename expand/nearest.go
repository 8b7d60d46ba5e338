package expand

import (
	"cmp"
	"context"
	"slices"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// mostNear bounds the words of a search that are looked up, some ms each.
const mostNear = 8

// nearWords gives the words that no document has, and that have no row, the
// rows of the nearest known words. Each clause has its first word looked for
// before another one has its second.
func (a *asker) nearWords(ctx context.Context, targets []*target) error {
	if !a.s.profile.NearestWords {
		return nil
	}
	if err := each(targets, func(t *target) error { return a.findUnknown(ctx, t) }); err != nil {
		return failed(StageStatistics, err)
	}
	type word struct {
		*target
		text string
		turn int // in its clause
	}
	var words []word
	turns := map[*form.Clause]int{}
	for _, t := range targets {
		for _, text := range t.unknown {
			words = append(words, word{t, text, turns[t.clause]})
			turns[t.clause]++
		}
	}
	slices.SortStableFunc(words, func(a, b word) int { return cmp.Compare(a.turn, b.turn) })
	type question struct {
		of   Rows
		text string
	}
	type near struct {
		known      []string
		similarity float32
		first      int // of their rows, among those of the same matrix
	}
	nearest, known, rows := map[question]near{}, map[Rows][]string{}, map[Rows][]simmatrix.Row{}
	for _, w := range words {
		q := question{w.rows, w.text}
		if _, asked := nearest[q]; asked || len(nearest) == mostNear {
			continue
		}
		if err := ctx.Err(); err != nil { // nobody waits any more
			return failed(StageRows, err)
		}
		n := near{first: len(known[q.of])}
		n.known, n.similarity = q.of.Nearest(q.text)
		nearest[q], known[q.of] = n, append(known[q.of], n.known...)
	}
	for of, all := range known {
		rows[of] = make([]simmatrix.Row, len(all))
		if err := of.Rows(ctx, all, rows[of]); err != nil {
			return failed(StageRows, err)
		}
	}
	for _, w := range words {
		n := nearest[question{w.rows, w.text}]
		// Where a clause counts words, a part of a compound would count as all of it.
		if len(n.known) == 0 || len(n.known) > 1 && w.clause.Parsed.Counted() || slices.ContainsFunc(n.known, w.Terms.Has) {
			continue
		}
		o := &w.Terms.Origins[w.Terms.OriginOf(w.text)]
		o.TakeNearest(n.known, rows[w.rows][n.first:], n.similarity)
	}
	return nil
}

// findUnknown sets the words of a target that have no row and that no field of
// its clause has.
func (a *asker) findUnknown(ctx context.Context, t *target) error {
	if t.clause.Fuzzy { // the engine looks for words that are spelled alike itself
		return nil
	}
	t.Terms.Expanded(func(o *terms.Origin) {
		if o.Unknown() {
			t.unknown = append(t.unknown, o.Term)
		}
	})
	for _, f := range t.clause.Fields {
		if len(t.unknown) == 0 || f.Terms == nil && !t.clause.TermCentric { // others are no texts
			continue
		}
		docFreqs := make([]int64, len(t.unknown))
		if _, err := a.cluster.Statistics(ctx, a.s.indices, f.Name, t.unknown, docFreqs); err != nil {
			return err
		}
		var absent []string
		for k, text := range t.unknown {
			if docFreqs[k] == 0 {
				absent = append(absent, text)
			}
		}
		t.unknown = absent
	}
	return nil
}
