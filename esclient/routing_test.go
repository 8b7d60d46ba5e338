package esclient

import (
	"net/http"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

func TestAliasThatRoutesSearchesIsTold(t *testing.T) {
	const answer = `{
		"docs":{"mappings":{"properties":{"f":{"type":"text"}}},"aliases":{"part":{"filter":{"term":{"f":"x"}}},
			"tenant":{"search_routing":"1"},"tenant-2.x":{"search_routing":"1,2"},"tenant-all":{},"written":{"index_routing":"1"}}},
		"more":{"mappings":{"properties":{"f":{"type":"text"}}}},
		"other":{"mappings":{"properties":{"g":{"type":"text"}}},"aliases":{"of-other":{"search_routing":"1"}}}}`
	for expression, want := range map[string]bool{
		"":                      false,
		"_all":                  false,
		"docs":                  false,
		"docs,more":             false,
		"tenant-all":            false,
		"written":               false,
		"of-other":              false, // its index has no such field
		"tenant":                true,
		"tenant-2.x":            true,
		"more,tenant":           true,
		"ten*":                  true,
		"*":                     true,
		"<tenant-{now/d}>":      true,
		"docs,<{now/d{M,d}}-x>": true,
		"d*":                    false,
		"part":                  false,
	} {
		c := cached(t, clustertest.New().Reply("GET ", http.StatusOK, answer).Reply("POST /_analyze", http.StatusOK, oneToken))
		for range 2 {
			// Only the alias "part" has a filter.
			a := analyze(t, c, expression, "f", "x")
			filtered := at(expression).mayName("part")
			check.That(t, a.Routed == want && a.Filtered == filtered, "%q: routed is %t, want %t, filtered is %t, want %t", expression, a.Routed, want, a.Filtered, filtered)
		}
	}
}

// oneToken is an answer of _analyze.
const oneToken = `{"tokens":[{"token":"x","start_offset":0,"end_offset":1,"position":0}]}`

// The pipeline of an index may add a filter to every search.
func TestASearchPipelineOfTheIndexFilters(t *testing.T) {
	for pipeline, want := range map[string]bool{`"mine"`: true, `"_none"`: false} {
		f := clustertest.New().Reply("GET ", http.StatusOK, `{"docs":`+mapped(`"f":{"type":"text"}`, `"index.search.default_pipeline":`+pipeline)+`}`)
		a := analyze(t, cached(t, f.Reply("POST /_analyze", http.StatusOK, oneToken)), "docs", "f", "x")
		check.That(t, a.Filtered == want && (len(a.Pipelines) > 0) == want, "%s: filtered is %t, pipelines are %q", pipeline, a.Filtered, a.Pipelines)
	}
}

func TestAnalysisTellsTheNameOfItsAnalyzer(t *testing.T) {
	const answer = `{"indices":{"mappings":{"properties":{"f":{"type":"text","analyzer":"english","search_analyzer":"simple"},` +
		`"g":{"type":"text"}}}}}`
	f := answers(
		mapped(`"f":{"type":"text","analyzer":"simple"}`, `"index.analysis.analyzer.one.tokenizer":"standard"`),
		mapped(`"f":{"type":"text","analyzer":"simple"}`, `"index.analysis.analyzer.two.tokenizer":"standard"`),
	).Reply("GET /indices", http.StatusOK, answer).Reply("POST /_analyze", http.StatusOK, oneToken)
	c := cached(t, f)
	for _, test := range []struct{ index, field, analyzer, want string }{
		{"indices", "f", "", "simple"},
		{"indices", "g", "", "default"},
		{"indices", "g", "english", "english"},
		{"i*", "f", "", "simple"},
		{"i*", "f", "english", "english"},
	} {
		a, err := c.Analyze(t.Context(), at(test.index), test.field, test.analyzer, "x")
		check.That(t, err == nil && a.Analyzer == test.want, "%s of %s by %q: %+v, %v; want %q", test.field, test.index, test.analyzer, a, err, test.want)
	}
}

// Analyzers of several names that the indices define alike must not pass for
// those of a field whose names are the other way round.
func TestNamesOfAnalyzersStandWithTheirIndices(t *testing.T) {
	of := func(names ...string) string {
		fields := make([]mapping.Field, len(names))
		for i, name := range names {
			fields[i] = mapping.Field{Target: mapping.Target{Index: string(rune('a' + i))}, Analyzers: mapping.Analyzers{SearchAnalyzer: name}}
		}
		s, err := mapping.Merge(fields)
		check.OK(t, err)
		return s.SearchAnalyzers
	}
	check.Equal(t, "default", of("default", "default"))
	if a, b := of("default", "standard"), of("standard", "default"); a == b || a == "default" {
		t.Errorf("%q and %q", a, b)
	}
}

// Processors of requests that are not known to leave the query unread may read
// it.
func TestPipelinesThatReadTheQuery(t *testing.T) {
	for definition, want := range map[string]bool{
		`{}`: false,
		`{"phase_results_processors":[{"normalization-processor":{}}],"response_processors":[{"rerank":{}}]}`:          false,
		`{"request_processors":[{"filter_query":{"query":{"match":{"a":"b"}}}},{"oversample":{}}]}`:                    false,
		`{"request_processors":[{"script":{}}]}`:                                                                       true,
		`{"request_processors":[{"neural_query_enricher":{}},{"ml_inference":{"input_map":[{"a":"query.match.b"}]}}]}`: true,
		`{"request_processors":[{"of tomorrow":{}}]}`:                                                                  true,
		`{"request_processors":1}`: true,
	} {
		check.Equal(t, want, ReadsQuery([]byte(definition)), definition)
		if definition == `{"request_processors":1}` { // no cluster takes it
			continue
		}
		f := clustertest.New().Reply("GET /_search/pipeline/mine", http.StatusOK, `{"mine":`+definition+`}`)
		c := cached(t, f)
		for range 2 {
			got, err := c.ReadsQuery(t.Context(), "mine")
			check.That(t, err == nil && got == want, "%s: %t, %v, want %t", definition, got, err, want)
		}
	}
	check.That(t, check.ErrOf(cached(t, clustertest.New().Reply("GET ", http.StatusForbidden, `{"error":{"type":"security_exception"},"status":403}`)).ReadsQuery(t.Context(), "x")) != nil, "a pipeline that may not be read is read")
}
