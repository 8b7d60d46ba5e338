package serve

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// A lockedBuffer may be written and read at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// has reports an error for each text that the buffer lacks.
func (l *lockedBuffer) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		all := l.String()
		check.That(t, strings.Contains(all, text), "no %s in\n%s", text, all)
	}
}

// startNode starts a node of a cluster and returns its URL.
func startNode(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// refusingCluster answers every call with a status.
func refusingCluster(t *testing.T, status int) string {
	t.Helper()
	return startNode(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
}

func clientOf(t *testing.T, url string) *esclient.Client {
	t.Helper()
	client := check.Got(esclient.New(esclient.Options{URL: url}))(t)
	t.Cleanup(client.Close)
	return client
}

// cachedOf returns what expand asks, in front of a node.
func cachedOf(t *testing.T, url string) *esclient.Cached {
	t.Helper()
	c := esclient.NewCached(clientOf(t, url), esclient.CacheOptions{AnalysisBytes: 1 << 20, StatisticsBytes: 1 << 20, TTL: time.Minute})
	t.Cleanup(c.Close)
	return c
}

func matrixOf(t *testing.T, rows ...simmatrix.TermRow) *simmatrix.Matrix {
	t.Helper()
	return check.Got(simmatrix.New(simmatrix.Meta{Source: "test", Docs: 10}, rows))(t)
}

// written returns the path of a new file.
func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	check.OK(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// oneRow is S and W without rows, bound to every field.
type oneRow struct{}

func (o oneRow) Pin() expand.Pinned               { return o }
func (oneRow) Version() string                    { return "one@1" }
func (oneRow) Checksum() string                   { return "" }
func (oneRow) ID() string                         { return "one" }
func (oneRow) Docs() int64                        { return 10 }
func (oneRow) Power() float64                     { return 1 }
func (oneRow) Model() string                      { return "" }
func (oneRow) Expressions() func(string) bool     { return nil }
func (oneRow) Nearest(string) ([]string, float32) { return nil, 0 }
func (oneRow) Rows(_ context.Context, _ []string, rows []simmatrix.Row) error {
	clear(rows)
	return nil
}

func (o oneRow) For(context.Context, esclient.Indices, string) (expand.Bound, error) {
	return expand.Bound{Rows: o, Named: true}, nil
}

// startApp wires an akin before a cluster, with a matrix that relates two words
// for all unless change takes it away, and returns what it logs.
func startApp(t *testing.T, url string, change func(cfg *configs.Config)) (*App, *lockedBuffer) {
	t.Helper()
	related := []simmatrix.Neighbor{{Term: "automobile", Similarity: 0.99}}
	return startAppOf(t, url, matrixOf(t, simmatrix.TermRow{Term: "car", Neighbors: related}, simmatrix.TermRow{Term: "automobile"}), change)
}

func startAppOf(t *testing.T, url string, m *simmatrix.Matrix, change func(cfg *configs.Config)) (*App, *lockedBuffer) {
	t.Helper()
	cfg, log := configs.Default(), &lockedBuffer{}
	cfg.Cluster.URLs = []string{url}
	cfg.Matrices = []configs.Matrix{{Name: "main", Indices: []string{"*"}, Fields: []string{"*"}}}
	if change != nil {
		change(cfg)
	}
	a := check.Got(New(t.Context(), Options{
		Config: cfg, Files: map[string]store.Loader{"main": store.InMemory(m)}, Log: slog.New(slog.NewJSONHandler(log, nil)), Build: Build{Version: "v1"}, Stdout: &lockedBuffer{},
	}))(t)
	t.Cleanup(a.Close)
	return a, log
}

// reloaderOf returns what reloads a configuration in the place of a's, from a
// file with this content.
func reloaderOf(t *testing.T, a *App, log *lockedBuffer, config string) *reloader {
	t.Helper()
	return newReloader(written(t, "akin.yml", config), a, nil, proxy.NewFront(a.server, nil), log)
}

// call sends a request with a body of JSON to a handler.
func call(h http.Handler, method, path, body string, change ...func(r *http.Request)) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(r)
	}
	h.ServeHTTP(w, r)
	return w
}

// readyz asks an akin for its state.
func readyz(a *App) (status int, answer string) {
	w := call(a.server.AdminHandler(), http.MethodGet, "/readyz", "")
	return w.Code, w.Body.String()
}
