package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// newCluster returns what expand asks, in front of the embedded engine with an
// index of two texts.
func newCluster(t *testing.T) *esclient.Cached {
	t.Helper()
	engine := httptest.NewServer(demo.NewEngine())
	t.Cleanup(engine.Close)
	client, err := esclient.New(esclient.Options{URL: engine.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	const mappings = `{"mappings":{"properties":{"title":{"type":"text","analyzer":"english"},` +
		`"body":{"type":"text"}}}}`
	if _, err := (documents.API{Client: client}).CreateIndex(t.Context(), "help", []byte(mappings)); err != nil {
		t.Fatal(err)
	}
	docs := []documents.Document{{ID: "1", Source: map[string]string{"title": "running cars"}}}
	if err := (documents.API{Client: client}).Index(t.Context(), "help", docs); err != nil {
		t.Fatal(err)
	}
	cached := esclient.NewCached(client, esclient.CacheOptions{AnalysisBytes: 1 << 20, StatisticsBytes: 1 << 20, TTL: time.Minute})
	t.Cleanup(cached.Close)
	return cached
}

func TestClusterAnswersExpandOfTheEmbeddedEngine(t *testing.T) {
	c := newCluster(t)
	for _, indices := range []esclient.Indices{
		{Expression: "help"},
		{Expression: "he*", Options: "allow_no_indices=true&expand_wildcards=open&ignore_throttled=false&ignore_unavailable=true"},
		{},
	} {
		names, err := c.Fields(t.Context(), indices, "t*")
		if err != nil || !slices.Equal(names, []string{"title"}) {
			t.Errorf("%+v: fields %q, error %v", indices, names, err)
		}
		a, err := c.Analyze(t.Context(), indices, "title", "", "the running cars")
		if err != nil || !slices.Equal(a.Terms, []string{"run", "car"}) || !slices.Equal(a.Positions, []int{1, 2}) || a.Graph || a.Shards != 1 {
			t.Errorf("%+v: analysis %+v, error %v", indices, a, err)
		}
		docFreqs := make([]int64, 2)
		s, err := c.Statistics(t.Context(), indices, "title", []string{"car", "boat"}, docFreqs)
		if err != nil || s.DocCount != 1 || !slices.Equal(docFreqs, []int64{1, 0}) {
			t.Errorf("%+v: %+v, df %v, error %v", indices, s, docFreqs, err)
		}
	}
}

func TestWhatIsNoFailureOfTheClusterIsToldToExpand(t *testing.T) {
	mixed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"a":{"mappings":{"properties":{"f":{"type":"text"}}}},` +
			`"b":{"mappings":{"properties":{"f":{"type":"text","analyzer":"english"}}}}}`))
	}))
	t.Cleanup(mixed.Close)
	client, err := esclient.New(esclient.Options{URL: mixed.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	cached := esclient.NewCached(client, esclient.CacheOptions{AnalysisBytes: 1 << 20, StatisticsBytes: 1 << 20, TTL: time.Minute})
	t.Cleanup(cached.Close)
	c := newCluster(t)
	for _, tt := range []struct {
		name    string
		cluster *esclient.Cached
		index   string
		query   string
		want    reason.Reason
	}{
		{"a keyword", c, "help", `{"match":{"title.raw":"x"}}`, reason.NotText},
		{"a remote cluster", c, "x:help", `{"match":{"title":"x"}}`, reason.NotText},
		{"a pattern on a remote cluster", c, "x:help", `{"multi_match":{"query":"x","fields":["t*"]}}`, reason.NotText},
		{"indices that differ", cached, "a,b", `{"match":{"f":"x"}}`, reason.Mixed},
		{"no such index", c, "gone", `{"match":{"title":"x"}}`, reason.UnknownToCluster},
	} {
		e := expand.New(tt.cluster, everywhere{}, expand.DefaultProfile())
		r, err := e.Expand(t.Context(), &expand.Request{Index: tt.index, Body: []byte(`{"query":` + tt.query + `}`)})
		if err != nil || r.Reason != tt.want {
			t.Errorf("%s: %+v, error %v, want %s", tt.name, r, err, tt.want)
		}
	}
	options := esclient.Indices{Expression: "help", Options: "pretty=true"}
	if _, err := c.Fields(t.Context(), options, "t*"); err == nil || errors.Is(err, mapping.ErrNotText) || !strings.Contains(err.Error(), "pretty") {
		t.Errorf("error %v for what is no option", err)
	}
}

// everywhere is a matrix without rows that is bound to every field.
type everywhere struct{}

func (e everywhere) Pin() expand.Pinned { return e }

func (everywhere) Version() string { return "none@1" }

func (everywhere) Docs() int64 { return 1 }

func (everywhere) Power() float64 { return 1 }
func (everywhere) Mixed() bool    { return false }

func (everywhere) Nearest(string) ([]string, float32) { return nil, 0 }

func (everywhere) Rows(context.Context, []string, []simmatrix.Row) error { return nil }

func (e everywhere) For(context.Context, esclient.Indices, string) (expand.Bound, error) {
	return expand.Bound{Rows: e, Named: true}, nil
}

// An index that the cluster tells nothing of is bound by its name or not at all;
// when the cluster fails, nobody knows what is bound.
func TestExpressionsThatTheClusterDoesNotResolve(t *testing.T) {
	statuses := map[string]int{"/denied": http.StatusForbidden, "/unknown": http.StatusUnauthorized, "/lost": http.StatusNotFound, "/busy": http.StatusTooManyRequests}
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status := statuses[r.URL.Path]; status != 0 {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"type":"odd","reason":"no"}}`))
			return
		}
		_, _ = w.Write([]byte(`{"docs1":{"mappings":{"properties":{"body":{"type":"text"}}}}}`))
	}))
	t.Cleanup(engine.Close)
	client, err := esclient.New(esclient.Options{URL: engine.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	cached := esclient.NewCached(client, esclient.CacheOptions{AnalysisBytes: 1 << 20, StatisticsBytes: 1 << 20, TTL: time.Minute})
	t.Cleanup(cached.Close)
	row := []simmatrix.TermRow{{Term: "car", DocFreq: 1}}
	m, err := simmatrix.New(simmatrix.Meta{Docs: 10}, row)
	if err != nil {
		t.Fatal(err)
	}
	store, err := store.Open(t.Context(), store.Options{
		Bindings: []store.Binding{{Name: "m", Indices: []string{"docs*"}, Fields: []string{"body"}}},
		Files:    map[string]store.Loader{"m": store.InMemory(m)}, CacheBytes: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	for _, tt := range []struct {
		index               string
		bound, named, fails bool
		resolved            []string
	}{
		{index: "docs7", bound: true, named: true},
		{index: "live", bound: true, named: true, resolved: []string{"docs1"}},
		{index: "denied"},
		{index: "unknown"},
		{index: "lost"},
		{index: "eu:docs1"},
		{index: "busy", fails: true},
	} {
		t.Run(tt.index, func(t *testing.T) {
			indices := esclient.Indices{Expression: tt.index}
			got, err := matrices{store, cached, nil}.Pin().For(t.Context(), indices, "body")
			if (got.Rows != nil) != tt.bound || got.Named != tt.named || !slices.Equal(got.Resolved, tt.resolved) || (err != nil) != tt.fails {
				t.Errorf("%+v, %v", got, err)
			}
			w, err := weightSource{store, cached}.Pin().Weights(t.Context(), indices, "body")
			if (w != nil) != tt.bound || (err != nil) != tt.fails {
				t.Errorf("weights %v, %v", w, err)
			}
		})
	}
}
