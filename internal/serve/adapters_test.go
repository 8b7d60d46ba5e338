package serve

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
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
	url := startNode(t, demo.NewEngine())
	api := documents.API{Client: clientOf(t, url)}
	const mappings = `{"mappings":{"properties":{"title":{"type":"text","analyzer":"english"},` +
		`"body":{"type":"text"}}}}`
	check.OK(t, check.ErrOf(api.CreateIndex(t.Context(), "help", []byte(mappings))))
	docs := []documents.Document{{ID: "1", Source: map[string]string{"title": "running cars"}}}
	check.OK(t, api.Index(t.Context(), "help", docs))
	return cachedOf(t, url)
}

func TestWhatIsNoFailureOfTheClusterIsToldToExpand(t *testing.T) {
	mixed := cachedOf(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"a":{"mappings":{"properties":{"f":{"type":"text"}}}},` +
			`"b":{"mappings":{"properties":{"f":{"type":"text","analyzer":"english"}}}}}`))
	})))
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
		{"indices that differ", mixed, "a,b", `{"match":{"f":"x"}}`, reason.Mixed},
		{"no such index", c, "gone", `{"match":{"title":"x"}}`, reason.UnknownToCluster},
	} {
		e := expand.New(tt.cluster, oneRow{}, expand.DefaultProfile())
		r, err := e.Expand(t.Context(), &expand.Request{Index: tt.index, Body: []byte(`{"query":` + tt.query + `}`)})
		check.That(t, err == nil && r.Reason == tt.want, "%s: %+v, error %v, want %s", tt.name, r, err, tt.want)
	}
	options := esclient.Indices{Expression: "help", Options: "pretty=true"}
	_, err := c.Fields(t.Context(), options, "t*")
	check.That(t, err != nil && !errors.Is(err, mapping.ErrNotText) && strings.Contains(err.Error(), "pretty"), "error %v for what is no option", err)
}

// An index that the cluster tells nothing of is bound by its name or not at all;
// when the cluster fails, nobody knows what is bound.
func TestExpressionsThatTheClusterDoesNotResolve(t *testing.T) {
	statuses := map[string]int{"/denied": http.StatusForbidden, "/unknown": http.StatusUnauthorized, "/lost": http.StatusNotFound, "/busy": http.StatusTooManyRequests}
	cached := cachedOf(t, startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status := statuses[r.URL.Path]; status != 0 {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":{"type":"odd","reason":"no"}}`))
			return
		}
		_, _ = w.Write([]byte(`{"docs1":{"mappings":{"properties":{"body":{"type":"text"}}}}}`))
	})))
	rows := check.Got(store.Open(t.Context(), store.Options{
		Bindings: []store.Binding{{Name: "m", Indices: []string{"docs*"}, Fields: []string{"body"}}},
		Files:    map[string]store.Loader{"m": store.InMemory(matrixOf(t, simmatrix.TermRow{Term: "car"}))}, CacheBytes: 1 << 20,
	}))(t)
	t.Cleanup(func() { _ = rows.Close() })
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
			got, err := matrices{rows, cached, nil}.Pin().For(t.Context(), indices, "body")
			if (got.Rows != nil) != tt.bound || got.Named != tt.named || !slices.Equal(got.Resolved, tt.resolved) || (err != nil) != tt.fails {
				t.Errorf("%+v, %v", got, err)
			}
			w, err := weightSource{rows, cached}.Pin().Weights(t.Context(), indices, "body")
			check.That(t, (w != nil) == tt.bound && (err != nil) == tt.fails, "weights %v, %v", w, err)
		})
	}
}
