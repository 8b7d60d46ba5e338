package esclient

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// wantSchema is a schema for comparison.
type wantSchema struct {
	Targets       []mapping.Target
	Nested        string
	Index, Search string
	Similarity    mapping.Similarity
	K1            float64
	Shards        int
}

func summary(s *mapping.Schema) wantSchema {
	return wantSchema{
		Targets: s.Targets, Nested: s.Nested, Index: s.IndexAnalyzer, Search: s.SearchAnalyzer,
		Similarity: s.Similarity, K1: s.K1, Shards: s.Shards,
	}
}

func TestSchemaOfRecordedMappings(t *testing.T) {
	in := func(source string) []mapping.Target {
		return []mapping.Target{{Index: "library", Shards: 1, Source: source}}
	}
	for _, tt := range []struct {
		answer, field string
		want          wantSchema
	}{
		{"schema", "title", wantSchema{Targets: in("title"), Index: "english", Search: "english", K1: 1.2, Shards: 1}},
		{"schema", "title.std", wantSchema{Targets: in("title"), Index: "default", Search: "default", K1: 1.2, Shards: 1}},
		{"schema low", "low", wantSchema{Targets: in("low"), Index: "my", Search: "my", K1: 0.9, Shards: 1}},
		{"schema nested", "list.text", wantSchema{Targets: in("list.text"), Nested: "list", Index: "english", Search: "english", K1: 1.2, Shards: 1}},
	} {
		for _, r := range clustertest.Engines(t, "testdata") {
			s, err := client(t, clustertest.New().Replay(t, "GET /library", r, tt.answer)).Schema(t.Context(), "library", tt.field)
			check.OK(t, err)
			check.Equal(t, tt.want, summary(s), r.Engine, tt.field)
		}
	}
}

// mapped returns an index's part of an answer: its properties and settings, each
// without its braces.
func mapped(properties, settings string) string {
	if settings != "" {
		settings += ","
	}
	return fmt.Sprintf(`{"mappings":{"properties":{%s}},"settings":{%s"index.number_of_shards":"2"}}`,
		properties, settings)
}

func TestSchema(t *testing.T) {
	const text = `"f":{"type":"text"}`
	const mine = `"f":{"type":"text","analyzer":"mine"}`
	const define = `"index.analysis.analyzer.mine.tokenizer":"standard","index.analysis.analyzer.mine.filter":["x"]`
	// want is the schema of the field's source in these indices, of two shards
	// each, with an analyzer.
	want := func(source, analyzer string, indices ...string) wantSchema {
		w := wantSchema{Index: analyzer, Search: analyzer, K1: 1.2, Shards: 2 * len(indices)}
		for _, index := range indices {
			w.Targets = append(w.Targets, mapping.Target{Index: index, Shards: 2, Source: source})
		}
		return w
	}
	with := func(w wantSchema, change func(*wantSchema)) wantSchema { change(&w); return w }
	scored := func(s mapping.Similarity) wantSchema {
		return with(want("f", "default", "i0"), func(w *wantSchema) { w.Similarity = s })
	}
	for _, tt := range []struct {
		name, field string
		indices     []string
		want        wantSchema
	}{
		{"several indices", "f", []string{mapped(text, ""), mapped(text, "")}, want("f", "default", "i0", "i1")},
		{"an index without the field does not count", "f", []string{mapped("", ""), mapped(text, ""), `{"mappings":{},"settings":{}}`}, want("f", "default", "i1")},
		{
			"a number of shards that is kept back is 1", "f",
			[]string{`{"mappings":{"properties":{"f":{"type":"text"}}}}`},
			with(want("f", "default", "i0"), func(w *wantSchema) { w.Shards, w.Targets[0].Shards = 1, 1 }),
		},
		{
			"names with dots", "a.b.c.d",
			[]string{mapped(`"a.b":{"properties":{"c":{"type":"keyword","fields":{"d":{"type":"text"}}}}}`, "")},
			want("a.b.c", "default", "i0"),
		},
		{
			"the innermost nested object", "a.b.c.d",
			[]string{mapped(`"a":{"type":"nested","properties":{"b":{"type":"nested","properties":{"c":{"properties":{"d":{"type":"text"}}}}}}}`, "")},
			with(want("a.b.c.d", "default", "i0"), func(w *wantSchema) { w.Nested = "a.b" }),
		},
		{
			"default_search of a field that names no analyzer", "f",
			[]string{mapped(text, `"index.analysis.analyzer.default_search.type":"english"`)},
			with(want("f", "default", "i0"), func(w *wantSchema) { w.Search = "default_search" }),
		},
		{
			"a search analyzer before default_search", "f",
			[]string{mapped(`"f":{"type":"text","analyzer":"x","search_analyzer":"y"}`, `"index.analysis.analyzer.default_search.type":"english"`)},
			with(want("f", "x", "i0"), func(w *wantSchema) { w.Search = "y" }),
		},
		{
			"the same definition in both", "f",
			[]string{mapped(mine, define), mapped(mine, define+`,"index.analysis.filter.other.type":"stop"`)},
			want("f", "mine", "i0", "i1"),
		},
		{"the similarity of the index", "f", []string{mapped(text, `"index.similarity.default.type":"LMJelinekMercer"`)}, scored(mapping.Other)},
		{"scripted", "f", []string{mapped(`"f":{"type":"text","similarity":"mine"}`, `"index.similarity.mine.type":"scripted"`)}, scored(mapping.Other)},
		{"boolean", "f", []string{mapped(`"f":{"type":"text","similarity":"boolean"}`, "")}, scored(mapping.Boolean)},
	} {
		s, err := ofIndices(t, tt.field, tt.indices...)
		check.OK(t, err)
		check.Equal(t, tt.want, summary(s), tt.name)
	}
	const plain, nested = `"f":{"properties":{"g":{"type":"text"}}}`, `"f":{"type":"nested","properties":{"g":{"type":"text"}}}`
	multiplexer := define + `,"index.analysis.filter.x.type":"multiplexer","index.analysis.filter.x.filters":["a, b"],` +
		`"index.analysis.filter.b.type":"stop","index.analysis.filter.b.stopwords":["s"]`
	const bm25 = `"index.similarity.default.type":"BM25","index.similarity.default.k1":`
	for _, tt := range []struct {
		name, field string
		err         error
		indices     []string
	}{
		{"no index", "f", mapping.ErrNotText, nil},
		{"no field", "", mapping.ErrNotText, nil},
		{"a name that no request can hold", strings.Repeat("f", 1025), mapping.ErrNotText, nil},
		{"in no index", "f", mapping.ErrNotText, []string{mapped("", "")}},
		{"an object", "f", mapping.ErrNotText, []string{mapped(`"f":{"properties":{}}`, "")}},
		{"a field of an object that lacks it", "f.g", mapping.ErrNotText, []string{mapped(`"f":{"properties":{}}`, "")}},
		{"text in one, a keyword in another", "f", mapping.ErrNotText, []string{mapped(text, ""), mapped(`"f":{"type":"keyword"}`, "")}},
		{"text in one, vectors in another", "f", mapping.ErrNotText, []string{mapped(text, ""), mapped(`"f":{"type":"semantic_text"}`, "")}},
		{"not indexed", "f", mapping.ErrNotText, []string{mapped(`"f":{"type":"text","index":false}`, "")}},
		{"a runtime field", "f.g", mapping.ErrNotText, []string{`{"mappings":{"runtime":{"f.g":{"type":"long"}},"properties":{` + plain + `}}}`}},
		{"a derived field", "f", mapping.ErrNotText, []string{`{"mappings":{"derived":{"f":{"type":"text"}},"properties":{"f":{"type":"text"}}}}`}},
		{"other analyzers", "f", mapping.ErrMixed, []string{mapped(text, ""), mapped(mine, define)}},
		{"another filter", "f", mapping.ErrMixed, []string{mapped(mine, define), mapped(mine, strings.Replace(define, `["x"]`, `["y"]`, 1))}},
		{"a filter of a filter", "f", mapping.ErrMixed, []string{mapped(mine, multiplexer), mapped(mine, strings.Replace(multiplexer, `["s"]`, `["t"]`, 1))}},
		{"nested in one only", "f.g", mapping.ErrMixed, []string{mapped(plain, ""), mapped(nested, "")}},
		{"another object in one that lacks it", "f.g", mapping.ErrMixed, []string{mapped(nested, ""), mapped(`"f":{"properties":{"h":{"type":"keyword"}}}`, "")}},
		{"other parameters of a similarity", "f", mapping.ErrMixed, []string{mapped(text, bm25+`"1"`), mapped(text, bm25+`"2"`)}},
		{"a similarity whose name looks like another with a setting", "f", mapping.ErrMixed, []string{
			mapped(`"f":{"type":"text","similarity":"s"}`, `"index.similarity.s.q\u0000index.similarity.s\u0000index.similarity.s.q.k":"9"`),
			mapped(`"f":{"type":"text","similarity":"s\u0000index.similarity.s.q"}`, `"index.similarity.s\u0000index.similarity.s.q.k":"9"`),
		}},
		{"a setting whose name looks like two settings", "f", mapping.ErrMixed, []string{
			mapped(mine, define+`,"index.analysis.analyzer.mine.a":"1","index.analysis.analyzer.mine.b":"2"`),
			mapped(mine, define+`,"index.analysis.analyzer.mine.a=\"1\"\nindex.analysis.analyzer.mine.b":"2"`),
		}},
	} {
		check.Error(t, tt.err, check.ErrOf(ofIndices(t, tt.field, tt.indices...)), tt.name)
	}
}

// ofIndices returns the schema of a field of the indices i0, i1, ….
func ofIndices(t *testing.T, field string, indices ...string) (*mapping.Schema, error) {
	t.Helper()
	return client(t, answers(indices...)).Schema(t.Context(), "i*", field)
}

// answers is a cluster with the indices i0, i1, …, each as mapped writes it.
func answers(indices ...string) *clustertest.Fake {
	members := make([]string, len(indices))
	for i, index := range indices {
		members[i] = fmt.Sprintf(`"i%d":%s`, i, index)
	}
	return clustertest.New().Reply("GET /i*", http.StatusOK, "{"+strings.Join(members, ",")+"}")
}

// Which analyzer is meant by a field with an analyzer in an index with
// default_search differs by engine; see settleAnalyzers.
func TestSearchAnalyzerThatTheMappingLeavesOpenIsAskedFor(t *testing.T) {
	f := clustertest.New().Reply(
		"GET /i", http.StatusOK, `{"i":`+mapped(`"a":{"properties":{"f":{"type":"text","analyzer":"english"}}}`,
			`"index.analysis.analyzer.default_search.type":"simple"`)+`}`).Reply(

		"GET /i/_mapping/field/a.f", http.StatusOK,
		`{"i":{"mappings":{"a.f":{"full_name":"a.f","mapping":{"f":{"search_analyzer":"default_search"}}}}}}`)

	s, err := client(t, f).Schema(t.Context(), "i", "a.f")
	check.OK(t, err)
	check.That(t, s.IndexAnalyzer == "english" && s.SearchAnalyzer == "default_search", "analyzers %q and %q", s.IndexAnalyzer, s.SearchAnalyzer)
	f.Reply("GET /i/_mapping/field/a.f", http.StatusOK, `{}`)
	check.That(t, check.ErrOf(client(t, f).Schema(t.Context(), "i", "a.f")) != nil, "an answer without the analyzer was taken")
}

func TestNamedAnalyzerThatIndicesDefineDifferentlyIsMixed(t *testing.T) {
	const text = `"f":{"type":"text"}`
	s, err := ofIndices(
		t, "f",
		mapped(text, `"index.analysis.analyzer.a.type":"english","index.analysis.analyzer.same.type":"german"`),
		mapped(text, `"index.analysis.analyzer.a.type":"french","index.analysis.analyzer.same.type":"german",`+
			`"index.analysis.analyzer.more.tokenizer":"standard"`),
	)
	check.OK(t, err)
	for name, want := range map[string]error{"": nil, "same": nil, "english": nil, "a": mapping.ErrMixed, "more": mapping.ErrMixed} {
		check.Error(t, want, check.ErrOf(s.Analyzer(name)), name)
	}
}

func TestNamesOfOtherAPIsAreNotAskedFor(t *testing.T) {
	f := clustertest.New()
	_, err := client(t, f).Schema(t.Context(), "_snapshot", "f")
	check.That(t, errors.Is(err, mapping.ErrNotText) && f.Asked("") == 0, "%d calls, error %v", f.Asked(""), err)
}

func TestFilterOfTheMappingLetsTheFieldThrough(t *testing.T) {
	tests := []struct{ index, field, want string }{
		{"", "title.std", "/_all?filter_path=%2A.settings%2C%2A.mappings.runtime%2C%2A.mappings.derived%2C%2A.data_stream%2C" +
			"%2A.mappings.properties.title%2A&flat_settings=true"},
		{"a,b*", "ti*le", "/a%2Cb%2A?filter_path=%2A.settings%2C%2A.mappings.runtime%2C%2A.mappings.derived%2C%2A.data_stream%2C" +
			"%2A.aliases.%2A.search_routing%2C%2A.aliases.%2A.filter%2C%2A.mappings.properties&flat_settings=true"},
		{"logs-2.x", "f", "/logs-2.x?filter_path=%2A.settings%2C%2A.mappings.runtime%2C%2A.mappings.derived%2C%2A.data_stream%2C" +
			"%2A.aliases.logs-2%2A.search_routing%2C%2A.aliases.logs-2%2A.filter%2C%2A.mappings.properties.f%2A&flat_settings=true"},
	}
	for _, test := range tests {
		f := clustertest.New().Reply("GET ", http.StatusOK, "{}")
		_, err := client(t, f).about(test.index, test.field).mappings(t.Context())
		check.OK(t, err)
		check.Equal(t, "GET "+test.want+" ", f.Calls()[0], test.index, test.field)
	}
}
