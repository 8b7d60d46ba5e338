package expand

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/reason"
)

func TestMoreMatchesMayNotTakePlaces(t *testing.T) {
	for body, same := range map[string]bool{
		`{"query":{"has_child":{"type":"c","max_children":2,"query":{"match":{"body":"car"}}}}}`:                    true,
		`{"query":{"has_child":{"type":"c","min_children":2,"query":{"match":{"body":"car"}}}}}`:                    false,
		`{"query":{"has_child":{"query":{"match":{"body":"car"}},"score_mode":"sum","max_children":2,"type":"c"}}}`: true,
		`{"query":{"match":{"body":"car"}},"terminate_after":100}`:                                                  true,
		`{"query":{"match":{"body":"car"}},"terminate_after":0}`:                                                    false,
	} {
		r := expandRequest(t, &Request{Body: []byte(body)}, nil)
		check.Equal(t, same, strings.Contains(string(r.Body), `{"bool":{"must":[`), body, string(r.Body), "only what the original matches")
	}
	r := expandRequest(t, &Request{RawQuery: "terminate_after=7", Body: []byte(carRental)}, nil)
	check.That(t, strings.Contains(string(r.Body), `{"bool":{"must":[`), "terminate_after in the URL: %s", r.Body)
}

func TestMinScoreOfACountIsHeeded(t *testing.T) {
	for normalize, want := range map[bool]reason.Reason{false: reason.MinScore, true: ""} {
		r := expandRequest(t, &Request{Endpoint: EndpointCount, RawQuery: "min_score=2", Body: []byte(carRental)}, func(_ *fakeCluster, o *Profile) {
			o.NormalizeScores = normalize
		})
		check.Equal(t, want, r.Reason, normalize)
		check.That(t, want != "" || strings.Contains(string(r.Body), `"boost"`), "the score decides what is counted, so the terms keep their boosts: %s", r.Body)
	}
}

func TestNamesOfFieldsArePatternsWhereTheEnginesTakeThem(t *testing.T) {
	for query, want := range map[string]bool{
		`{"match":{"bo*":"car"}}`:                                          false,
		`{"match_bool_prefix":{"bo*":"car rental"}}`:                       false,
		`{"multi_match":{"query":"car","fields":["bo*"]}}`:                 true,
		`{"combined_fields":{"query":"car","fields":["bo*"]}}`:             true,
		`{"query_string":{"query":"car","default_field":"bo*"}}`:           true,
		`{"simple_query_string":{"query":"car","fields":["bo*"]}}`:         true,
		`{"simple_query_string":{"query":"car+rental","fields":["body"]}}`: true, // an operator even there
		`{"query_string":{"query":"car x+y","default_field":"body"}}`:      true,
	} {
		r := expandRequest(t, &Request{Body: []byte(`{"query":` + query + `}`)}, nil)
		found := len(r.Clauses) > 0 && r.Clauses[0].Field == "body" && r.Rewritten
		check.Equal(t, want, found, query, r.Clauses)
	}
}

func TestSearchesWithVeryManyClausesAreBounded(t *testing.T) {
	many := strings.Repeat(`{"query_string":{"query":"car"}},`, 5000)
	r := expandRequest(t, &Request{Body: []byte(`{"query":{"bool":{"should":[` + many + `{"match":{"body":"car"}}]}}}`)}, func(_ *fakeCluster, o *Profile) {
		o.DefaultFields = []string{"body", "title"}
	})
	check.That(t, r.Reason == reason.TooManyClauses && len(r.Clauses) <= 200, "reason %q, %d clauses noted", r.Reason, len(r.Clauses))
	phrases := strings.Repeat(`{"match_phrase":{"body":"car rental"}},`, 5000)
	r = expandRequest(t, &Request{Body: []byte(`{"query":{"bool":{"should":[` + phrases + `{"match":{"body":"car"}}]}}}`)}, nil)
	check.That(t, r.Rewritten && len(r.Clauses) <= 200, "beside phrases: rewritten %t, %d clauses noted", r.Rewritten, len(r.Clauses))
	r = expandRequest(t, &Request{Endpoint: EndpointMultiSearch, Body: []byte(strings.Repeat("{}\n"+carRental+"\n", maxSearches+1))}, nil)
	check.Equal(t, reason.TooManySearches, r.Reason, maxSearches+1)
}

func TestSpentTimeEndsTheExpansionOfEachSearch(t *testing.T) {
	c, m := rental(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := New(c, m, widening()).Expand(ctx, &Request{
		Endpoint: EndpointMultiSearch, Body: []byte(strings.Repeat("{}\n"+carRental+"\n", 3)),
	})
	check.That(t, errors.Is(err, context.Canceled), "result %+v, error %v", r, err)
}

func TestMemoryUsedAgainHoldsNothingOfTheSearchBefore(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, widening())
	const body = `{"query":{"multi_match":{"query":"car rental","fields":["sku","body","unbound","title"]}}}`
	var first string
	for i := range 20 { // each round uses the memory of other fields
		r := expanded(t, e, &Request{Body: []byte(body)})
		if first == "" {
			first = string(r.Body)
		}
		check.Must(t, string(r.Body) == first, "round %d: %s\nwant %s", i, r.Body, first)
	}
}
