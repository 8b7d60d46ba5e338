package expand

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scanOf scans a body that is one.
func scanOf(tb testing.TB, body string) *scan {
	tb.Helper()
	s := &scanner{rescores: true}
	if err := s.run([]byte(body)); err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return &s.scan
}

// found lists the clauses of a scan: those to expand by their paths, the others
// with the reason behind.
func found(s *scan) []string {
	var out []string
	for _, c := range s.clauses {
		line := c.path
		if c.reason != "" {
			line += " " + string(c.reason)
		}
		out = append(out, line)
	}
	return out
}

func TestEveryPlaceOfQueriesIsSearched(t *testing.T) {
	const leaf = `{"match":{"body":"car"}}`
	for name, tt := range map[string]struct {
		body string
		want []string
	}{
		"match_bool_prefix": {`{"query":{"match_bool_prefix":{"body":"car re"}}}`, []string{"query.match_bool_prefix"}},
		"phrases": {
			`{"query":{"bool":{"must":[{"match_phrase":{"body":"car"}},{"match_phrase_prefix":{"body":"car"}},{"multi_match":{"query":"car","type":"phrase","fields":["a"]}}]}}}`,
			[]string{
				"query.bool.must[0].match_phrase phrase", "query.bool.must[1].match_phrase_prefix phrase",
				"query.bool.must[2].multi_match phrase",
			},
		},
		"simple_query_string": {`{"query":{"simple_query_string":{"query":"anti-aircraft gun","fields":["body"]}}}`, []string{"query.simple_query_string"}},
		"simple_query_string with operators": {
			`{"query":{"dis_max":{"queries":[{"simple_query_string":{"query":"car +rental"}},{"simple_query_string":{"query":"re*"}},{"simple_query_string":{"query":"a | b"}}]}}}`,
			[]string{
				"query.dis_max.queries[0].simple_query_string query_syntax", "query.dis_max.queries[1].simple_query_string query_syntax",
				"query.dis_max.queries[2].simple_query_string query_syntax",
			},
		},
		"a hyphen inside a word":   {`{"query":{"query_string":{"query":"anti-aircraft gun","fields":["body"]}}}`, []string{"query.query_string"}},
		"a hyphen before a word":   {`{"query":{"query_string":{"query":"gun -aircraft","fields":["body"]}}}`, []string{"query.query_string query_syntax"}},
		"combined_fields":          {`{"query":{"combined_fields":{"query":"car","fields":["a^2","b"]}}}`, []string{"query.combined_fields"}},
		"script_score":             {`{"query":{"script_score":{"query":` + leaf + `,"script":{"source":"_score"}}}}`, []string{"query.script_score.query.match"}},
		"has_child and has_parent": {`{"query":{"has_child":{"type":"c","query":{"has_parent":{"parent_type":"p","query":` + leaf + `}}}}}`, []string{"query.has_child.query.has_parent.query.match"}},
		"boosting":                 {`{"query":{"boosting":{"positive":` + leaf + `,"negative":` + leaf + `,"negative_boost":0.5}}}`, []string{"query.boosting.positive.match", "query.boosting.negative not_scoring"}},
		"pinned and rule":          {`{"query":{"pinned":{"ids":["1"],"organic":{"rule":{"organic":{"rule_query":{"organic":` + leaf + `}}}}}}}`, []string{"query.pinned.organic.rule.organic.rule_query.organic.match"}},
		"filters": {
			`{"query":{"bool":{"filter":[` + leaf + `],"must_not":[` + leaf + `],"must":{"constant_score":{"filter":` + leaf + `}},"should":[]}}}`,
			[]string{"query.bool.filter not_scoring", "query.bool.must_not not_scoring", "query.bool.must.constant_score not_scoring"},
		},
		"other kinds": {
			`{"query":{"bool":{"should":[{"term":{"a":"b"}},{"span_near":{"clauses":[]}},{"intervals":{"a":{}}},{"knn":{}},{"frob":{}}]}}}`,
			[]string{
				"query.bool.should[0].term term_level", "query.bool.should[1].span_near positions",
				"query.bool.should[2].intervals positions", "query.bool.should[3].knn other_query", "query.bool.should[4].frob unknown_query",
			},
		},
		"retriever.standard": {`{"retriever":{"standard":{"query":` + leaf + `,"filter":` + leaf + `}}}`, []string{"retriever.standard.query.match"}},
		"retrievers inside others": {
			`{"retriever":{"text_similarity_reranker":{"retriever":{"rrf":{"retrievers":[{"standard":{"query":` + leaf +
				`}},{"knn":{"filter":` + leaf + `}},{"retriever":{"standard":{"query":` + leaf + `}},"weight":2}]}},"inference_text":"car"}}}`,
			[]string{
				"retriever.text_similarity_reranker.retriever.rrf.retrievers[0].standard.query.match",
				"retriever.text_similarity_reranker.retriever.rrf.retrievers[2].retriever.standard.query.match",
			},
		},
		"linear retrievers": {
			`{"retriever":{"linear":{"retrievers":[{"retriever":{"standard":{"query":` + leaf + `}},"weight":2,"normalizer":"minmax"}]}}}`,
			[]string{"retriever.linear.retrievers[0].retriever.standard.query.match"},
		},
		"rescore": {
			`{"query":` + leaf + `,"rescore":[{"window_size":50,"query":{"rescore_query":` + leaf + `,"query_weight":0.7}},{"script":{}}]}`,
			[]string{"query.match", "rescore[0].query.rescore_query.match"},
		},
		"places that no query of hits stands in": {
			`{"query":` + leaf + `,"post_filter":` + leaf + `,"aggs":{"a":{"filter":` + leaf + `}},"suggest":{"s":{"text":"car","term":{"field":"body"}}},"knn":{"field":"v","filter":` + leaf + `},"highlight":{"highlight_query":` + leaf + `},"indices_boost":[{"a":2}]}`,
			[]string{"query.match"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, found(scanOf(t, tt.body))); diff != "" {
				t.Errorf("clauses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnRescoreQueriesAreReadWhereConfigured(t *testing.T) {
	const body = `{"query":{"term":{"a":"b"}},"rescore":{"query":{"rescore_query":{"match":{"body":"car rental"}}}}}`
	for configured, want := range map[bool]int{false: 0, true: 3} {
		r := expandRequest(t, &Request{Body: []byte(body)}, func(_ *fakeCluster, o *Options) { o.RescoreQueries = configured })
		if got := r.AddedTerms(); got != want {
			t.Errorf("configured %t: %d terms added, want %d:\n%s", configured, got, want, r.Body)
		}
	}
}

func TestPhrasesAreExpandedWhereConfigured(t *testing.T) {
	const body = `{"query":{"match_phrase":{"body":{"query":"car rental","slop":2}}}}`
	r := expandRequest(t, &Request{Body: []byte(body)}, func(_ *fakeCluster, o *Options) { o.Phrases, o.Scoring = true, FormAuto })
	want := `{"query":{"bool":{"must":[{"match_phrase":{"body":{"query":"car rental","slop":2}}}],"should":[{"term":`
	if !strings.HasPrefix(string(r.Body), want) {
		t.Errorf("the phrase is to decide what is found: %s", r.Body)
	}
}

func TestScoresOfSeveralMatchesDecideWhatMayMatch(t *testing.T) {
	for kind, same := range map[string]bool{
		`"nested":{"path":"p",`:                         true, // avg is the default
		`"nested":{"path":"p","score_mode":"min",`:      true,
		`"nested":{"path":"p","score_mode":"sum",`:      false,
		`"nested":{"path":"p","score_mode":"none",`:     false,
		`"has_child":{"type":"c",`:                      false, // none is the default
		`"has_child":{"type":"c","score_mode":"avg",`:   true,
		`"has_child":{"type":"c","score_mode":"max",`:   false,
		`"has_parent":{"parent_type":"c","score":true,`: false,
	} {
		s := scanOf(t, `{"query":{`+kind+`"query":{"match":{"body":"car"}}}}}`)
		if got := s.clauses[0].same; got != same {
			t.Errorf("%s: same = %t, want %t", kind, got, same)
		}
	}
}

func TestScanSaysWhetherHitsCanBeRescored(t *testing.T) {
	for member, want := range map[string]Reason{
		`"size":5`:                 "",
		`"sort":[]`:                "",
		`"sort":["_score"]`:        ReasonSort,
		`"collapse":{"field":"a"}`: ReasonCollapse,
		`"rescore":{}`:             ReasonRescore,
		`"search_after":[1]`:       ReasonSearchAfter,
		`"retriever":{}`:           ReasonRetriever,
		`"knn":{}`:                 ReasonVectors,
		`"rank":{"rrf":{}}`:        ReasonVectors,
	} {
		if got := scanOf(t, `{"query":{"match":{"body":"car"}},`+member+`}`).bar; got != want {
			t.Errorf("%s: bar %q, want %q", member, got, want)
		}
	}
}

func TestUnscoredSearchesAreKnown(t *testing.T) {
	for body, want := range map[string]bool{
		`"size":0`:  true,
		`"size":10`: false,
		`"size":0,"aggs":{"a":{"terms":{"field":"x"}}}`:                                                                      true,
		`"size":0,"aggs":{"a":{"terms":{"field":"x"},"aggs":{"t":{"top_hits":{}}}}}`:                                         false,
		`"size":0,"aggregations":{"a":{"terms":{"field":"x","order":{"s":"asc"}},"aggs":{"s":{"max":{"script":"_score"}}}}}`: false,
		`"size":0,"aggs":{"a":{"diversified_sampler":{}}}`:                                                                   false,
	} {
		var s scanner
		if err := s.run([]byte(`{"query":{"match":{"body":"car"}},` + body + `}`)); err != nil {
			t.Fatal(err)
		}
		if got := s.scan.noHits && !s.scan.scoredAggregations; got != want {
			t.Errorf("%s: unscored %t, want %t", body, got, want)
		}
	}
}

func TestNotesAreBounded(t *testing.T) {
	s := scanOf(t, `{"query":{"bool":{"should":[`+strings.Repeat(`{"term":{"a":"b"}},`, 1000)+`{"match":{"body":"car"}}]}}}`)
	if len(s.clauses) != maxNotes+1 || s.clauses[maxNotes].path != "query.bool.should[1000].match" {
		t.Errorf("%d clauses, the last one %q", len(s.clauses), s.clauses[len(s.clauses)-1].path)
	}
	if s.leaves < 1000 {
		t.Errorf("%d leaves, want at least the 1000 terms", s.leaves)
	}
}

func TestSourceParameterIsABody(t *testing.T) {
	body := expandRequest(t, &Request{Body: []byte(carRental)}, nil)
	source := `pretty&source=%7B%22query%22%3A%7B%22match%22%3A%7B%22body%22%3A%22car+rental%22%7D%7D%7D&source_content_type=application%2Fjson&routing=a`
	r := expandRequest(t, &Request{RawQuery: source}, nil)
	if r.RawQuery != "pretty&routing=a" || string(r.Body) != string(body.Body) {
		t.Errorf("raw query %q, body %s", r.RawQuery, r.Body)
	}
}

func TestIndicesOptionsReachTheCluster(t *testing.T) {
	c, m := rental(t)
	seen := &watched{fakeCluster: c}
	_, err := New(seen, m, DefaultOptions()).Expand(t.Context(), &Request{
		Index: "docs", RawQuery: "ignore_unavailable=true&pretty&expand_wildcards=open%2Chidden", Body: []byte(carRental),
	})
	want := Indices{Expression: "docs", Options: "expand_wildcards=open%2Chidden&ignore_unavailable=true"}
	if err != nil || seen.indices != want {
		t.Errorf("indices %+v, error %v; want %+v", seen.indices, err, want)
	}
}

func TestMoreMatchesMayNotTakePlaces(t *testing.T) {
	for body, same := range map[string]bool{
		`{"query":{"has_child":{"type":"c","max_children":2,"query":{"match":{"body":"car"}}}}}`:                    true,
		`{"query":{"has_child":{"type":"c","min_children":2,"query":{"match":{"body":"car"}}}}}`:                    false,
		`{"query":{"has_child":{"query":{"match":{"body":"car"}},"score_mode":"sum","max_children":2,"type":"c"}}}`: true,
		`{"query":{"match":{"body":"car"}},"terminate_after":100}`:                                                  true,
		`{"query":{"match":{"body":"car"}},"terminate_after":0}`:                                                    false,
	} {
		r := expandRequest(t, &Request{Body: []byte(body)}, nil)
		if got := strings.Contains(string(r.Body), `{"bool":{"must":[`); got != same {
			t.Errorf("%s: only what the original matches: %t, want %t:\n%s", body, got, same, r.Body)
		}
	}
	r := expandRequest(t, &Request{RawQuery: "terminate_after=7", Body: []byte(carRental)}, nil)
	if !strings.Contains(string(r.Body), `{"bool":{"must":[`) {
		t.Errorf("terminate_after in the URL: %s", r.Body)
	}
}

func TestMinScoreOfACountIsHeeded(t *testing.T) {
	for normalize, want := range map[bool]Reason{false: ReasonMinScore, true: ""} {
		r := expandRequest(t, &Request{Endpoint: EndpointCount, RawQuery: "min_score=2", Body: []byte(carRental)}, func(_ *fakeCluster, o *Options) {
			o.NormalizeScores = normalize
		})
		if r.Reason != want {
			t.Errorf("normalised %t: reason %q, want %q", normalize, r.Reason, want)
		}
		if want == "" && !strings.Contains(string(r.Body), `"boost"`) {
			t.Errorf("the score decides what is counted, so the terms keep their boosts: %s", r.Body)
		}
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
		`{"simple_query_string":{"query":"car+rental","fields":["body"]}}`: false, // an operator even there
		`{"query_string":{"query":"car x+y","default_field":"body"}}`:      true,
	} {
		r := expandRequest(t, &Request{Body: []byte(`{"query":` + query + `}`)}, nil)
		found := len(r.Clauses) > 0 && r.Clauses[0].Field == "body" && r.Rewritten
		if found != want {
			t.Errorf("%s: taken for the field body: %t, want %t (%+v)", query, found, want, r.Clauses)
		}
	}
}

func TestSearchesWithVeryManyClausesAreBounded(t *testing.T) {
	many := strings.Repeat(`{"query_string":{"query":"car"}},`, 5000)
	r := expandRequest(t, &Request{Body: []byte(`{"query":{"bool":{"should":[` + many + `{"match":{"body":"car"}}]}}}`)}, func(_ *fakeCluster, o *Options) {
		o.DefaultFields = []string{"body", "title"}
	})
	if r.Reason != ReasonTooManyClauses || len(r.Clauses) > 200 {
		t.Errorf("reason %q, %d clauses told of", r.Reason, len(r.Clauses))
	}
	phrases := strings.Repeat(`{"match_phrase":{"body":"car rental"}},`, 5000)
	r = expandRequest(t, &Request{Body: []byte(`{"query":{"bool":{"should":[` + phrases + `{"match":{"body":"car"}}]}}}`)}, nil)
	if !r.Rewritten || len(r.Clauses) > 200 {
		t.Errorf("beside phrases: rewritten %t, %d clauses told of", r.Rewritten, len(r.Clauses))
	}
	r = expandRequest(t, &Request{Endpoint: EndpointMultiSearch, Body: []byte(strings.Repeat("{}\n"+carRental+"\n", maxSearches+1))}, nil)
	if r.Reason != ReasonTooManySearches {
		t.Errorf("%d searches: reason %q", maxSearches+1, r.Reason)
	}
}

func TestSpentTimeEndsTheExpansionOfEachSearch(t *testing.T) {
	c, m := rental(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := New(c, m, DefaultOptions()).Expand(ctx, &Request{
		Endpoint: EndpointMultiSearch, Body: []byte(strings.Repeat("{}\n"+carRental+"\n", 3)),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("result %+v, error %v", r, err)
	}
}

func TestTermsThatSpanPositionsLeaveMatchingToTheOriginal(t *testing.T) {
	r := expandRequest(t, &Request{Body: []byte(carRental)}, func(c *fakeCluster, o *Options) { c.graph, o.Scoring = true, FormAuto })
	if !strings.HasPrefix(string(r.Body), `{"query":{"bool":{"must":[`) || r.Clauses[0].Form != "linear" {
		t.Errorf("form %q: %s", r.Clauses[0].Form, r.Body)
	}
}

func TestMemoryUsedAgainHoldsNothingOfTheSearchBefore(t *testing.T) {
	c, m := rental(t)
	e := New(c, m, DefaultOptions())
	const body = `{"query":{"multi_match":{"query":"car rental","fields":["sku","body","unbound","title"]}}}`
	var first string
	for i := range 20 { // each round uses the memory of other fields
		r, err := e.Expand(t.Context(), &Request{Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(r.Body)
		}
		if string(r.Body) != first {
			t.Fatalf("round %d: %s\nwant %s", i, r.Body, first)
		}
	}
}

func TestTheLastWordOfAPhrasePrefixIsNoTerm(t *testing.T) {
	for _, query := range []string{
		`{"match_phrase_prefix":{"body":"car rental"}}`, `{"multi_match":{"query":"car rental","fields":["body"],"type":"phrase_prefix"}}`,
	} {
		r := expandRequest(t, &Request{Body: []byte(`{"query":` + query + `}`)}, func(_ *fakeCluster, o *Options) { o.Phrases = true })
		if got := r.Clauses[0].Terms; len(got) != 1 || got[0] != "car" || !r.Rewritten {
			t.Errorf("%s: terms %q", query, got)
		}
	}
}
