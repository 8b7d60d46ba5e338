package soft

import (
	"context"
	"testing"

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
	v.docs[docName{"i", "4"}] = map[string]map[string]int64{"body": {"wolf": 1}}
	wolf := []expand.Hit{{Index: "i", ID: "4", SeqNo: 4, PrimaryTerm: 1, Version: 1}}
	r := newReranker(t, v)
	want, err := r.Scores(t.Context(), by(fields), hits)
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.open(fields, hits)
	if err != nil {
		t.Fatal(err)
	}
	if known, err := w.recall(t.Context()); !known || err != nil {
		t.Fatalf("remembered: %v, %v", known, err)
	}
	met := false
	ctx := &meanwhileContext{t.Context(), func() {
		_, err := r.Scores(t.Context(), by(fields), wolf)
		met = err == nil
	}}
	got, err := w.scores(ctx, new(scratch), new(expand.Rerank))
	if err != nil || !met {
		t.Fatalf("%v; the other search was made: %t", err, met)
	}
	checkScores(t, got, softs(want)...)
}
