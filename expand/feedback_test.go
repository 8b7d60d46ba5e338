package expand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
)

func feedback(o *Profile) { o.Feedback = FeedbackOptions{Documents: 10, Terms: 2, Weight: 0.3} }

// firstHits are hits that speak of tariffs.
var firstHits = []FirstHit{
	{ID: "1", Score: 2, Fields: map[string]FieldTerms{"body": {Terms: []string{"car", "tariff"}, Freqs: []float64{1, 3}}}},
	{ID: "2", Score: 1, Fields: map[string]FieldTerms{"body": {Terms: []string{"tariff", "cheap"}, Freqs: []float64{1, 1}}}},
}

// expandTwice expands a search, and again with the first hits.
func expandTwice(t *testing.T, req *Request, change ...func(*Profile)) (first, second *Result) {
	t.Helper()
	c, m := rental(t)
	c.docFreqs["tariff"] = 7
	e := New(c, m, with(func(o *Profile) {
		for _, f := range append(change, feedback) {
			f(o)
		}
	}))
	req.Index = "docs"
	first = expanded(t, e, req)
	again := *req
	again.FirstHits = make([][]FirstHit, max(len(first.Parts), 1))
	for i := range again.FirstHits {
		again.FirstHits[i] = firstHits
	}
	return first, expanded(t, e, &again)
}

func TestFirstPassAsksForTheFirstHitsOnly(t *testing.T) {
	first, _ := expandTwice(t, &Request{
		RawQuery: "routing=a&scroll=1m&preference=b&filter_path=took&expand_wildcards=all",
		Body: []byte(`{"aggs":{"a":{"terms":{"field":"b"}}},"query":{"match":{"body":"car"}},"from":20,"size":5,"search_after":[1],` +
			`"post_filter":{"term":{"a":"b"}},"highlight":{"fields":{"body":{}}},"_source":["a"],"suggest":{}}`),
	})
	if first.firstPass() == nil {
		t.Fatalf("%+v", first)
	}
	p := first.firstPass()
	var body map[string]json.RawMessage
	if err := json.Unmarshal(p.Body, &body); err != nil {
		t.Fatalf("%v: %s", err, p.Body)
	}
	var names []string
	for name := range body {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"_source", "from", "post_filter", "query", "seq_no_primary_term", "size", "track_total_hits", "version"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p.Index != "docs" || p.RawQuery != "routing=a&preference=b&expand_wildcards=all" || string(body["size"]) != "10" ||
		!strings.Contains(string(body["query"]), "automobile") || !slices.Equal(p.Fields, []string{"body"}) {
		t.Errorf("%s?%s %s of %v", p.Index, p.RawQuery, p.Body, p.Fields)
	}
}

func TestFirstPassOfVectorsBesideTheQueryTakesTheSearchType(t *testing.T) {
	c, m := rental(t)
	c.shards = 5
	r, err := New(c, m, with(feedback)).Expand(t.Context(), &Request{Index: "docs", Body: []byte(`{"knn":{},` + carRental[1:])})
	if err != nil || r.firstPass() == nil {
		t.Fatalf("%v, %+v", err, r)
	}
	if p := r.firstPass(); p.RawQuery != "search_type=dfs_query_then_fetch" || strings.Contains(string(p.Body), "knn") || r.RawQuery != "" {
		t.Errorf("first pass ?%s %s, then ?%s", p.RawQuery, p.Body, r.RawQuery)
	}
}

// Related words bring few documents among the first ten, and cost a third of
// the price of a first pass.
func TestRescoredFirstPassFindsByTheTextItself(t *testing.T) {
	first, second := expandTwice(t, &Request{Body: []byte(`{"query":{"match":{"body":"car"}}}`)})
	var body struct{ Query, Rescore json.RawMessage }
	if err := json.Unmarshal(first.firstPass().Body, &body); err != nil {
		t.Fatal(err)
	}
	if string(body.Query) != `{"match":{"body":"car"}}` || !strings.Contains(string(body.Rescore), "automobile") {
		t.Errorf("%s", first.firstPass().Body)
	}
	if found, _, _ := strings.Cut(string(second.Body), "rescore"); !strings.Contains(found, "automobile") {
		t.Errorf("the search itself: %s", second.Body)
	}
}

func TestSearchesWithoutOrderHaveNoFirstPass(t *testing.T) {
	for name, req := range map[string]*Request{
		"count":   {Endpoint: EndpointCount, Body: []byte(`{"query":{"match":{"body":"car"}}}`)},
		"no hits": {Body: []byte(`{"size":0,"query":{"match":{"body":"car"}}}`)},
		"sorted":  {Body: []byte(`{"sort":["date"],"query":{"match":{"body":"car"}}}`)},
		"explain": {Endpoint: EndpointExplain, Body: []byte(`{"query":{"match":{"body":"car"}}}`)},
	} {
		if first, _ := expandTwice(t, req); first.firstPass() != nil {
			t.Errorf("%s: %s", name, first.firstPass().Body)
		}
	}
}

// What the first hits hold stands in a clause of its own that finds nothing.
func TestFeedbackOrdersWhatTheSearchFinds(t *testing.T) {
	for _, c := range []struct{ name, text string }{{"with neighbors", "car"}, {"without neighbors", "cheap"}} {
		first, second := expandTwice(t, &Request{Body: []byte(`{"query":{"match":{"body":"` + c.text + `"}}}`)}, func(o *Profile) { o.NoRescore = true })
		if first.firstPass() == nil || second.firstPass() != nil || !second.Rewritten {
			t.Fatalf("%s: %+v, then %+v", c.name, first, second)
		}
		var body struct {
			Query struct {
				Bool struct {
					Must   []json.RawMessage
					Should []struct {
						Term map[string]struct {
							Value string
							Boost float64
						}
					}
				}
			}
		}
		if err := json.Unmarshal(second.Body, &body); err != nil {
			t.Fatal(err)
		}
		q := body.Query.Bool
		if len(q.Must) != 1 || len(q.Should) != 2 || q.Should[0].Term["body"].Value != "tariff" || q.Should[0].Term["body"].Boost <= 0 {
			t.Errorf("%s: %s", c.name, second.Body)
		}
		f := second.Clauses[0].Feedback
		if len(f) != 2 || f[0].Term != "tariff" || !slices.Equal(f[0].Documents, []string{"1", "2"}) {
			t.Errorf("%s: explained as %+v", c.name, f)
		}
	}
}

// Where hits are rescored, the query that finds them has no terms of feedback:
// there they would cost most.
func TestFeedbackStandsOnlyInTheRescore(t *testing.T) {
	_, second := expandTwice(t, &Request{Body: []byte(`{"query":{"match":{"body":"car"}}}`)})
	var body struct{ Query, Rescore json.RawMessage }
	if err := json.Unmarshal(second.Body, &body); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body.Query), "tariff") || !strings.Contains(string(body.Rescore), "tariff") {
		t.Errorf("%s", second.Body)
	}
}

func TestLongTextsAreExpandedByTheirMostTellingTerms(t *testing.T) {
	c, m := rental(t)
	c.docFreqs["plain"] = 900
	res, err := New(c, m, with(func(o *Profile) { o.MaxQueryTerms = 2 })).Expand(t.Context(), &Request{
		Index: "docs", Body: []byte(`{"query":{"match":{"body":"plain car rental"}}}`),
	})
	if err != nil || !res.Rewritten || res.Clauses[0].Reason != "" || len(res.Clauses[0].Terms) != 3 || len(res.Clauses[0].Added) == 0 {
		t.Errorf("%v %+v", err, res)
	}
}

// All pages of a point in time have what the first one got, and ask no more.
func TestPagesOfAPointInTimeKeepTheFeedback(t *testing.T) {
	c, m := rental(t)
	c.docFreqs["tariff"] = 7
	e := New(c, m, with(feedback))
	page := func(after string, hits [][]FirstHit) *Result {
		res, err := e.Expand(t.Context(), &Request{
			Body: []byte(`{"query":{"match":{"body":"car"}},"pit":{"id":"` + pitIDs[0].id + `"}` + after + `}`), FirstHits: hits,
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if first := page("", nil); first.firstPass() == nil {
		t.Fatalf("%+v", first)
	}
	with := page("", [][]FirstHit{firstHits})
	next := page(`,"search_after":[1]`, nil)
	if next.firstPass() != nil || len(next.Clauses) != 1 || len(next.Clauses[0].Feedback) != len(with.Clauses[0].Feedback) || len(with.Clauses[0].Feedback) == 0 {
		t.Errorf("first %+v\nnext %+v", with.Clauses, next)
	}
}

// A page that goes out without feedback, because the second expansion failed,
// is followed by pages without.
func TestPagesAfterAFailedSecondExpansionHaveNoFeedback(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, with(feedback))
	page := func(after string, hits [][]FirstHit) (*Result, error) {
		return e.Expand(t.Context(), &Request{
			Body: []byte(`{"query":{"match":{"body":"car"}},"pit":{"id":"` + pitIDs[0].id + `"}` + after + `}`), FirstHits: hits,
		})
	}
	first, err := page("", nil)
	if err != nil || first.firstPass() == nil {
		t.Fatalf("%v %+v", err, first)
	}
	c.statisticsErr = errors.New("no statistics")
	if _, err := page("", [][]FirstHit{firstHits}); err == nil {
		t.Fatal("no error")
	}
	c.statisticsErr = nil
	next, err := page(`,"search_after":[1]`, nil)
	if err != nil || !next.Rewritten || next.firstPass() != nil || foundTerms(next)[0] != foundTerms(first)[0] || len(next.Clauses[0].Feedback) > 0 {
		t.Errorf("%v %+v", err, next)
	}
}

// Slices come at the same time: what becomes of one is nothing to the others.
func TestEachSliceHasFeedbackOfItsOwn(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, with(feedback))
	for id := range 2 {
		r, err := e.Expand(t.Context(), &Request{
			Body: fmt.Appendf(nil, `{"query":{"match":{"body":"car"}},"slice":{"id":%d,"max":2},"pit":{"id":"%s"}}`, id, pitIDs[0].id),
		})
		if err != nil || r.firstPass() == nil || strings.Contains(string(r.firstPass().Body), "slice") {
			t.Errorf("slice %d: %v %+v", id, err, r)
		}
	}
}

func TestNoFeedbackWhereItWouldFindOrShowMore(t *testing.T) {
	allowed := func(context.Context, esclient.Indices) error { return nil }
	for name, req := range map[string]*Request{
		"min_score":          {Body: []byte(`{"min_score":1,"query":{"match":{"body":"car"}}}`)},
		"secured, explained": {Body: []byte(`{"explain":true,"query":{"match":{"body":"car"}}}`), Allowed: allowed},
		"secured, profiled":  {Body: []byte(`{"profile":true,"query":{"match":{"body":"car"}}}`), Allowed: allowed},
	} {
		if first, _ := expandTwice(t, req, func(o *Profile) { o.NormalizeScores = true }); first.firstPass() != nil || !first.Rewritten {
			t.Errorf("%s: %+v", name, first)
		}
	}
}

// Where the cluster takes few clauses, feedback goes before what finds.
func TestFeedbackIsTakenBackFirst(t *testing.T) {
	c, m := rental(t)
	c.docFreqs["tariff"] = 7
	e := New(c, m, with(func(o *Profile) { feedback(o); o.NoRescore, o.Scoring = true, form.Linear }))
	req := &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car"}}}`), FirstHits: [][]FirstHit{firstHits}}
	all, err := e.Expand(t.Context(), req)
	if err != nil || len(all.Clauses[0].Feedback) != 2 {
		t.Fatalf("%v %+v", err, all)
	}
	for limit := all.ClauseCount - 1; limit > 0; limit-- {
		e.limits.set(Limit{Kind: LimitClauses, Index: "docs"}, int64(limit), false)
		r, err := e.Expand(t.Context(), req)
		if err != nil || r.ClauseCount > limit {
			t.Fatalf("limit %d: %v %+v", limit, err, r)
		}
		if n := len(r.Clauses[0].Feedback); n > 0 && len(r.Clauses[0].Added) < len(all.Clauses[0].Added) {
			t.Errorf("limit %d: %d terms of feedback and %d added ones", limit, n, len(r.Clauses[0].Added))
		}
	}
}

func TestOnlyTheFirstSearchesOfManyHaveFeedback(t *testing.T) {
	lines := strings.Repeat("{}\n"+`{"query":{"match":{"body":"car"}}}`+"\n", maxReranked+3)
	first, second := expandTwice(t, &Request{Endpoint: EndpointMultiSearch, Body: []byte(lines)})
	if len(first.Parts) != maxReranked+3 || first.Parts[maxReranked-1].FirstPass == nil || first.Parts[maxReranked].FirstPass != nil || first.TooManyFirstPasses != 3 {
		t.Errorf("%d searches, too many first passes: %d", len(first.Parts), first.TooManyFirstPasses)
	}
	if !second.Rewritten {
		t.Errorf("%+v", second)
	}
}

// firstPass returns that of a single search, nil for none.
func (r *Result) firstPass() *FirstPass {
	if len(r.Parts) == 0 {
		return nil
	}
	return r.Parts[0].FirstPass
}
