package esclient

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	tests := []struct {
		answer, field string
		want          wantSchema
	}{
		{"schema", "title", wantSchema{
			Targets: []mapping.Target{{Index: "library", Shards: 1, Source: "title"}}, Index: "english", Search: "english", K1: 1.2, Shards: 1,
		}},
		{"schema", "title.std", wantSchema{
			Targets: []mapping.Target{{Index: "library", Shards: 1, Source: "title"}}, Index: "default", Search: "default", K1: 1.2, Shards: 1,
		}},
		{"schema low", "low", wantSchema{
			Targets: []mapping.Target{{Index: "library", Shards: 1, Source: "low"}}, Index: "my", Search: "my", K1: 0.9, Shards: 1,
		}},
		{"schema nested", "list.text", wantSchema{
			Targets: []mapping.Target{{Index: "library", Shards: 1, Source: "list.text"}}, Nested: "list",
			Index: "english", Search: "english", K1: 1.2, Shards: 1,
		}},
	}
	for _, r := range clustertest.Engines(t, "testdata") {
		t.Run(r.Engine, func(t *testing.T) {
			for _, test := range tests {
				s, err := client(t, clustertest.New().Replay(t, "GET /library", r, test.answer)).
					Schema(t.Context(), "library", test.field)
				if err != nil {
					t.Fatal(test.field, err)
				}
				if diff := cmp.Diff(test.want, summary(s)); diff != "" {
					t.Errorf("%s: %s", test.field, diff)
				}
			}
		})
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
	tests := []struct {
		name, field string
		indices     []string
		want        wantSchema
		err         error
	}{
		{name: "several indices", field: "f", indices: []string{mapped(text, ""), mapped(text, "")}, want: wantSchema{
			Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "f"}, {Index: "i1", Shards: 2, Source: "f"}}, Index: "default", Search: "default", K1: 1.2, Shards: 4,
		}},
		{
			name: "an index without the field does not count", field: "f",
			indices: []string{mapped("", ""), mapped(text, ""), `{"mappings":{},"settings":{}}`}, want: wantSchema{
				Targets: []mapping.Target{{Index: "i1", Shards: 2, Source: "f"}}, Index: "default", Search: "default", K1: 1.2, Shards: 2,
			},
		},
		{
			name: "a number of shards that is kept back is 1", field: "f",
			indices: []string{`{"mappings":{"properties":{"f":{"type":"text"}}}}`}, want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 1, Source: "f"}}, Index: "default", Search: "default", K1: 1.2, Shards: 1,
			},
		},
		{
			name: "names with dots", field: "a.b.c.d",
			indices: []string{mapped(`"a.b":{"properties":{"c":{"type":"keyword","fields":{"d":{"type":"text"}}}}}`, "")},
			want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "a.b.c"}}, Index: "default", Search: "default", K1: 1.2, Shards: 2,
			},
		},
		{
			name: "the innermost nested object", field: "a.b.c.d",
			indices: []string{mapped(`"a":{"type":"nested","properties":{"b":{"type":"nested","properties":{`+
				`"c":{"properties":{"d":{"type":"text"}}}}}}}`, "")},
			want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "a.b.c.d"}}, Nested: "a.b",
				Index: "default", Search: "default", K1: 1.2, Shards: 2,
			},
		},
		{
			name: "default_search of a field that names no analyzer", field: "f",
			indices: []string{mapped(text, `"index.analysis.analyzer.default_search.type":"english"`)}, want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "f"}}, Index: "default", Search: "default_search", K1: 1.2, Shards: 2,
			},
		},
		{
			name: "a search analyzer before default_search", field: "f",
			indices: []string{mapped(`"f":{"type":"text","analyzer":"x","search_analyzer":"y"}`,
				`"index.analysis.analyzer.default_search.type":"english"`)},
			want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "f"}}, Index: "x", Search: "y", K1: 1.2, Shards: 2,
			},
		},
		{
			name: "the same definition in both", field: "f",
			indices: []string{mapped(mine, define), mapped(mine, define+`,"index.analysis.filter.other.type":"stop"`)},
			want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "f"}, {Index: "i1", Shards: 2, Source: "f"}}, Index: "mine", Search: "mine", K1: 1.2, Shards: 4,
			},
		},
		{
			name: "the similarity of the index", field: "f",
			indices: []string{mapped(text, `"index.similarity.default.type":"LMJelinekMercer"`)}, want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "f"}}, Index: "default", Search: "default", K1: 1.2, Shards: 2, Similarity: mapping.Other,
			},
		},
		{
			name: "scripted", field: "f",
			indices: []string{mapped(`"f":{"type":"text","similarity":"mine"}`, `"index.similarity.mine.type":"scripted"`)},
			want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "f"}}, Index: "default", Search: "default", K1: 1.2, Shards: 2, Similarity: mapping.Other,
			},
		},
		{
			name: "boolean", field: "f", indices: []string{mapped(`"f":{"type":"text","similarity":"boolean"}`, "")},
			want: wantSchema{
				Targets: []mapping.Target{{Index: "i0", Shards: 2, Source: "f"}}, Index: "default", Search: "default", K1: 1.2, Shards: 2, Similarity: mapping.Boolean,
			},
		},
		{name: "no index", field: "f", err: mapping.ErrNotText},
		{name: "no field", field: "", err: mapping.ErrNotText},
		{name: "a name that no request can hold", field: strings.Repeat("f", 1025), err: mapping.ErrNotText},
		{name: "in no index", field: "f", indices: []string{mapped("", "")}, err: mapping.ErrNotText},
		{name: "an object", field: "f", indices: []string{mapped(`"f":{"properties":{}}`, "")}, err: mapping.ErrNotText},
		{name: "a field of an object that lacks it", field: "f.g", indices: []string{mapped(`"f":{"properties":{}}`, "")}, err: mapping.ErrNotText},
		{
			name: "text in one, a keyword in another", field: "f",
			indices: []string{mapped(text, ""), mapped(`"f":{"type":"keyword"}`, "")}, err: mapping.ErrNotText,
		},
		{name: "not indexed", field: "f", indices: []string{mapped(`"f":{"type":"text","index":false}`, "")}, err: mapping.ErrNotText},
		{
			name: "a runtime field", field: "f.g",
			indices: []string{`{"mappings":{"runtime":{"f.g":{"type":"long"}},"properties":{"f":{"properties":{"g":{"type":"text"}}}}}}`},
			err:     mapping.ErrNotText,
		},
		{
			name: "a derived field", field: "f",
			indices: []string{`{"mappings":{"derived":{"f":{"type":"text"}},"properties":{"f":{"type":"text"}}}}`}, err: mapping.ErrNotText,
		},
		{name: "other analyzers", field: "f", indices: []string{mapped(text, ""), mapped(mine, define)}, err: mapping.ErrMixed},
		{
			name: "another filter", field: "f", err: mapping.ErrMixed,
			indices: []string{mapped(mine, define), mapped(mine, strings.Replace(define, `["x"]`, `["y"]`, 1))},
		},
		{
			name: "a filter of a filter", field: "f", err: mapping.ErrMixed,
			indices: []string{
				mapped(mine, define+`,"index.analysis.filter.x.type":"multiplexer","index.analysis.filter.x.filters":["a, b"],`+
					`"index.analysis.filter.b.type":"stop","index.analysis.filter.b.stopwords":["s"]`),
				mapped(mine, define+`,"index.analysis.filter.x.type":"multiplexer","index.analysis.filter.x.filters":["a, b"],`+
					`"index.analysis.filter.b.type":"stop","index.analysis.filter.b.stopwords":["t"]`),
			},
		},
		{
			name: "nested in one only", field: "f.g", err: mapping.ErrMixed,
			indices: []string{
				mapped(`"f":{"properties":{"g":{"type":"text"}}}`, ""),
				mapped(`"f":{"type":"nested","properties":{"g":{"type":"text"}}}`, ""),
			},
		},
		{
			name: "another object in one that lacks it", field: "f.g", err: mapping.ErrMixed,
			indices: []string{
				mapped(`"f":{"type":"nested","properties":{"g":{"type":"text"}}}`, ""),
				mapped(`"f":{"properties":{"h":{"type":"keyword"}}}`, ""),
			},
		},
		{
			name: "other parameters of a similarity", field: "f", err: mapping.ErrMixed,
			indices: []string{
				mapped(text, `"index.similarity.default.type":"BM25","index.similarity.default.k1":"1"`),
				mapped(text, `"index.similarity.default.type":"BM25","index.similarity.default.k1":"2"`),
			},
		},
		{
			name: "a similarity whose name looks like another with a setting", field: "f", err: mapping.ErrMixed,
			indices: []string{
				mapped(`"f":{"type":"text","similarity":"s"}`, `"index.similarity.s.q\u0000index.similarity.s\u0000index.similarity.s.q.k":"9"`),
				mapped(`"f":{"type":"text","similarity":"s\u0000index.similarity.s.q"}`, `"index.similarity.s\u0000index.similarity.s.q.k":"9"`),
			},
		},
		{
			name: "a setting whose name looks like two settings", field: "f", err: mapping.ErrMixed,
			indices: []string{
				mapped(mine, define+`,"index.analysis.analyzer.mine.a":"1","index.analysis.analyzer.mine.b":"2"`),
				mapped(mine, define+`,"index.analysis.analyzer.mine.a=\"1\"\nindex.analysis.analyzer.mine.b":"2"`),
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			members := make([]string, len(test.indices))
			for i, index := range test.indices {
				members[i] = fmt.Sprintf(`"i%d":%s`, i, index)
			}
			c := client(t, clustertest.New().Reply("GET /i*", http.StatusOK, "{"+strings.Join(members, ",")+"}"))
			s, err := c.Schema(t.Context(), "i*", test.field)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, summary(s)); diff != "" {
				t.Error(diff)
			}
		})
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if s.IndexAnalyzer != "english" || s.SearchAnalyzer != "default_search" {
		t.Errorf("analyzers %q and %q", s.IndexAnalyzer, s.SearchAnalyzer)
	}
	f.Reply("GET /i/_mapping/field/a.f", http.StatusOK, `{}`)
	if _, err := client(t, f).Schema(t.Context(), "i", "a.f"); err == nil {
		t.Error("an answer without the analyzer was taken")
	}
}

func TestNamedAnalyzerThatIndicesDefineDifferentlyIsMixed(t *testing.T) {
	const text = `"f":{"type":"text"}`
	f := clustertest.New().Reply("GET /i*", http.StatusOK, `{"i0":`+
		mapped(text, `"index.analysis.analyzer.a.type":"english","index.analysis.analyzer.same.type":"german"`)+`,"i1":`+
		mapped(text, `"index.analysis.analyzer.a.type":"french","index.analysis.analyzer.same.type":"german",`+
			`"index.analysis.analyzer.more.tokenizer":"standard"`)+`}`)

	s, err := client(t, f).Schema(t.Context(), "i*", "f")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"": nil, "same": nil, "english": nil, "a": mapping.ErrMixed, "more": mapping.ErrMixed} {
		if _, err := s.Analyzer(name); !errors.Is(err, want) {
			t.Errorf("analyzer %q: error %v, want %v", name, err, want)
		}
	}
}

func TestNamesOfOtherAPIsAreNotAskedFor(t *testing.T) {
	f := clustertest.New()
	if _, err := client(t, f).Schema(t.Context(), "_snapshot", "f"); !errors.Is(err, mapping.ErrNotText) || f.Asked("") != 0 {
		t.Errorf("%d calls, error %v", f.Asked(""), err)
	}
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
		if got := schemaPath(at(test.index), test.field); got != test.want {
			t.Errorf("%q, %q: %s, want %s", test.index, test.field, got, test.want)
		}
	}
}

func FuzzFindFields(f *testing.F) {
	for _, r := range clustertest.Engines(f, "testdata") {
		for _, name := range []string{"schema", "schema low", "schema nested"} {
			f.Add([]byte(r.Answers[name].Body), "title.std")
		}
	}
	f.Add([]byte(`{"i":`+mapped(`"a.b":{"type":"nested","properties":{"c":{"type":"text"}}}`, "")+`}`), "a.b.c")
	f.Add([]byte(`{"i":`+mapped(`"a":{"type":"alias","path":"b.c"},"b":{"type":"text","fields":{"c":{"type":"text"}}}`, "")+`}`), "a")
	f.Fuzz(func(t *testing.T, b []byte, field string) {
		var answer map[string]mapping.Index
		if Decode(b, &answer) != nil {
			return
		}
		fields, err := mapping.Fields(answer, field)
		if err != nil {
			return
		}
		for i := range fields {
			fields[i].SearchAnalyzer += "x"
		}
		s, err := mapping.Merge(fields)
		if err != nil {
			if !errors.Is(err, mapping.ErrMixed) {
				t.Errorf("error %v", err)
			}
			return
		}
		shards := 0
		for _, target := range s.Targets {
			shards += target.Shards
			// A text is at the field's own path or above it.
			name := field
			if target.AliasOf != "" {
				name = target.AliasOf
			}
			if target.Shards < 1 || !strings.HasPrefix(name+".", target.Source+".") || !strings.HasPrefix(name, s.Nested) {
				t.Errorf("target %+v of field %q", target, field)
			}
		}
		if len(s.Targets) == 0 || s.Shards != shards {
			t.Errorf("schema %+v of field %q", summary(s), field)
		}
	})
}
