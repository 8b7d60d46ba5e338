package soft

import (
	"context"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
)

// meanwhileContext does something once, when it is asked whether it has ended.
type meanwhileContext struct {
	context.Context //nolint:containedctx // It is one.
	do              func()
}

func (c *meanwhileContext) Err() error {
	if do := c.do; do != nil {
		c.do = nil
		do()
	}
	return c.Context.Err()
}

// While a search computes, another may give numbers to terms that had none.
func TestAnotherSearchMayMeetNewTermsMeanwhile(t *testing.T) {
	v, fields, hits := pets(t)
	matrixIn(fields).set(t, "wolf", 5, map[string]float64{"cat": 0.5})
	wolf := v.add("4", map[string]map[string]int64{"body": {"wolf": 1}})
	wolf.SeqNo = 4
	r := newReranker(t, v)
	want, err := r.Scores(t.Context(), by(fields), hits)
	check.OK(t, err)
	w := recalled(t, r, fields, hits)
	met := false
	ctx := &meanwhileContext{t.Context(), func() {
		met = scored(t, r, fields, []expand.Hit{wolf}) == nil
	}}
	got, err := w.scores(ctx, new(scratch), new(expand.Rerank))
	check.Must(t, err == nil && met, "%v; the other search was made: %t", err, met)
	checkScores(t, got, softs(want)...)
}
