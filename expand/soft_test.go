package expand

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
)

// soft has hits ordered by the measure only.
func soft(o *Profile) { o.Mode, o.SoftWeight = ModeSoft, 1 }

// queryOf returns the query of a body.
func queryOf(tb testing.TB, body []byte) string {
	tb.Helper()
	var is struct{ Query json.RawMessage }
	check.OK(tb, json.Unmarshal(body, &is))
	return string(is.Query)
}

// onlyRerank returns how the hits of a single search are reranked, nil where
// they are not.
func (r *Result) onlyRerank() *Rerank {
	if len(r.Parts) == 0 {
		return nil
	}
	return r.Parts[0].Rerank
}

// expandSoftly expands a search whose fields all have S, and W from the
// rows.
func expandSoftly(tb testing.TB, req *Request) *Result {
	tb.Helper()
	c, m := rental(tb)
	c.shards = 2
	if req.Index == "" {
		req.Index = "docs"
	}
	res := expanded(tb, New(c, m, with(soft)), req)
	return res
}

// The frame finds the window and has what is said of all matches, the page has
// what comes back of each hit.
func TestSoftModeAsksForTheWindowAndThePage(t *testing.T) {
	const plain = `"query":{"match":{"title":"plain"}}`
	const ids = `"_source":false,"docvalue_fields":["_seq_no"],"version":true,`
	for _, c := range []struct {
		name, query, body              string
		frameQuery, frame              string
		pageQuery, page, orderQ, order string
	}{
		{
			"nothing said", "pretty", `{` + plain + `}`,
			"pretty", `{"from":0,"size":100,` + ids + plain + `}`,
			"", `}`, "", `{"track_total_hits":false,` + plain + `}`,
		},
		{
			"what comes back of hits", "ignore_unavailable=true&routing=r&scroll=",
			`{ "from": 5 , ` + plain + `, "size" :20,"version":false,"_source":["a"],"\u0066ields":["b"],"aggs":{"c":{"max":{"field":"d"}}},"track_total_hits":true,"timeout":"1s"}`,
			"ignore_unavailable=true&routing=r&scroll=",
			`{"from":0,"size":100,` + ids + plain + `,"aggs":{"c":{"max":{"field":"d"}}},"track_total_hits":true,"timeout":"1s"}`,
			"ignore_unavailable=true&routing=r", `,"version":false,"_source":["a"],"fields":["b"],"timeout":"1s"}`,
			"ignore_unavailable=true&routing=r", `{"track_total_hits":false,"from":5,` + plain + `,"size":20,"version":false,"_source":["a"],"fields":["b"],"timeout":"1s"}`,
		},
		{
			"by parameters", "from=3&a=b&size=4&version=true&_source_includes=c&preference=p", `{` + plain + `,"size":7}`,
			"a=b&preference=p", `{"from":0,"size":100,` + ids + plain + `}`,
			"version=true&_source_includes=c&preference=p", `}`,
			"from=3&size=4&version=true&_source_includes=c&preference=p", `{"track_total_hits":false,` + plain + `,"size":7}`,
		},
		{
			"q", "q=plain&df=title&size=3", "",
			"", `{"from":0,"size":100,` + ids + `"query":{"query_string":{"query":"plain","default_field":"title"}}}`,
			"", `}`, "size=3", `{"track_total_hits":false,"query":{"query_string":{"query":"plain","default_field":"title"}}}`,
		},
		{
			"past the window", "from=95", `{` + plain + `,"size":"20"}`,
			"", `{"from":0,"size":115,` + ids + plain + `}`,
			"", `}`, "from=95", `{"track_total_hits":false,` + plain + `,"size":"20"}`,
		},
		{
			"odd names", "", `{` + plain + `,"a\"b":1}`,
			"", `{"from":0,"size":100,` + ids + plain + `,"a\"b":1}`,
			"", `}`, "", `{"track_total_hits":false,` + plain + `,"a\"b":1}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := expandSoftly(t, &Request{RawQuery: c.query, Body: []byte(c.body)})
			r := res.onlyRerank()
			check.Must(t, res.Rewritten && r != nil, "not reranked: %+v", res)
			got := [][2]string{
				{res.RawQuery, string(res.Body)}, {r.Page.RawQuery, string(r.Page.Body)}, {r.InOrder.RawQuery, string(r.InOrder.Body)},
			}
			want := [][2]string{{c.frameQuery, c.frame}, {c.pageQuery, c.page}, {c.orderQ, c.order}}
			diff := cmp.Diff(want, got)
			check.That(t, diff == "" && r.Page.Index == "docs" && r.InOrder.Index == "docs", "(-want +got)\n%s", diff)
		})
	}
}

// One shard names its documents by sequence numbers, which cost least.
func TestSoftModeNamesHitsByNumberWhereThatIsEnough(t *testing.T) {
	const car = `"query":{"match":{"title":"car"}}`
	numbers := `{"from":0,"size":100,"_source":false,"docvalue_fields":["_seq_no"],"stored_fields":"_none_",`
	for _, c := range []struct {
		name, query, body string
		shards            int
		want              bool
	}{
		{"one shard", "", `{` + car + `}`, 1, true},
		{"the last page of the window", "", `{` + car + `,"from":90}`, 1, true},
		{"two shards", "", `{` + car + `}`, 2, false},
		{"behind the window", "", `{` + car + `,"from":91}`, 1, false},
		{"names", "", `{"query":{"match":{"title":{"query":"car","_name":"a"}}}}`, 1, false},
		{"names in a filter behind", "", `{` + car + `,"post_filter":{"term":{"a":{"value":"b","_name":"c"}}}}`, 1, false},
		{"without _shards", "filter_path=hits", `{` + car + `}`, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster, m := rental(t)
			cluster.shards = c.shards
			res := expanded(t, New(cluster, m, with(soft)), &Request{Index: "docs", RawQuery: c.query, Body: []byte(c.body)})
			r := res.onlyRerank()
			check.That(t, r != nil && r.BySeqNo == c.want && strings.HasPrefix(string(res.Body), numbers) == c.want, "%+v %s", r, res.Body)
		})
	}
}

func TestPagesAskForTheHitsOnThem(t *testing.T) {
	const car = `{"match":{"title":"car"}}`
	hits := []Hit{{Index: "a", ID: "1", SeqNo: 7}, {Index: "b", ID: "2\"", SeqNo: 5}, {Index: "a", ID: "3", SeqNo: 6}}
	const page, numbers = `{"size":3,"track_total_hits":false,`, `"query":{"bool":{"filter":[{"terms":{"_seq_no":[7,5,6]}}`
	const sorted = page + `"sort":["_seq_no"],` + numbers
	ids := `,{"bool":{"should":[{"bool":{"filter":[{"term":{"_index":"a"}},{"ids":{"values":["1"]}},{"term":{"_seq_no":7}}]}},` +
		`{"bool":{"filter":[{"term":{"_index":"b"}},{"ids":{"values":["2\""]}},{"term":{"_seq_no":5}}]}},` +
		`{"bool":{"filter":[{"term":{"_index":"a"}},{"ids":{"values":["3"]}},{"term":{"_seq_no":6}}]}}]}}`
	for _, c := range []struct {
		name, body string
		bySeqNo    bool
		want       string
	}{
		{"by number", `{"query":` + car + `,"_source":"x"}`, true, sorted + `]}},"_source":"x"}`},
		{"by id", `{"query":` + car + `}`, false, page + numbers + ids + `]}}}`},
		{
			"highlights of the client's query", `{"query":` + car + `,"highlight":{"fields":{"title":{}}}}`, true,
			sorted + `],"should":[` + car + `]}},"highlight":{"highlight_query":` + car + `,"fields":{"title":{}}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := expandSoftly(t, &Request{Body: []byte(c.body)}).onlyRerank()
			check.Must(t, r != nil, "not reranked")
			r.BySeqNo = c.bySeqNo
			got := r.PageOf(hits)
			check.That(t, string(got.Body) == c.want && got.Index == "docs", "got  %s\nwant %s", got.Body, c.want)
		})
	}
	for _, body := range []string{ // in any order
		`{"highlight":{"fields":{"title":{}}},"query":{"match":{"title":{"query":"car","_name":"n"}}},"post_filter":{"term":{"a":{"value":"b","_name":"c"}}}}`,
		`{"query":{"match":{"title":{"query":"car","_name":"n"}}},"post_filter":{"term":{"a":{"value":"b","_name":"c"}}},"include_named_queries_score":true}`,
	} {
		page := string(expandSoftly(t, &Request{Body: []byte(body)}).onlyRerank().PageOf(hits).Body)
		for _, part := range []string{`"should":[{"bool":`, `"_name":"n"`, `"automobile"`, `,"post_filter":{"term":{"a":{"value":"b","_name":"c"}}}`} {
			check.That(t, strings.Contains(page, part), "%s is asked for by %s, without %s", body, page, part)
		}
		check.Equal(t, strings.Contains(page, `,"include_named_queries_score":true`), strings.Contains(body, "score"), body, page, "is asked for")
	}
	many := make([]Hit, maxClauses/3+1)
	for i := range many {
		many[i] = Hit{Index: []string{"a", "b"}[i%2], ID: strconv.Itoa(i), SeqNo: int64(i)}
	}
	body := string(expandSoftly(t, &Request{Body: []byte(`{"query":` + car + `}`)}).onlyRerank().PageOf(many).Body)
	check.That(t, strings.Contains(body, `{"term":{"_index":"a"}},{"ids":{"values":["0","2",`) && strings.Contains(body, `{"term":{"_index":"b"}},{"ids":{"values":["1","3",`) && json.Valid([]byte(body)), "%d hits are asked for by %s", len(many), body)
	named := expandSoftly(t, &Request{Body: []byte(`{"query":{"match":{"title":{"query":"car","_name":"n"}}}}`)})
	query := queryOf(t, named.Body)
	if got := string(named.onlyRerank().PageOf(hits).Body); !strings.Contains(got, `],"should":[`+query+`]}}`) || !strings.Contains(got, "automobile") {
		t.Errorf("%s does not have the query with its names and related words, %s", got, query)
	}
}

func TestSoftModeKnowsTheClientsPage(t *testing.T) {
	body := `{"query":{"match":{"title":"plain"}},"from":"8","size":12}`
	for _, c := range []struct {
		query string
		want  Rerank
	}{
		{"", Rerank{Window: 100, From: 8, Size: 12, SoftWeight: 1}},
		{"from=99&size=1001", Rerank{Window: 100, From: 99, Size: 1001, SoftWeight: 1}},
		{"from=1&size=99", Rerank{Window: 100, From: 1, Size: 99, SoftWeight: 1}},
	} {
		res := expandSoftly(t, &Request{RawQuery: c.query, Body: []byte(body)})
		ignored := []cmp.Option{cmpopts.IgnoreFields(Rerank{}, "Fields", "Page", "InOrder"), cmpopts.IgnoreUnexported(Rerank{})}
		diff := cmp.Diff(&c.want, res.onlyRerank(), ignored...)
		check.That(t, diff == "", "%s: (-want +got)\n%s", c.query, diff)
	}
}

// The hits that are reranked are the first ones, so that feedback needs no
// search of its own.
func TestSoftModeHasFeedbackFromTheHitsThatItReranks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Profile)
		wish   FeedbackWish
		want   FeedbackOptions
	}{
		"configured":       {func(o *Profile) { o.Feedback.Documents = 7 }, FeedbackAsConfigured, FeedbackOptions{Documents: 7, Terms: 20, Weight: .3}},
		"asked for":        {func(*Profile) {}, FeedbackOn, FeedbackOptions{Documents: 5, Terms: 20, Weight: .3}},
		"not asked for":    {func(*Profile) {}, FeedbackAsConfigured, FeedbackOptions{}},
		"declined":         {func(o *Profile) { o.Feedback.Documents = 7 }, FeedbackOff, FeedbackOptions{}},
		"without any sums": {func(o *Profile) { o.Feedback.Documents, o.SoftWeight = 7, 1 }, FeedbackAsConfigured, FeedbackOptions{}},
	} {
		cluster, m := rental(t)
		e := New(cluster, m, with(func(o *Profile) { o.Mode, o.SoftWeight = ModeSoft, .2; c.change(o) }))
		res := expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":{"match":{"title":"car rental"}}}`), Feedback: c.wish})
		r := res.onlyRerank()
		check.That(t, r != nil && r.Feedback == c.want && res.Parts[0].FirstPass == nil, "%s: %+v, %+v", name, r, res.Parts)
	}
}

// Few terms find the hits, and all that were chosen count in the sums: these
// are BM25 with the neighbors inside the saturation of a word.
func TestBlendedSearchesSumAllChosenTerms(t *testing.T) {
	c, m := rental(t)
	blended := with(func(o *Profile) { o.Mode, o.SoftWeight = ModeSoft, .25 })
	body := `{"query":{"bool":{"should":[{"match":{"title":{"query":"car car rental","boost":2}}},{"multi_match":{"query":"car","fields":["title","body^3"],"tie_breaker":0.5}}]}}}`
	res := expanded(t, New(c, m, blended), &Request{Index: "docs", Body: []byte(body)})
	r := res.onlyRerank()
	check.Must(t, r != nil && r.SoftWeight == .25 && len(r.Sums) == 2 && len(r.Fields) == 2, "%+v", r)
	// The rescore of the mode bm25 says what counts for what.
	c, m = rental(t)
	inEngine := expanded(t, New(c, m, widening()), &Request{Index: "docs", Body: []byte(body)})
	boosts := map[string]float64{}
	for _, clause := range inEngine.Clauses {
		for _, a := range clause.Added {
			boosts[clause.Path+" "+clause.Field+" "+a.Term] = a.Boost
		}
	}
	for i, paths := range []string{"query.bool.should[0].match", "query.bool.should[1].multi_match"} {
		for _, f := range r.Sums[i].Fields {
			for _, w := range f.Words {
				for k, term := range w.Terms[1:] {
					key := paths + " " + r.Fields[f.Field].Field + " " + term
					check.That(t, math.Abs(boosts[key]/w.Boosts[k+1]-1) <= 1e-9, "%s counts %g, in the engine %g", key, w.Boosts[k+1], boosts[key])
					delete(boosts, key)
				}
			}
		}
	}
	check.That(t, len(boosts) == 0, "these do not count: %v", boosts)
	if one, two := r.Sums[0], r.Sums[1]; one.Fields[0].Boost != 2 || two.Fields[1].Boost != 3 || two.TieBreaker != .5 ||
		one.Fields[0].Words[0].Weight != 2*two.Fields[0].Words[0].Weight {
		t.Errorf("%+v", r.Sums)
	}
}

// A score that is not the sum of those of terms stays the engine's.
func TestClausesThatAreNoSumsCountByTheEnginesScores(t *testing.T) {
	for _, query := range []string{
		`{"dis_max":{"queries":[{"match":{"title":"car"}},{"match":{"body":"car"}}]}}`,
		`{"combined_fields":{"query":"car","fields":["title"]}}`,
	} {
		c, m := rental(t)
		res := expanded(t, New(c, m, with(func(o *Profile) { o.Mode, o.SoftWeight = ModeSoft, .25 })), &Request{Index: "docs", Body: []byte(`{"query":` + query + `}`)})
		r := res.onlyRerank()
		check.That(t, r != nil && r.Sums == nil, "%s: %+v", query, r)
	}
}

func TestSoftModeComparesTheTermsOfAllTexts(t *testing.T) {
	res := expandSoftly(t, &Request{Body: []byte(`{"query":{"bool":{"must":[
		{"match":{"title":{"query":"car car rental","boost":2}}}],"should":[
		{"multi_match":{"query":"cheap car","fields":["title","body^3"]}}],
		"filter":[{"term":{"sku":"1"}}],"must_not":[{"match":{"title":"boat"}}]}}}`)})
	check.Must(t, res.onlyRerank() != nil, "%+v", res)
	type field struct {
		Field string
		Boost float64
		X     string
	}
	var got []field
	for _, f := range res.onlyRerank().Fields {
		var x []string
		for k, term := range f.Terms {
			x = append(x, fmt.Sprint(term, ":", f.Freqs[k]))
		}
		got = append(got, field{f.Field, f.Boost, strings.Join(x, " ")})
	}
	want := []field{{"title", 2, "car:2.5 rental:1 cheap:0.5"}, {"body", 3, "cheap:1 car:1"}}
	check.Equal(t, want, got)
}

// A noTerms is a cluster whose analyzer leaves nothing of the texts of body.
type noTerms struct{ *fakeCluster }

func (c noTerms) Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error) {
	if field == "body" {
		return &esclient.Analysis{Shards: 1}, nil
	}
	return c.fakeCluster.Analyze(ctx, indices, field, analyzer, text)
}

func TestSoftModeComparesAFieldWhoseCompanionHasNoTerms(t *testing.T) {
	c, m := rental(t)
	res, err := New(noTerms{c}, m, with(soft)).Expand(t.Context(), &Request{
		Index: "docs", Body: []byte(`{"query":{"multi_match":{"query":"car","type":"cross_fields","fields":["title","body"]}}}`),
	})
	check.That(t, err == nil && res.onlyRerank() != nil && len(res.onlyRerank().Fields) == 1 && res.onlyRerank().Fields[0].Field == "title", "%+v, %v", res, err)
}

func TestSoftModeSaysWhyHitsStayInTheEnginesOrder(t *testing.T) {
	const car = `"query":{"match":{"title":"car"}}`
	for _, c := range []struct {
		name string
		req  Request
		want reason.Reason
	}{
		{"sort", Request{Body: []byte(`{` + car + `,"sort":["price"]}`)}, reason.Sort},
		{"scroll", Request{Body: []byte(`{` + car + `}`), RawQuery: "scroll=1m"}, reason.Scroll},
		{"collapse", Request{Body: []byte(`{` + car + `,"collapse":{"field":"a"}}`)}, reason.Collapse},
		{"rescore", Request{Body: []byte(`{` + car + `,"rescore":{}}`)}, reason.Rescore},
		{"search_after", Request{Body: []byte(`{` + car + `,"search_after":[1]}`)}, reason.SearchAfter},
		{"indices_boost", Request{Body: []byte(`{` + car + `,"indices_boost":[{"a":2}]}`)}, reason.IndicesBoost},
		{"knn", Request{Body: []byte(`{` + car + `,"knn":{}}`)}, reason.Vectors},
		{"retriever", Request{Body: []byte(`{"retriever":{"standard":{` + car + `}}}`)}, reason.Retriever},
		{"odd size", Request{Body: []byte(`{` + car + `}`), RawQuery: "size=x"}, reason.Answer},
		{"no size", Request{Body: []byte(`{` + car + `}`), RawQuery: "size=&pretty"}, reason.Answer},
		{"no from", Request{Body: []byte(`{` + car + `}`), RawQuery: "from=&from=3"}, reason.Answer},
		{"huge size", Request{Body: []byte(`{` + car + `,"size":99999999999999999999}`)}, reason.Answer},
		{"empty size", Request{Body: []byte(`{` + car + `,"size":""}`)}, reason.Answer},
		{"size of null", Request{Body: []byte(`{` + car + `,"size":null}`)}, reason.Answer},
		{"negative from", Request{Body: []byte(`{` + car + `,"from":-1}`)}, reason.Answer},
		{"broken number", Request{Body: []byte(`{` + car + `,"from":1.0}`)}, reason.Answer},
		{"behind, with a term", Request{Body: []byte(`{"query":{"bool":{"should":[{"match":{"title":"car"}},{"term":{"a":"b"}}]}},"from":200}`)}, reason.OtherScores},
		{"term", Request{Body: []byte(`{"query":{"bool":{"should":[{"match":{"title":"car"}},{"term":{"a":"b"}}]}}}`)}, reason.OtherScores},
		{"unknown query", Request{Body: []byte(`{"query":{"bool":{"should":[{"match":{"title":"car"}},{"odd":{"a":"b"}}]}}}`)}, reason.OtherScores},
		{"functions", Request{Body: []byte(`{"query":{"function_score":{` + car + `}}}`)}, reason.OtherScores},
		{"boosted", Request{Body: []byte(`{"query":{"bool":{"boost":2,"should":[{"match":{"title":"car"}}]}}}`)}, reason.OtherScores},
		{"phrase", Request{Body: []byte(`{"query":{"bool":{"should":[{"match":{"title":"car"}},{"match_phrase":{"title":"car rental"}}]}}}`)}, reason.OtherScores},
		{"fuzzy", Request{Body: []byte(`{"query":{"match":{"title":{"query":"car","fuzziness":1}}}}`)}, reason.OtherScores},
		{"keyword", Request{Body: []byte(`{"query":{"multi_match":{"query":"car","fields":["title","sku"]}}}`)}, reason.OtherScores},
		{"unbound", Request{Body: []byte(`{"query":{"multi_match":{"query":"car","fields":["title","unbound"]}}}`)}, reason.OtherScores},
		{"no ids", Request{Body: []byte(`{` + car + `,"stored_fields":"_none_"}`)}, reason.Answer},
		{"filtered", Request{Body: []byte(`{` + car + `}`), RawQuery: "filter_path=hits.hits._id"}, reason.Answer},
		{"explained", Request{Body: []byte(`{` + car + `,"explain":true}`)}, reason.Answer},
		{"explained by parameter", Request{Body: []byte(`{` + car + `}`), RawQuery: "explain=true"}, reason.Answer},
		{"completions", Request{Body: []byte(`{` + car + `,"suggest":{"a":{"completion":{"field":"b"}}}}`)}, reason.Answer},
		{"pipeline", Request{Body: []byte(`{` + car + `}`), RawQuery: "search_pipeline=p"}, reason.Answer},
		{"format", Request{Body: []byte(`{` + car + `}`), Fixed: reason.Answer}, reason.Answer},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := expandSoftly(t, &c.req)
			check.Must(t, res.onlyRerank() == nil && res.Rewritten, "%+v", res)
			for _, clause := range res.Clauses {
				check.That(t, clause.Form == "" || clause.Reason == c.want, "%+v, want the reason %s", clause, c.want)
			}
			cluster, m := rental(t)
			cluster.shards = 2
			if slices.Contains(sameQuery, c.want) {
				frame := expandSoftly(t, &Request{Body: []byte(`{` + car + `}`)})
				got, want := queryOf(t, res.Body), queryOf(t, frame.Body)
				check.That(t, got == want, "got %s\nwant %s", got, want)
				return
			}
			bm25 := expanded(t, New(cluster, m, widening()), &c.req)
			check.That(t, string(bm25.Body) == string(res.Body) && bm25.RawQuery == res.RawQuery, "got ?%s %s\nwant ?%s %s", res.RawQuery, res.Body, bm25.RawQuery, bm25.Body)
		})
	}
}

// The own search pipeline of an index would run on the frame, and on the page.
func TestSoftModeLeavesIndicesWithAPipelineToTheEngine(t *testing.T) {
	c, m := rental(t)
	c.pipelines = []string{"safe"}
	res, err := New(c, m, with(soft)).Expand(t.Context(), &Request{Index: "docs", Body: []byte(`{"query":{"match":{"title":"car rental"}}}`)})
	check.That(t, err == nil && res.Rewritten && res.onlyRerank() == nil && res.Clauses[0].Reason == reason.Answer, "%+v, %v", res, err)
}

// Behind the window come the hits that the same query finds, so that no page
// has those of another.
func TestSoftModeSearchesBehindTheWindowByTheSameQuery(t *testing.T) {
	const car = `"query":{"match":{"title":"car rental"}}`
	type body struct {
		From, Size any
		Query      json.RawMessage
		Rescore    json.RawMessage
		Version    any
	}
	for _, change := range []func(*Profile){
		func(*Profile) {}, func(o *Profile) { o.Scoring = form.Grouped }, func(o *Profile) { o.Scoring = form.Linear },
		func(o *Profile) { o.Matching = Same },
	} {
		expand := func(b, query string) (res *Result, got body) {
			t.Helper()
			c, m := rental(t)
			res = expanded(t, New(c, m, with(func(o *Profile) { soft(o); change(o) })), &Request{Index: "docs", RawQuery: query, Body: []byte(b)})
			check.OK(t, json.Unmarshal(res.Body, &got))
			return res, got
		}
		first, want := expand(`{`+car+`}`, "")
		check.Must(t, first.onlyRerank() != nil, "%+v", first)
		for _, c := range []struct {
			body, query string
			from, size  any
		}{
			{`{` + car + `,"from":100}`, "", 100., nil},
			{`{` + car + `,"from":9223372036854775807}`, "", 9223372036854775807., nil},
			{`{` + car + `}`, "size=1101", nil, nil},
			{`{` + car + `,"size":1100,"from":1}`, "", 1., 1100.},
			{`{` + car + `,"from":"200","size":"5"}`, "version=false", "200", "5"},
		} {
			res, got := expand(c.body, c.query)
			check.That(t, res.onlyRerank() == nil && res.RawQuery == c.query && got.From == c.from && got.Size == c.size && got.Version == nil && got.Rescore == nil, "%s?%s: %+v %s", c.body, c.query, res, res.Body)
			check.That(t, string(got.Query) == string(want.Query), "%s: got %s\nwant %s", c.body, got.Query, want.Query)
			e := res.Clauses[0]
			check.That(t, e.Phase == "query" && e.Reason == reason.Window && e.Form == "linear", "explained as %+v", e)
		}
	}
}

// An index may let fewer hits be asked for than the window has. It says so
// once.
func TestSoftModeLearnsHowManyHitsMayBeAskedFor(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, with(soft))
	for _, refused := range []struct {
		index string
		limit int64
		want  int
	}{{"other", 30, 100}, {"docs", 50, 50}, {"docs", 500, 50}} {
		e.limits.Learn(Limit{LimitResults, refused.index, refused.limit})
		res := expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":{"match":{"title":"plain"}}}`)})
		want := fmt.Sprintf(`{"from":0,"size":%d,"_source":false,`, refused.want)
		check.That(t, res.onlyRerank() != nil && res.onlyRerank().Window == refused.want && strings.HasPrefix(string(res.Body), want), "%+v %s, want %s", res.onlyRerank(), res.Body, want)
	}
}

func TestSoftModeTellsOfAllComparedTexts(t *testing.T) {
	res := expandSoftly(t, &Request{Body: []byte(`{"query":{"bool":{"must":[{"match":{"title":"car"}},{"match":{"title":"unheard"}}],
		"filter":[{"match":{"title":"car"}}]}}}`)})
	var got []string
	for _, c := range res.Clauses {
		got = append(got, fmt.Sprint(c.Path, " ", c.Phase, " ", c.Reason))
	}
	want := []string{"query.bool.must[0].match rerank ", "query.bool.must[1].match rerank no_neighbors", "query.bool.filter  not_scoring"}
	diff := cmp.Diff(want, got)
	check.That(t, res.onlyRerank() != nil && diff == "", "(-want +got)\n%s", diff)
}

func TestSoftModeOrdersEachSearchOfMultiSearch(t *testing.T) {
	const car, sorted, paged = `{"query":{"match":{"title":"car rental"}}}`, `{"query":{"match":{"title":"car"}},"sort":["price"]}`,
		`{"from":3,"query":{"match":{"title":"plain"}},"size":4,"version":true}`
	lines := []string{`{}`, car, `{"index":"docs"}`, sorted, `{}`, `{"query":`, `{"preference":"_local"}`, paged}
	res := expandSoftly(t, &Request{Endpoint: EndpointMultiSearch, RawQuery: "typed_keys=true&preference=a", Body: []byte(strings.Join(lines, "\n") + "\n")})
	one, four := expandSoftly(t, &Request{Body: []byte(car)}), expandSoftly(t, &Request{Body: []byte(paged)})
	two := expandSoftly(t, &Request{Body: []byte(sorted)})
	want := strings.Join([]string{lines[0], string(one.Body), lines[2], string(two.Body), lines[4], lines[5], lines[6], string(four.Body), ""}, "\n")
	diff := cmp.Diff(want, string(res.Body))
	check.That(t, diff == "" && res.RawQuery == "typed_keys=true&preference=a", "?%s (-want +got)\n%s", res.RawQuery, diff)
	ignored := []cmp.Option{cmpopts.IgnoreFields(RerankField{}, "Similarities", "Weights"), cmpopts.IgnoreFields(SideSearch{}, "RawQuery"), cmpopts.IgnoreUnexported(Rerank{})}
	check.Equal(t, "preference=_local", res.Parts[3].Rerank.Page.RawQuery, "the page is asked for")
	diff = cmp.Diff([]*Rerank{one.onlyRerank(), nil, nil, four.onlyRerank()}, res.Reranks(), ignored...)
	check.That(t, diff == "" && len(res.Parts[3].Rerank.Fields) == 1, "(-want +got)\n%s", diff)
	var got []string
	for _, c := range res.Clauses {
		got = append(got, fmt.Sprint(c.Path, " ", c.Phase, " ", c.Reason))
	}
	told := []string{"[0].query.match rerank ", "[1].query.match query sort", "[2]  not_json", "[3].query.match rerank no_neighbors"}
	check.Equal(t, told, got)
}

// severalCars is a _msearch of n searches.
func severalCars(n int) []byte {
	return []byte(strings.Repeat("{}\n{\"query\":{\"match\":{\"title\":\"car\"}}}\n", n))
}

func TestSoftModeOrdersTheHitsOfSoManySearchesAtOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		fixed reason.Reason
		want  reason.Reason
	}{
		{"one", 1, "", ""},
		{"most", maxReranked, "", ""},
		{"too many", maxReranked + 1, "", reason.TooManyReranked},
		{"an answer that stays", 2, reason.Answer, reason.Answer},
		{"too many of them", maxReranked + 1, reason.Answer, reason.Answer},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := expandSoftly(t, &Request{Endpoint: EndpointMultiSearch, Body: severalCars(c.n), Fixed: c.fixed})
			check.Must(t, len(res.Clauses) == c.n && res.Rewritten, "%+v", res)
			for _, clause := range res.Clauses {
				check.Equal(t, c.want, clause.Reason, clause, "the reason")
			}
			check.That(t, (len(res.Reranks()) == c.n) == (c.want == "") && (len(res.Reranks()) == 0) == (c.want != ""), "%d searches are reranked", len(res.Reranks()))
		})
	}
}

func TestSoftModeOfRatedSearchesIsBM25(t *testing.T) {
	res := expandSoftly(t, &Request{Endpoint: EndpointRankEval, Body: []byte(`{"requests":[{"id":"a","request":{"query":{"match":{"title":"car"}}},"ratings":[]}]}`)})
	check.That(t, len(res.Reranks()) == 0 && len(res.Clauses) == 1 && res.Clauses[0].Reason == reason.Endpoint, "%+v", res)
}

// Whatever a body holds, of its members besides the query only those of the page
// change, and the page that the client gets lies in the window.
func FuzzSoftModeChangesThePageAlone(f *testing.F) {
	for _, seed := range []string{
		`{"query":{"match":{"title":"plain"}}}`, `{"size":3,"from":2,"query":{"match":{"title":"car rental"}},"version":true}`,
		` { "\u0073ize" : 7, "query" : {"bool":{"should":[{"match":{"title":"car"}},{"match":{"body":"cheap"}}]}}, "highlight":{"fields":{"a":{}}}}`,
		`{"query":{"match":{"title":"car"}},"_source":false,"seq_no_primary_term":"true","size":"5"}`,
		`{"query":{"match":{"title":"car"}},"from":99,"size":300}`, `{"query":{"match":{"title":"car"}},"from":1e2,"version":"tru"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		res := expandSoftly(t, &Request{Body: []byte(body)})
		if res.onlyRerank() == nil {
			return
		}
		var was, is map[string]json.RawMessage
		check.Must(t, json.Unmarshal([]byte(body), &was) == nil && json.Unmarshal(res.Body, &is) == nil, "%s became %s", body, res.Body)
		onlyRerank := res.onlyRerank()
		asked := strconv.Itoa(onlyRerank.Asked())
		for name, want := range map[string]string{"from": "0", "size": asked, "docvalue_fields": `["_seq_no"]`, "version": "true", "_source": "false"} {
			check.That(t, string(is[name]) == want, "%s is %s in %s", name, is[name], res.Body)
			delete(is, name)
			delete(was, name)
		}
		for _, members := range []map[string]json.RawMessage{was, is} {
			delete(members, "query")
		}
		for _, name := range ofHits {
			delete(was, name)
		}
		for _, other := range [][]byte{onlyRerank.InOrder.Body, onlyRerank.PageOf(make([]Hit, 2)).Body} {
			check.That(t, json.Valid(other), "%s became %s", body, other)
		}
		check.Equal(t, was, is, body, string(res.Body))
		r := res.onlyRerank()
		check.That(t, r.From >= 0 && r.Size >= 1 && r.From < r.Window && r.From+r.Size <= r.Window+maxBehind && len(r.Fields) != 0, "%+v", r)
	})
}

func TestSoftModeNeedsDocumentFrequencies(t *testing.T) {
	c, m := rental(t)
	m.docs = 0
	e := New(c, m, with(soft))
	res := expanded(t, e, &Request{Index: "docs", Body: []byte(`{"query":{"match":{"title":"car"}}}`)})
	check.That(t, res.onlyRerank() == nil && res.Clauses[0].Reason == reason.NoWeights, "%+v", res)
}
