package dsl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/reason"
)

// parse parses a body that is one.
func parse(tb testing.TB, body string) *Search {
	tb.Helper()
	s, why := (&Parser{Rescores: true, Hybrid: true}).Parse([]byte(body), new(Parameters))
	check.Must(tb, why == "", "%s: %s", body, why)
	return s
}

// found lists the clauses of a search: those to expand by their paths, the others
// with the reason behind.
func found(s *Search) []string {
	var out []string
	for _, c := range s.Clauses {
		line := c.Path
		if c.Reason != "" {
			line += " " + string(c.Reason)
		}
		out = append(out, line)
	}
	return out
}

func TestAClauseIsRequiredInMustsAlone(t *testing.T) {
	for body, want := range map[string]bool{
		`{"query":{"match":{"body":"car"}}}`:                                            true,
		`{"query":{"bool":{"must":{"match":{"body":"car"}}}}}`:                          true,
		`{"query":{"bool":{"must":[{"bool":{"must":[{"match":{"body":"car"}}]}}]}}}`:    true,
		`{"query":{"bool":{"should":[{"match":{"body":"car"}}]}}}`:                      false,
		`{"query":{"bool":{"should":[{"bool":{"must":[{"match":{"body":"car"}}]}}]}}}`:  false,
		`{"query":{"nested":{"path":"p","query":{"match":{"p.body":"car"}}}}}`:          false,
		`{"query":{"dis_max":{"queries":[{"match":{"body":"car"}}]}}}`:                  false,
		`{"query":{"query_string":{"query":"car AND (bus OR van)","fields":["body"]}}}`: true, // as a whole
		`{"retriever":{"standard":{"query":{"match":{"body":"car"}}}}}`:                 false,
	} {
		if got := parse(t, body).Clauses[0].Required(); got != want {
			t.Errorf("%s is required: %t", body, got)
		}
	}
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
		"retrievers that the engine makes": {
			`{"retriever":{"rrf":{"query":"car","fields":["a","b"],"filter":` + leaf + `,"rank_window_size":50}}}`,
			[]string{"retriever.rrf.query retriever_fields"},
		},
		"hybrid": {
			`{"query":{"hybrid":{"fusion":{"a":1},"filter":` + leaf + `,"queries":[{"knn":{"v":{"k":5}}},` + leaf + `,{"hybrid":{"queries":[` + leaf + `]}}],"pagination_depth":50}}}`,
			[]string{"query.hybrid.filter not_scoring", "query.hybrid.queries[0].knn other_query", "query.hybrid.queries[1].match", "query.hybrid.queries[2].hybrid hybrid"},
		},
		"hybrid in another query":    {`{"query":{"bool":{"must":[{"hybrid":{"queries":[` + leaf + `]}},` + leaf + `]}}}`, []string{"query.bool.must[0].hybrid hybrid", "query.bool.must[1].match"}},
		"hybrid in a retriever":      {`{"retriever":{"standard":{"query":{"hybrid":{"queries":[` + leaf + `]}}}}}`, []string{"retriever.standard.query.hybrid hybrid"}},
		"hybrid without sub-queries": {`{"query":{"hybrid":{"queries":[]}}}`, nil},
		"queries that models and templates make": {
			`{"query":{"bool":{"should":[{"kql":{"query":"a"}},{"template":{"match":{"a":"b"}}},{"agentic":{"query_text":"a"}}]}}}`,
			[]string{"query.bool.should[0].kql kql", "query.bool.should[1].template template_query", "query.bool.should[2].agentic agentic_query"},
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
			check.Equal(t, tt.want, found(parse(t, tt.body)), "clauses")
		})
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
		`"function_score":{"score_mode":"avg",`:         false, // of its functions
		`"has_child":{"type":"c","score_mode":"max",`:   false,
		`"has_parent":{"parent_type":"c","score":true,`: false,
	} {
		s := parse(t, `{"query":{`+kind+`"query":{"match":{"body":"car"}}}}}`)
		check.Equal(t, same, s.Clauses[0].Matches >= Same, kind)
	}
}

func TestScanSaysWhetherHitsCanBeRescored(t *testing.T) {
	for member, want := range map[string]reason.Reason{
		`"size":5`:                 "",
		`"sort":[]`:                "",
		`"sort":["_score"]`:        reason.Sort,
		`"collapse":{"field":"a"}`: reason.Collapse,
		`"rescore":{}`:             reason.Rescore,
		`"search_after":[1]`:       reason.SearchAfter,
		`"retriever":{}`:           reason.Retriever,
		`"knn":{}`:                 reason.Vectors,
		`"rank":{"rrf":{}}`:        reason.Vectors,
	} {
		check.Equal(t, want, parse(t, `{"query":{"match":{"body":"car"}},`+member+`}`).NoRescore, member)
	}
}

func TestScoresThatAreValuesAreNotRescored(t *testing.T) {
	const leaf = `"query":{"match":{"a":"car"}}`
	for query, want := range map[string]reason.Reason{
		`"function_score":{` + leaf + `,"field_value_factor":{"field":"n"},"boost_mode":"replace"}`:                                reason.Values,
		`"function_score":{` + leaf + `,"field_value_factor":{"field":"ctr7_score"},"boost_mode":"REPLACE"}`:                       reason.Values,
		`"function_score":{` + leaf + `,"boost_mode":"replace","functions":[{"random_score":{}},{"script_score":{"script":"1"}}]}`: reason.Values,
		`"function_score":{` + leaf + `,"boost_mode":"replace","script_score":{"script":{"source":"_score * 2"}}}`:                 "",
		`"function_score":{` + leaf + `,"field_value_factor":{"field":"n"}}`:                                                       "",
		`"script_score":{` + leaf + `,"script":{"source":"doc['n'].value"},"min_score":1}`:                                         reason.Values,
		`"script_score":{` + leaf + `,"script":{"source":"doc['n'].value + _score"}}`:                                              "",
		`"bool":{"must":{"script_score":{` + leaf + `,"script":{"id":"stored"}}}}`:                                                 reason.Values,
		`"bool":{"must":{"match":{"a":"car"}},"filter":{"script_score":{` + leaf + `,"script":{"source":"1"}}}}`:                   "",
	} {
		check.Equal(t, want, parse(t, `{"query":{`+query+`}}`).NoRescore, query)
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
		s := parse(t, `{"query":{"match":{"body":"car"}},`+body+`}`)
		check.Equal(t, want, s.Hits.None && !s.Scores.Aggregated, body)
	}
}

func TestNotesAreBounded(t *testing.T) {
	s := parse(t, `{"query":{"bool":{"should":[`+strings.Repeat(`{"term":{"a":"b"}},`, 1000)+`{"match":{"body":"car"}}]}}}`)
	check.That(t, len(s.Clauses) == maxNotes+1 && s.Clauses[maxNotes].Path == "query.bool.should[1000].match", "%d clauses, the last one %q", len(s.Clauses), s.Clauses[len(s.Clauses)-1].Path)
	check.That(t, s.ClauseCount >= 1000, "%d clauses, want at least the 1000 terms", s.ClauseCount)
}

// TestClausesAreReadOnce compares what is read of a clause with how it is shown.
func TestClausesAreReadOnce(t *testing.T) {
	for query, want := range map[string]string{
		`{"match":{"body":"car rental"}}`:                                                                      `query.match "car rental" body`,
		`{"match":{"body":{"query":7,"operator":"AND","boost":2,"analyzer":"english"}}}`:                       `query.match "7" body, analyzer=english, operator=and, boost=2`,
		`{"match":{"body":{"query":"car","minimum_should_match":"2<75%","fuzziness":"AUTO"}}}`:                 `query.match "car" body, minimum_should_match="2<75%", not additive, fuzzy`,
		`{"match":{"body":{"query":"car","operator":"and","minimum_should_match":2}}}`:                         `query.match "car" body, operator=and, minimum_should_match=2, same matches`,
		`{"match":{"body":{"query":"car","operator":"xor"}}}`:                                                  `query.match "car" body, (clause_options)`,
		`{"match":{"a":"car","b":"car"}}`:                                                                      `query.match "" b, (clause_options)`,
		`{"match_bool_prefix":{"body":{"query":"car re","operator":"and"}}}`:                                   `query.match_bool_prefix "car re" body, operator=and, not additive, prefix`,
		`{"match_phrase_prefix":{"body":"car re"}}`:                                                            `query.match_phrase_prefix "car re" body, not additive, same matches, prefix, phrase, (phrase)`,
		`{"multi_match":{"query":"car","fields":["a^2","b","a^3"],"tie_breaker":0.3}}`:                         `query.multi_match "car" b a^3, tie_breaker=0.3`,
		`{"multi_match":{"query":"car","fields":"a*","type":"most_fields"}}`:                                   `query.multi_match "car" a*, tie_breaker=1`,
		`{"multi_match":{"query":"car","fields":["a","b"],"type":"cross_fields","operator":"and"}}`:            `query.multi_match "car" a b, operator=and, not additive, term-centric`,
		`{"multi_match":{"query":"car","fields":["a^1e30"],"boost":10}}`:                                       `query.multi_match "car" a^1e+30, boost=10, (clause_options)`,
		`{"multi_match":{"query":"car","fields":["a"],"type":"odd"}}`:                                          `query.multi_match "car" a, (clause_options)`,
		`{"combined_fields":{"query":"car","fields":["a^2","b"]}}`:                                             `query.combined_fields "car" a^2 b, not additive, term-centric`,
		`{"query_string":{"query":"car","default_field":"a","default_operator":"and","rewrite":"x"}}`:          `query.query_string "car" a, operator=and`,
		`{"query_string":{"query":"a:car"}}`:                                                                   `query.query_string "a:car", (query_syntax)`,
		`{"query_string":{"query":"a:car -b","escape":true}}`:                                                  `query.query_string "a:car -b"`,
		`{"query_string":{"query":"a:car NOT b","escape":true}}`:                                               `query.query_string "a:car NOT b", (query_syntax)`,
		`{"query_string":{"query":"car","fields":["a"],"fuzziness":"AUTO"}}`:                                   `query.query_string "car" a`,
		`{"query_string":{"query":"car","fields":["a","b"],"minimum_should_match":2}}`:                         `query.query_string "car" a b, same matches`,
		`{"query_string":{"query":">car","default_field":"a","escape":true}}`:                                  `query.query_string ">car" a, (query_syntax)`,
		`{"query_string":{"query":"car","fields":["a","b"],"type":"most_fields"}}`:                             `query.query_string "car" a b, tie_breaker=1`,
		`{"query_string":{"query":"car re","fields":["a"],"type":"bool_prefix"}}`:                              `query.query_string "car re" a, tie_breaker=1, not additive, prefix`,
		`{"query_string":{"query":"car","fields":["a"],"type":"phrase","phrase_slop":2}}`:                      `query.query_string "car" a, not additive, same matches, phrase, (phrase)`,
		`{"simple_query_string":{"query":"car","fields":["a","b"]}}`:                                           `query.simple_query_string "car" a b, tie_breaker=1, not additive`,
		`{"simple_query_string":{"query":"a AND b","fields":["a"],"minimum_should_match":1}}`:                  `query.simple_query_string "a AND b" a, minimum_should_match=1, words=3, tie_breaker=1`,
		`{"simple_query_string":{"query":"car","fields":["a","b"],"minimum_should_match":1}}`:                  `query.simple_query_string "car" a b, minimum_should_match=1, words=1, tie_breaker=1, not additive, term-centric`,
		`{"simple_query_string":{"query":"car","fields":["a","b"],"default_operator":"and","flags":128}}`:      `query.simple_query_string "car" a b, operator=and, words=1, tie_breaker=1, not additive, term-centric`,
		`{"simple_query_string":{"query":"car","fields":["a","b"],"default_operator":"and","flags":"OR|AND"}}`: `query.simple_query_string "car" a b, operator=and, tie_breaker=1, not additive`,
		`{"simple_query_string":{"query":"car","fields":["a","b"],"minimum_should_match":1,"flags":"NONE"}}`:   `query.simple_query_string "car" a b, tie_breaker=1, not additive, same matches`,
		`{"simple_query_string":{"query":"car","fields":["a","b"],"type":"cross_fields"}}`:                     `query.simple_query_string "car" a b, not additive, term-centric`,
		`{"simple_query_string":{"query":"car","fields":["a","b"],"type":"bool_prefix"}}`:                      `query.simple_query_string "car" a b, tie_breaker=1, not additive, (clause_options)`,
		`{"term":{"a":"b"}}`: `query.term, (term_level)`,
		`{"nested":{"path":"n","query":{"match":{"n.a":"car"}}}}`: `query.nested.query.match "car" n.a, same matches`,
	} {
		got := strings.TrimSuffix(parse(t, `{"query":`+query+`}`).shown(), "\nother scores\n")
		check.That(t, strings.TrimSpace(got) == want, "%s:\ngot  %s\nwant %s", query, got, want)
	}
	const body = `{"query":{"match":{"a":"car"}},"size":0,"min_score":1,"sort":["b"],"track_scores":true,"pit":{"id":"x"},"terminate_after":3,"ext":{},"rescore":[]}`
	const want = `query.match "car" a, same matches
point in time
min_score
sorted
scores tracked
first matches only
no hits
bare hits
own rescore
no rescore: rescore
`
	check.Equal(t, want, parse(t, body).shown(), "search")
}

func TestOnlyHitsWithTheHighestScoresFirstAreSortedByScore(t *testing.T) {
	for sort, sorted := range map[string]bool{
		`"_score"`: false, `["_score",{"a":"asc"}]`: false, `{"_score":{}}`: false, `[{"_score":"desc"}]`: false, `[{"_score":{"order":"desc"}}]`: false,
		`{"_score":"asc"}`: true, `[{"_score":"asc"},"a"]`: true, `[ { "_score" : { "order" : "ASC" } } ]`: true, `["a",{"_score":"desc"}]`: true,
	} {
		check.Equal(t, sorted, parse(t, `{"sort":`+sort+`}`).Scores.Sorted, sort)
	}
	for sort, sorted := range map[string]bool{"_score": false, "_score:desc,a": false, "_score:asc": true, "_score:asc,a": true, "a,_score": true} {
		p, why := ReadParameters("sort=" + sort)
		check.Must(t, why == "", "%s: %s", sort, why)
		s, why := new(Parser).Parse([]byte(`{}`), &p)
		check.Must(t, why == "", "%s: %s", sort, why)
		check.Equal(t, sorted, s.Scores.Sorted, sort)
	}
}

// shown returns a search as a line for each clause, and what else it says.
func (s *Search) shown() string {
	var b strings.Builder
	for i := range s.Clauses {
		b.WriteString(s.Clauses[i].shown() + "\n")
	}
	for _, flag := range []struct {
		on   bool
		name string
	}{
		{s.PIT.Has, "point in time"},
		{s.Scores.Min, "min_score"},
		{s.Scores.Sorted, "sorted"},
		{s.Scores.Tracked, "scores tracked"},
		{s.Scores.Aggregated, "scores aggregated"},
		{s.Scores.Others, "other scores"},
		{s.Scores.FirstOnly, "first matches only"},
		{s.Hits.None, "no hits"},
		{s.Hits.Bare || s.Hits.Ext, "bare hits"},
		{s.OwnRescore, "own rescore"},
		{s.KNN, "knn"},
		{s.NoRescore != "", "no rescore: " + string(s.NoRescore)},
	} {
		if flag.on {
			b.WriteString(flag.name + "\n")
		}
	}
	return b.String()
}

// shown returns a clause: its path, the text, the fields, what is not
// usual, and the reason to leave it alone.
func (c *Clause) shown() string {
	var b strings.Builder
	b.WriteString(c.Path)
	if c.Role != Note {
		fmt.Fprintf(&b, " %q", c.Text)
	}
	for _, f := range c.Fields {
		b.WriteString(" " + f.Name)
		if f.Boost != 1 {
			fmt.Fprintf(&b, "^%v", f.Boost)
		}
	}
	for _, option := range []struct {
		on   bool
		text string
	}{
		{c.Analyzer != "", "analyzer=" + c.Analyzer},
		{c.OperatorAnd, "operator=and"},
		{len(c.MinimumShouldMatch) > 0, "minimum_should_match=" + string(c.MinimumShouldMatch)},
		{c.Words > 0, fmt.Sprintf("words=%d", c.Words)},
		{c.Boost != 1 && c.Role != Note, fmt.Sprintf("boost=%v", c.Boost)},
		{c.TieBreaker != 0, fmt.Sprintf("tie_breaker=%v", c.TieBreaker)},
		{!c.Additive && c.Role != Note, "not additive"},
		{c.Matches >= Same, "same matches"},
		{c.TermCentric(), "term-centric"},
		{c.Prefix, "prefix"},
		{c.Phrase, "phrase"},
		{c.Fuzzy, "fuzzy"},
		{c.Reason != "", "(" + string(c.Reason) + ")"},
	} {
		if option.on {
			b.WriteString(", " + option.text)
		}
	}
	return b.String()
}
