package expand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
)

func feedback(o *Profile) { o.Feedback = FeedbackOptions{Documents: 10, Terms: 2, Weight: 0.3} }

// firstHits are hits that speak of tariffs.
var firstHits = []FirstHit{
	{ID: "1", Score: 2, Fields: map[string]FieldTerms{"body": {Terms: []string{"car", "tariff"}, Freqs: []float64{1, 3}}}},
	{ID: "2", Score: 1, Fields: map[string]FieldTerms{"body": {Terms: []string{"tariff", "cheap"}, Freqs: []float64{1, 1}}}},
}

// withHits writes a search again with the same first hits for each of its parts,
// if they have a first pass.
func withHits(tb testing.TB, e *Expander, first *Result, hits []FirstHit) *Result {
	tb.Helper()
	all := make([][]FirstHit, len(first.Parts))
	some := false
	for i := range all {
		if first.Parts[i].FirstPass != nil {
			all[i], some = hits, true
		}
	}
	if !some {
		return first
	}
	again, err := e.WithFirstHits(tb.Context(), first, all)
	check.OK(tb, err)
	return again
}

// expandTwice expands a search, and writes it again with the first hits.
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
	return first, withHits(t, e, first, firstHits)
}

func TestFirstPassAsksForTheFirstHitsOnly(t *testing.T) {
	first, _ := expandTwice(t, &Request{
		RawQuery: "routing=a&scroll=1m&preference=b&filter_path=took&expand_wildcards=all",
		Body: []byte(`{"aggs":{"a":{"terms":{"field":"b"}}},"query":{"match":{"body":"car"}},"from":20,"size":5,"search_after":[1],` +
			`"post_filter":{"term":{"a":"b"}},"highlight":{"fields":{"body":{}}},"_source":["a"],"suggest":{}}`),
	})
	check.Must(t, first.firstPass() != nil, "%+v", first)
	p := first.firstPass()
	var body map[string]json.RawMessage
	err := json.Unmarshal(p.Body, &body)
	check.Must(t, err == nil, "%v: %s", err, p.Body)
	var names []string
	for name := range body {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"_source", "from", "post_filter", "query", "seq_no_primary_term", "size", "track_total_hits", "version"}
	check.Equal(t, want, names)
	if p.Index != "docs" || p.RawQuery != "routing=a&preference=b&expand_wildcards=all" || string(body["size"]) != "10" ||
		!strings.Contains(string(body["query"]), "automobile") || !slices.Equal(p.Fields, []string{"body"}) {
		t.Errorf("%s?%s %s of %v", p.Index, p.RawQuery, p.Body, p.Fields)
	}
}

func TestFirstPassOfVectorsBesideTheQueryTakesTheSearchType(t *testing.T) {
	c, m := rental(t)
	c.shards = 5
	r, err := New(c, m, with(feedback)).Expand(t.Context(), &Request{Index: "docs", Body: []byte(`{"knn":{},` + carRental[1:])})
	check.Must(t, err == nil && r.firstPass() != nil, "%v, %+v", err, r)
	p := r.firstPass()
	check.That(t, p.RawQuery == "search_type=dfs_query_then_fetch" && !strings.Contains(string(p.Body), "knn") && r.RawQuery == "", "first pass ?%s %s, then ?%s", p.RawQuery, p.Body, r.RawQuery)
}

// The first pass finds by the text itself: related words bring few documents
// among the first ten, and cost a third of its price. What the first hits hold
// stands in the rescore only: in the query it would cost most.
func TestRescoredSearchesAreFoundWithoutTheFirstHits(t *testing.T) {
	first, second := expandTwice(t, &Request{Body: []byte(`{"query":{"match":{"body":"car"}}}`)})
	var pass, sent struct{ Query, Rescore json.RawMessage }
	check.OK(t, json.Unmarshal(first.firstPass().Body, &pass))
	check.OK(t, json.Unmarshal(second.Body, &sent))
	check.Equal(t, `{"match":{"body":"car"}}`, string(pass.Query))
	check.That(t, strings.Contains(string(pass.Rescore), "automobile"), "%s", first.firstPass().Body)
	found, ordered := string(sent.Query), string(sent.Rescore)
	check.That(t, strings.Contains(found, "automobile") && !strings.Contains(found, "tariff") && strings.Contains(ordered, "tariff"), "%s", second.Body)
}

func TestSearchesWithoutOrderHaveNoFirstPass(t *testing.T) {
	for name, req := range map[string]*Request{
		"count":   {Endpoint: EndpointCount, Body: []byte(`{"query":{"match":{"body":"car"}}}`)},
		"no hits": {Body: []byte(`{"size":0,"query":{"match":{"body":"car"}}}`)},
		"sorted":  {Body: []byte(`{"sort":["date"],"query":{"match":{"body":"car"}}}`)},
		"explain": {Endpoint: EndpointExplain, Body: []byte(`{"query":{"match":{"body":"car"}}}`)},
	} {
		first, _ := expandTwice(t, req)
		check.That(t, first.firstPass() == nil, "%s: %+v", name, first.firstPass())
	}
}

// What the first hits hold stands in a clause of its own that finds nothing.
func TestFeedbackOrdersWhatTheSearchFinds(t *testing.T) {
	for _, c := range []struct{ name, text string }{{"with neighbors", "car"}, {"without neighbors", "cheap"}} {
		first, second := expandTwice(t, &Request{Body: []byte(`{"query":{"match":{"body":"` + c.text + `"}}}`)}, func(o *Profile) { o.NoRescore = true })
		check.Must(t, first.firstPass() != nil && second.firstPass() == nil && second.Rewritten, "%s: %+v, then %+v", c.name, first, second)
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
		check.OK(t, json.Unmarshal(second.Body, &body))
		q := body.Query.Bool
		check.That(t, len(q.Must) == 1 && len(q.Should) == 2 && q.Should[0].Term["body"].Value == "tariff" && q.Should[0].Term["body"].Boost > 0, "%s: %s", c.name, second.Body)
		f := second.Clauses[0].Feedback
		check.That(t, len(f) == 2 && f[0].Term == "tariff" && slices.Equal(f[0].Documents, []string{"1", "2"}), "%s: explained as %+v", c.name, f)
	}
}

func TestLongTextsAreExpandedByTheirMostTellingTerms(t *testing.T) {
	c, m := rental(t)
	c.docFreqs["plain"] = 900
	res, err := New(c, m, with(func(o *Profile) { o.MaxQueryTerms = 2 })).Expand(t.Context(), &Request{
		Index: "docs", Body: []byte(`{"query":{"match":{"body":"plain car rental"}}}`),
	})
	check.That(t, err == nil && res.Rewritten && res.Clauses[0].Reason == "" && len(res.Clauses[0].Terms) == 3 && len(res.Clauses[0].Added) != 0, "%v %+v", err, res)
}

// All pages of a point in time have what the first one got, and ask no more: no
// feedback where its second expansion failed.
func TestPagesOfAPointInTimeKeepTheFeedback(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no statistics")} {
		c, m := rental(t)
		c.docFreqs["tariff"] = 7
		e := New(c, m, with(feedback))
		page := func(after string) (*Result, error) {
			body := `{"query":{"match":{"body":"car"}},"pit":{"id":"` + pitIDs[0].id + `"}` + after + `}`
			return e.Expand(t.Context(), &Request{Body: []byte(body)})
		}
		first, err := page("")
		check.Must(t, err == nil && first.firstPass() != nil, "%v %+v", err, first)
		want := 0
		c.statisticsErr = failure
		if with, err := e.WithFirstHits(t.Context(), first, [][]FirstHit{firstHits}); failure == nil {
			check.OK(t, err)
			want = len(with.Clauses[0].Feedback)
			check.That(t, want > 0, "%+v", with)
		} else {
			check.Error(t, failure, err)
		}
		c.statisticsErr = nil
		next, err := page(`,"search_after":[1]`)
		check.Must(t, err == nil && next.Rewritten && next.firstPass() == nil && len(next.Clauses) == 1, "%v %+v", err, next)
		check.Equal(t, foundTerms(first), foundTerms(next))
		check.Equal(t, want, len(next.Clauses[0].Feedback), failure)
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
		check.That(t, err == nil && r.firstPass() != nil && !strings.Contains(string(r.firstPass().Body), "slice"), "slice %d: %v %+v", id, err, r)
	}
}

func TestNoFeedbackWhereItWouldFindOrShowMore(t *testing.T) {
	allowed := func(context.Context, esclient.Indices) error { return nil }
	for name, req := range map[string]*Request{
		"min_score":          {Body: []byte(`{"min_score":1,"query":{"match":{"body":"car"}}}`)},
		"secured, explained": {Body: []byte(`{"explain":true,"query":{"match":{"body":"car"}}}`), Allowed: allowed},
		"secured, profiled":  {Body: []byte(`{"profile":true,"query":{"match":{"body":"car"}}}`), Allowed: allowed},
	} {
		first, _ := expandTwice(t, req, func(o *Profile) { o.NormalizeScores = true })
		check.That(t, first.firstPass() == nil && first.Rewritten, "%s: %+v", name, first)
	}
}

// Where the cluster takes few clauses, feedback goes before what finds.
func TestFeedbackIsTakenBackFirst(t *testing.T) {
	c, m := rental(t)
	c.docFreqs["tariff"] = 7
	e := New(c, m, with(func(o *Profile) { feedback(o); o.NoRescore, o.Scoring = true, form.Linear }))
	withFeedback := func() *Result {
		first := expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":{"match":{"body":"car"}}}`)})
		return withHits(t, e, first, firstHits)
	}
	all := withFeedback()
	check.Must(t, len(all.Clauses[0].Feedback) == 2, "%+v", all)
	for limit := all.ClauseCount - 1; limit > 0; limit-- {
		e.limits.set(Limit{Kind: LimitClauses, Index: "docs"}, int64(limit), false)
		r := withFeedback()
		check.Must(t, r.ClauseCount <= limit, "limit %d: %+v", limit, r)
		n := len(r.Clauses[0].Feedback)
		check.That(t, n <= 0 || len(r.Clauses[0].Added) >= len(all.Clauses[0].Added), "limit %d: %d terms of feedback and %d added ones", limit, n, len(r.Clauses[0].Added))
	}
}

// Of several searches those without hits stay as they are.
func TestEachSearchOfSeveralGetsTheTermsOfItsHits(t *testing.T) {
	c, m := rental(t)
	c.docFreqs["tariff"] = 7
	e := New(c, m, with(feedback))
	first := expanded(t, e, &Request{Index: "docs", Endpoint: EndpointMultiSearch, Body: []byte(strings.Repeat("{}\n"+`{"query":{"match":{"body":"car"}}}`+"\n", 3))})
	before := string(first.Body)
	second, err := e.WithFirstHits(t.Context(), first, [][]FirstHit{nil, firstHits, nil})
	check.Must(t, err == nil && second.Rewritten, "%v %+v", err, second)
	was, is := strings.Split(before, "\n"), strings.Split(string(second.Body), "\n")
	check.Must(t, len(was) == len(is) && len(is) == 7, "%d lines, then %d", len(was), len(is))
	for i := range is {
		check.Equal(t, i == 3, strings.Contains(is[i], "tariff"), is[i])
		check.Equal(t, i != 3, is[i] == was[i], is[i])
	}
	check.Equal(t, before, string(first.Body))
}

// What was parsed and asked is kept, and the memory of the first expansion is
// another search's by then.
func TestFirstHitsAreAddedWithoutAskingAgain(t *testing.T) {
	c, m := rental(t)
	c.docFreqs["tariff"] = 7
	e := New(c, m, with(feedback))
	_, want := expandTwice(t, &Request{Body: []byte(carRental)})
	first := expanded(t, e, &Request{Index: "docs", Body: []byte(carRental)})
	for range 3 {
		expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":{"multi_match":{"query":"lease hire","fields":["title","other"]}}}`)})
	}
	c.analyzeErr, m.err = errors.New("asked again"), errors.New("asked again")
	for range 2 {
		second := withHits(t, e, first, firstHits)
		check.Equal(t, string(want.Body), string(second.Body))
	}
}

// firstPass returns that of a single search, nil for none.
func (r *Result) firstPass() *FirstPass {
	if len(r.Parts) == 0 {
		return nil
	}
	return r.Parts[0].FirstPass
}
