package esclient

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
)

// An engine is a real cluster with the indices that the tests below ask about.
type engine struct {
	*Client
	clustertest.Engine
	Info
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
		return c.Do(ctx, Call{Request: HTTPRequest{Method: method, Path: path, Body: JSON(body)}}, nil)
	}
	if e.Info, err = c.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s", e.Distribution, e.Version)
	e.Create(t, "main", Object{
		"number_of_shards": 3, "number_of_replicas": 0, "similarity": Object{"low": Object{"type": "BM25", "k1": 0.9, "b": 0.4}},
	}, Object{"properties": Object{
		"title": Object{"type": "text", "analyzer": "english", "fields": Object{"std": Object{"type": "text"}}},
		"body":  Object{"type": "text"},
		"low":   Object{"type": "text", "similarity": "low"},
		"empty": Object{"type": "text"},
	}})
	e.Create(t, "search", Object{
		"number_of_replicas": 0,
		"analysis":           Object{"analyzer": Object{"default_search": Object{"type": "custom", "tokenizer": "standard"}}},
	}, Object{"properties": Object{
		"named": Object{"type": "text", "analyzer": "english"}, "unnamed": Object{"type": "text"},
		"both": Object{"type": "text", "analyzer": "english", "search_analyzer": "standard"},
	}})
	docs := make([]Object, 50)
	for i := range docs {
		s := clustertest.Texts[i%len(clustertest.Texts)]
		docs[i] = Object{"title": s, "body": s, "low": s}
	}
	e.Put(t, "main", docs...)
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
	t.Run("searches with default_search as the engine does", e.testDefaultSearch)
	t.Run("counts terms by a search as by vectors", e.testCountBySearch)
	t.Run("resolves indices as a search does", e.testExpressions)
	t.Run("takes the indices of a data stream", e.testDataStream)
	t.Run("names the fields that a pattern searches", e.testFields)
}

// testDefaultSearch compares with the terms that the engine itself searches for.
func (e *engine) testDefaultSearch(t *testing.T) {
	for _, field := range []string{"named", "unnamed", "both"} {
		var answer struct {
			Explanations []struct {
				Explanation string `json:"explanation"`
			} `json:"explanations"`
		}
		err := e.Client.Do(t.Context(), Call{Request: esapi.IndicesValidateQueryRequest{
			Index: []string{e.At("search")}, Explain: new(true), Body: JSON(Object{"query": Object{"match": Object{field: "Running"}}}),
		}}, &answer)
		check.OK(t, err)
		got, err := e.cached(t).Analyze(t.Context(), at(e.At("search")), field, "", "Running")
		check.OK(t, err)
		check.Equal(t, answer.Explanations[0].Explanation, field+":"+strings.Join(got.Terms, " "), field, got.Terms)
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
