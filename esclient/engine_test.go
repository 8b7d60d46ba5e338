package esclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// An engine is a real cluster with the indices that the tests below ask about.
type engine struct {
	*Client
	clustertest.Engine
	Info
	// limits reports whether the engine has the limit filter, which is not
	// part of Elasticsearch's core.
	limits bool
}

// newEngine returns the cluster named by AKIN_E2E_ENGINE_URL with its indices.
func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{Engine: clustertest.NewEngine(t)}
	c, err := New(Options{URL: e.URL, Timeout: 30 * time.Second})
	check.OK(t, err)
	t.Cleanup(c.Close)
	e.Client = c
	e.Make = func(ctx context.Context, method, path string, body any) error {
		return c.Do(ctx, Call{Method: method, Path: path, Body: body}, nil)
	}
	if e.Info, err = c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s", e.Distribution, e.Version)
	e.limits = e.Client.Do(t.Context(), Call{
		Method: http.MethodPost, Path: "/_analyze",
		Body: Object{"tokenizer": "standard", "filter": []string{"limit"}, "text": "x"},
	}, nil) == nil
	one := Object{"type": "stop"}
	if e.limits {
		one = Object{"type": "limit", "max_token_count": 1}
	}
	e.Create(t, "main", Object{
		"number_of_shards": 3, "number_of_replicas": 0,
		"analysis": Object{"analyzer": Object{
			"stem":  Object{"type": "custom", "tokenizer": "standard", "filter": []string{"lowercase", "porter_stem"}},
			"plain": Object{"type": "custom", "tokenizer": "standard", "filter": []string{"lowercase"}},
			"first": Object{"type": "custom", "tokenizer": "standard", "filter": []string{"one"}},
			"dense": Object{"type": "custom", "tokenizer": "standard", "position_increment_gap": 0},
		}, "filter": Object{"one": one}},
		"similarity": Object{
			"low": Object{"type": "BM25", "k1": 0.9, "b": 0.4},
			"dfr": Object{
				"type": "DFR", "basic_model": "g", "after_effect": "l",
				"normalization": "h2", "normalization.h2.c": "3.0",
			},
		},
	}, Object{"properties": Object{
		"title": Object{"type": "text", "analyzer": "english", "fields": Object{
			"raw": Object{"type": "keyword"}, "std": Object{"type": "text"},
		}},
		"body":   Object{"type": "text", "analyzer": "stem", "search_analyzer": "plain"},
		"first":  Object{"type": "text", "analyzer": "first"},
		"dense":  Object{"type": "text", "analyzer": "dense"},
		"low":    Object{"type": "text", "similarity": "low"},
		"dfr":    Object{"type": "text", "similarity": "dfr"},
		"bool":   Object{"type": "text", "similarity": "boolean"},
		"hidden": Object{"type": "text", "index": false},
		"empty":  Object{"type": "text"},
		"alias":  Object{"type": "alias", "path": "title"},
		"number": Object{"type": "integer", "fields": Object{"text": Object{"type": "text"}}},
		"object": Object{"properties": Object{"text": Object{"type": "text"}}},
		"list": Object{"type": "nested", "properties": Object{
			"text":  Object{"type": "text", "analyzer": "english"},
			"alias": Object{"type": "alias", "path": "list.text"},
			"deep":  Object{"type": "nested", "properties": Object{"text": Object{"type": "text"}}},
		}},
	}})
	e.Create(t, "same", Object{"number_of_shards": 2, "number_of_replicas": 0},
		Object{"properties": Object{"title": Object{"type": "text", "analyzer": "english"}}})
	e.Create(t, "german", Object{"number_of_replicas": 0},
		Object{"properties": Object{"title": Object{"type": "text", "analyzer": "german"}}})
	e.Create(t, "without", Object{"number_of_replicas": 0}, Object{})
	e.Create(t, "search", Object{
		"number_of_replicas": 0,
		"analysis":           Object{"analyzer": Object{"default_search": Object{"type": "custom", "tokenizer": "standard"}}},
	}, Object{"properties": Object{
		"named": Object{"type": "text", "analyzer": "english"}, "unnamed": Object{"type": "text"},
		"both": Object{"type": "text", "analyzer": "english", "search_analyzer": "standard"},
	}})
	e.Create(t, "routed", Object{"number_of_replicas": 0}, Object{
		"_routing": Object{"required": true}, "properties": Object{"title": Object{"type": "text"}},
	})
	docs := make([]Object, 50)
	for i := range docs {
		s := clustertest.Texts[i%len(clustertest.Texts)]
		docs[i] = Object{
			"title": s, "body": s, "first": s, "low": s, "dfr": s, "bool": s,
			"object": Object{"text": s}, "number": i,
			"list": []Object{{"text": s, "deep": []Object{{"text": "car"}, {"text": s}}}, {"text": "a car"}},
		}
	}
	e.Put(t, "main", docs...)
	e.Put(t, "same", Object{"title": "one car"}, Object{"title": []string{"two", "cars"}})
	path := IndexPath(e.At("routed"), "/_doc/1?refresh=true&routing=x")
	e.Engine.Do(t, http.MethodPut, path, Object{"title": "a car"})
	return e
}

func (e *engine) cached(t *testing.T) *Cached {
	t.Helper()
	c := NewCached(e.Client, CacheOptions{AnalysisBytes: 1 << 20, StatisticsBytes: 1 << 20, TTL: time.Minute})
	t.Cleanup(c.Close)
	return c
}

func TestRealEngine(t *testing.T) {
	e := newEngine(t)
	t.Run("answers a ping", func(t *testing.T) {
		err := e.Ping(t.Context())
		check.Error(t, nil, err)
	})
	t.Run("analyzes", e.testAnalyze)
	t.Run("refuses fields", e.testRefusals)
	t.Run("searches with default_search as the engine does", e.testDefaultSearch)
	t.Run("analyzes words", e.testWords)
	t.Run("counts terms", e.testStatistics)
	t.Run("counts terms by a search as by vectors", e.testCountBySearch)
	t.Run("learns the scale", e.testScale)
	t.Run("learns whether scripts run", e.testScripts)
	t.Run("resolves indices as a search does", e.testExpressions)
	t.Run("takes the indices of a data stream", e.testDataStream)
	t.Run("names the fields that a pattern searches", e.testFields)
	t.Run("finds graphs", e.testGraph)
	t.Run("knows aliases with a routing", e.testRoutedAliases)
}

func (e *engine) testAnalyze(t *testing.T) {
	// want is an analysis whose terms stand at 0, 1, …; a word "_" is written as
	// its term.
	want := func(analyzer, terms, words string, change func(*Analysis)) *Analysis {
		a := &Analysis{Terms: strings.Fields(terms), Positions: []int{}, Analyzer: analyzer, Shards: 3}
		for i := range a.Terms {
			a.Positions = append(a.Positions, i)
		}
		for word := range strings.FieldsSeq(words) {
			a.Written = append(a.Written, strings.Trim(word, "_"))
		}
		if change != nil {
			change(a)
		}
		return a
	}
	nested := func(path string) func(*Analysis) { return func(a *Analysis) { a.Nested = path } }
	similar := func(s mapping.Similarity) func(*Analysis) { return func(a *Analysis) { a.Similarity = s } }
	shards := func(n int) func(*Analysis) { return func(a *Analysis) { a.Shards = n } }
	behindAStopWord := func(a *Analysis) { a.Positions = []int{1, 2} }
	for _, tt := range []struct {
		name, index, field, analyzer, text string
		want                               *Analysis
	}{
		{"by the field's analyzer", "main", "title", "", "The Running Cars", want("english", "run car", "Running Cars", behindAStopWord)},
		{"by the search analyzer", "main", "body", "", "Running cars", want("plain", "running cars", "Running _", nil)},
		{"by a named analyzer", "main", "body", "stem", "Running cars", want("stem", "run car", "Running cars", nil)},
		{"a multi-field", "main", "title.std", "", "Running", want("default", "running", "Running", nil)},
		{"a nested field", "main", "list.deep.text", "", "Running", want("default", "running", "Running", nested("list.deep"))},
		{"another similarity", "main", "dfr", "", "x", want("default", "x", "", similar(mapping.Other))},
		{"the boolean similarity", "main", "bool", "", "x", want("default", "x", "", similar(mapping.Boolean))},
		{"beyond the basic plane", "main", "body", "", "été 😀!", want("plain", "été 😀", "", nil)},
		{"an alias of a field", "main", "alias", "", "The Running Cars", want("english", "run car", "Running Cars", behindAStopWord)},
		{"an alias in a nested object", "main", "list.alias", "", "Running", want("english", "run", "Running", nested("list"))},
		{"nothing", "main", "title", "", "the", want("english", "", "", nil)},
		{"several indices", "main,same,without", "title", "", "cars", want("english", "car", "cars", shards(5))},
		{"a pattern", "s*", "title", "", "cars", want("english", "car", "cars", shards(2))},
	} {
		index := e.At(strings.Split(tt.index, ",")...)
		got, err := e.cached(t).Analyze(t.Context(), at(index), tt.field, tt.analyzer, tt.text)
		diff := cmp.Diff(tt.want, got)
		check.That(t, err == nil && diff == "", "%s: %v, %s", tt.name, err, diff)
	}
}

func (e *engine) testRefusals(t *testing.T) {
	for field, want := range map[string]error{
		"title.raw": mapping.ErrNotText, "list": mapping.ErrNotText, "hidden": mapping.ErrNotText, "nowhere": mapping.ErrNotText,
	} {
		check.Error(t, want, check.ErrOf(e.cached(t).Analyze(t.Context(), at(e.At("main")), field, "", "x")), field)
	}
	check.Error(t, mapping.ErrMixed, check.ErrOf(e.cached(t).Analyze(t.Context(), at(e.At("main", "german")), "title", "", "x")))
	for _, tt := range []struct {
		index, analyzer string
		status          int
	}{{"none", "", http.StatusNotFound}, {"main", "none", http.StatusBadRequest}} {
		_, err := e.cached(t).Analyze(t.Context(), at(e.At(tt.index)), "title", tt.analyzer, "x")
		var refusal *Error
		check.That(t, errors.As(err, &refusal) && refusal.Status == tt.status, "index %s, analyzer %q: error %v, want a %d", tt.index, tt.analyzer, err, tt.status)
	}
	t.Run("a runtime field over text", func(t *testing.T) {
		if e.Distribution != "elasticsearch" || strings.HasPrefix(e.Version, "7.10.") {
			t.Skip("the engine has no runtime fields")
		}
		e.Create(t, "runtime", Object{"number_of_replicas": 0}, Object{
			"runtime":    Object{"title": Object{"type": "keyword"}},
			"properties": Object{"title": Object{"type": "text"}},
		})
		_, err := e.cached(t).Analyze(t.Context(), at(e.At("runtime")), "title", "", "x")
		check.Error(t, mapping.ErrNotText, err)
	})
}

// testDefaultSearch compares with the terms that the engine itself searches for.
func (e *engine) testDefaultSearch(t *testing.T) {
	for _, field := range []string{"named", "unnamed", "both"} {
		var answer struct {
			Explanations []struct {
				Explanation string `json:"explanation"`
			} `json:"explanations"`
		}
		err := e.Client.Do(t.Context(), Call{
			Method: http.MethodPost, Path: IndexPath(e.At("search"), "/_validate/query?explain=true"),
			Body: Object{"query": Object{"match": Object{field: "Running"}}},
		}, &answer)
		check.OK(t, err)
		got, err := e.cached(t).Analyze(t.Context(), at(e.At("search")), field, "", "Running")
		check.OK(t, err)
		check.Equal(t, answer.Explanations[0].Explanation, field+":"+strings.Join(got.Terms, " "), field, got.Terms)
	}
}

func (e *engine) testWords(t *testing.T) {
	words := []string{"Running", "the", "", "wi-fi", "😀", "été", "of", "naïve\xff", "日本", "cars"}
	tests := []struct {
		field string
		want  [][]string
	}{
		{"title", [][]string{
			{"run"}, nil, nil, {"wi", "fi"}, {"😀"}, {"été"}, nil, {"naïv"}, {"日", "本"}, {"car"},
		}},
		// Stops at the first token: offsets drift.
		{"first", [][]string{
			{"Running"}, {"the"}, nil, {"wi"}, {"😀"}, {"été"}, {"of"}, {"naïve"}, {"日"}, {"cars"},
		}},
		// Positions say nothing.
		{"dense", [][]string{
			{"Running"}, {"the"}, nil, {"wi", "fi"}, {"😀"}, {"été"}, {"of"}, {"naïve"}, {"日", "本"}, {"cars"},
		}},
	}
	for _, test := range tests {
		if test.field == "first" && !e.limits {
			continue
		}
		got, err := e.AnalyzeWords(t.Context(), e.At("main"), test.field, words)
		check.OK(t, err)
		check.Equal(t, test.want, got, test.field)
	}
	t.Run("more tokens than a call may make", func(t *testing.T) {
		many := make([]string, 2500)
		for i := range many {
			many[i] = fmt.Sprintf("a%d-b-c-d-e-f-g-h-i-j-k-l-m-n-o", i) // 15 tokens
		}
		many[1234] = strings.Repeat("x-", 10_001)
		got, err := e.AnalyzeWords(t.Context(), e.At("main"), "body", many)
		check.OK(t, err)
		for i, terms := range got {
			switch {
			case i == 1234 && terms != nil, i != 1234 && (len(terms) != 15 || terms[0] != "a"+strconv.Itoa(i)):
				t.Fatalf("word %d has terms %q", i, terms)
			}
		}
	})
}

func (e *engine) testStatistics(t *testing.T) {
	tests := []struct {
		name, index, field string
		terms              []string
		want               []int64
		docs               int64
	}{
		{"text", "main", "title", []string{"car", "boat", "3.14", "x.y", "none"}, []int64{20, 10, 10, 10, 0}, 50},
		{"a multi-field", "main", "title.std", []string{"cars", "car", "the", "😀"}, []int64{10, 10, 10, 10}, 50},
		{"an object", "main", "object.text", []string{"cars", "été"}, []int64{10, 10}, 50},
		{"a nested field", "main", "list.text", []string{"car", "boat", "none"}, []int64{70, 10, 0}, 100},
		{"a field nested twice", "main", "list.deep.text", []string{"car", "cars"}, []int64{60, 10}, 100},
		{"a multi-field that its parent's type bars", "main", "number.text", []string{"7", "car"}, []int64{1, 0}, 50},
		{"an alias", "main", "alias", []string{"car", "boat", "none"}, []int64{20, 10, 0}, 50},
		{"an alias in a nested object", "main", "list.alias", []string{"car"}, []int64{70}, 100},
		{"a field without documents", "main", "empty", []string{"car"}, []int64{0}, 0},
		{"several indices", "main,same,without", "title", []string{"car", "two"}, []int64{22, 1}, 52},
		{"required routing", "routed", "title", []string{"car"}, []int64{1}, 1},
		{
			"terms that no index can hold", "main", "title",
			[]string{strings.Repeat("z", maxTermBytes+1), strings.Repeat("z", maxTermBytes), "\xff", "", "a\"\\\n\x00", "car"},
			[]int64{0, 0, 0, 0, 0, 20},
			50,
		},
		{"no term", "main", "title", nil, nil, 50},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := e.cached(t)
			index := e.At(strings.Split(test.index, ",")...)
			for _, state := range []string{"cold", "warm"} {
				dfs := make([]int64, len(test.terms))
				st, err := c.Statistics(t.Context(), at(index), test.field, test.terms, dfs)
				if err != nil {
					t.Fatal(state, err)
				}
				check.That(t, st.DocCount == test.docs && slices.Equal(dfs, test.want), "%s: N = %d, df = %v, want %d, %v", state, st.DocCount, dfs, test.docs, test.want)
			}
			if s := c.Stats().Statistics; s.Hits != 1 || s.Misses != 1 {
				t.Errorf("stats %+v, want a miss and a hit", s)
			}
		})
	}
}

func (e *engine) testCountBySearch(t *testing.T) {
	for _, field := range []string{"title", "title.std", "low", "empty"} {
		s, err := e.Schema(t.Context(), e.At("main"), field)
		check.OK(t, err)
		terms := []string{"car", "cars", "boat", "the", "x.y", "none"}
		vectors, err := e.about(e.At("main"), field).countByVectors(t.Context(), s, terms)
		check.OK(t, err)
		search, err := e.about(e.At("main"), field).countBySearch(t.Context(), s, terms)
		check.OK(t, err)
		check.Equal(t, vectors, search, cmp.AllowUnexported(termCount{}), field)
	}
}

func (e *engine) testScale(t *testing.T) {
	// The engine multiplies by k1+1, but for OpenSearch from version 3 on.
	engineScale := func(k1 float64) float64 {
		major, _, _ := strings.Cut(e.Version, ".")
		if n, _ := strconv.Atoi(major); e.Distribution == "opensearch" && n >= 3 {
			return 1
		}
		return k1 + 1
	}
	tests := []struct {
		name, field, term string
		want              float64
	}{
		{"BM25", "title", "car", engineScale(1.2)},
		{"BM25 with its own k1", "low", "car", engineScale(0.9)},
		{"a nested field", "list.text", "car", engineScale(1.2)},
		{"an alias", "alias", "car", engineScale(1.2)},
		{"no document: by the version", "low", "none", engineScale(0.9)},
		{"boolean", "bool", "car", 0},
		{"another", "dfr", "car", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := e.cached(t)
			st, err := c.Statistics(t.Context(), at(e.At("main")), test.field, []string{test.term}, make([]int64, 1))
			check.That(t, err == nil && math.Abs(st.Scale-test.want) <= 1e-6, "scale %v, %v, want %v", st.Scale, err, test.want)
		})
	}
}

func (e *engine) testScripts(t *testing.T) {
	ask := func() bool {
		st, err := e.cached(t).Statistics(t.Context(), at(e.At("main")), "title", []string{"car"}, make([]int64, 1))
		check.OK(t, err)
		return st.Scripts
	}
	// Elasticsearch 8 and later as built for these tests has no painless.
	has := e.Client.Do(t.Context(), Call{
		Method: http.MethodPost, Path: "/_scripts/painless/_execute",
		Body: Object{"script": Object{"source": "1"}},
	}, nil) == nil
	check.Equal(t, has, ask())
	bar := func(v any) {
		e.Engine.Do(t, http.MethodPut, "/_cluster/settings",
			Object{"transient": Object{"search.allow_expensive_queries": v}})
	}
	bar(false)
	defer bar(nil)
	check.That(t, !ask(), "scripts run although expensive queries are barred")
}
