package expand

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/reason"
)

// bindings are what is bound to fields.
type bindings map[string]struct {
	Bound
	err error
}

func (b bindings) Pin() Pinned { return b }

func (b bindings) For(_ context.Context, _ esclient.Indices, field string) (Bound, error) {
	return b[field].Bound, b[field].err
}

func TestFieldsWithoutWordsAreLeftAloneUnlessTheyAreNamed(t *testing.T) {
	c, m := rental(t)
	c.notWords = map[string]string{"prefixes": "filter edge_ngram", "chosen": "filter edge_ngram"}
	b := bindings{"prefixes": {Bound: Bound{Rows: m}}, "chosen": {Bound: Bound{Rows: m, Named: true}}, "body": {Bound: Bound{Rows: m, Named: true}}}
	for field, want := range map[string]reason.Reason{"prefixes": reason.NotWords, "chosen": "", "body": ""} {
		r, err := New(c, b, widening()).Expand(t.Context(), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"` + field + `":"car"}}}`)})
		check.That(t, err == nil && r.Rewritten == (want == "") && r.Clauses[0].Reason == want, "%s: rewritten %v, %+v, %v; want the reason %q", field, r.Rewritten, r.Clauses, err, want)
	}
	mixed := []byte(`{"query":{"multi_match":{"query":"car","fields":["prefixes","body"]}}}`)
	r, err := New(c, b, widening()).Expand(t.Context(), &Request{Index: "docs", Body: mixed})
	check.That(t, err == nil && r.Rewritten && r.Clauses[0].Reason == reason.NotWords && len(r.Clauses[1].Added) != 0, "beside another field: %+v, %v", r, err)
}

func TestUnboundClausesSayWhichIndicesWereLookedAt(t *testing.T) {
	c, m := rental(t)
	names := make([]string, maxExplainedIndices+5)
	for i := range names {
		names[i] = fmt.Sprintf("docs%d", i)
	}
	b := bindings{"body": {Bound: Bound{Rows: m, Resolved: names}}, "few": {Bound: Bound{Resolved: names[:2]}}, "many": {Bound: Bound{Resolved: names}}}
	for field, want := range map[string][]string{"body": nil, "few": names[:2], "many": names[:maxExplainedIndices], "none": nil} {
		r, err := New(c, b, widening()).Expand(t.Context(), &Request{Index: "live", Body: []byte(`{"query":{"match":{"` + field + `":"car"}}}`)})
		check.That(t, err == nil && slices.Equal(r.Clauses[0].Indices, want) && (r.Clauses[0].Reason == reason.NoMatrix) == (field != "body"), "%s: %+v, %v; want the indices %q", field, r.Clauses, err, want)
	}
}

func TestErrorsOfBindingsAreThoseOfTheCluster(t *testing.T) {
	c, _ := rental(t)
	away := errors.New("away")
	b := bindings{"lost": {err: fmt.Errorf("lost: %w", &esclient.Error{Status: 404})}, "away": {err: away}}
	body := func(field string) []byte { return []byte(`{"query":{"match":{"` + field + `":"car"}}}`) }
	r, err := New(c, b, widening()).Expand(t.Context(), &Request{Index: "live", Body: body("lost")})
	check.That(t, err == nil && !r.Rewritten && r.Reason == reason.UnknownToCluster, "%+v, %v", r, err)
	var stage *StageError
	if r, err := New(c, b, widening()).Expand(t.Context(), &Request{Index: "live", Body: body("away")}); !errors.As(err, &stage) || stage.Stage != StageFields || !errors.Is(err, away) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, mode := range []Mode{ModeHard, ModeSoft} {
		c, m := rental(t)
		e := New(c, m, with(func(o *Profile) { o.Mode = mode })).WithWeights(failingWeights{rentalWeights(), away})
		_, err := e.Expand(t.Context(), &Request{Body: []byte(carRental)})
		check.That(t, errors.As(err, &stage) && errors.Is(err, away), "weights: %v", err)
	}
}

type failingWeights struct {
	*fakeWeights
	err error
}

func (f failingWeights) Pin() PinnedWeights { return f }

func (f failingWeights) Weights(context.Context, esclient.Indices, string) (Weights, error) {
	return nil, f.err
}
