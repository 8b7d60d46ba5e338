package clustertest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An Engine is a real cluster. All names of indices are those that a test gives
// them, after a prefix of its own.
type Engine struct {
	URL, prefix string
	// Make makes a call, with a body unless that is nil. The tests set it.
	Make func(ctx context.Context, method, path string, body any) error
}

// Texts are the words of documents.
var Texts = []string{
	"Running cars", "the car rental", "boats and boats and a boat", "renting 3.14 houses", "x.y 😀 été",
}

// NewEngine returns the cluster that AKIN_E2E_ENGINE_URL names; without one the
// test is skipped.
func NewEngine(tb testing.TB) Engine {
	tb.Helper()
	e := Engine{URL: os.Getenv("AKIN_E2E_ENGINE_URL"), prefix: fmt.Sprintf("test-%d-", time.Now().UnixNano())}
	if e.URL == "" {
		tb.Skip("set AKIN_E2E_ENGINE_URL to the URL of an Elasticsearch or OpenSearch; " +
			"e2e/engines/*/start.sh start one")
	}
	return e
}

// At returns the index expression of some of the test's indices.
func (e Engine) At(names ...string) string { return e.prefix + strings.Join(names, ","+e.prefix) }

// Do makes a call that prepares the cluster.
func (e Engine) Do(tb testing.TB, method, path string, body any) {
	tb.Helper()
	if err := e.Make(tb.Context(), method, path, body); err != nil {
		tb.Fatalf("%s %s: %v", method, path, err)
	}
}

// Create makes an index that goes when the test ends.
func (e Engine) Create(tb testing.TB, index string, settings, mappings map[string]any) {
	tb.Helper()
	path := "/" + url.PathEscape(e.At(index))
	e.Do(tb, http.MethodPut, path, map[string]any{"settings": settings, "mappings": mappings})
	tb.Cleanup(func() { _ = e.Make(context.Background(), http.MethodDelete, path, nil) })
}

// Put writes documents, of the ids 0, 1, ….
func (e Engine) Put(tb testing.TB, index string, docs ...map[string]any) {
	tb.Helper()
	path := "/" + url.PathEscape(e.At(index))
	for i, d := range docs {
		e.Do(tb, http.MethodPut, path+"/_doc/"+strconv.Itoa(i), d)
	}
	e.Do(tb, http.MethodPost, path+"/_refresh", nil)
}
