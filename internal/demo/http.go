package demo

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// NewEngine returns an engine without indices.
func NewEngine() *Engine {
	e := &Engine{uuid: rand.Text(), mux: http.NewServeMux(), indices: map[string]*index{}, scrolls: map[string]*results{}}
	for pattern, h := range map[string]handler{
		"GET /{$}":                   e.info,
		"PUT /{index}":               e.createIndex,
		"GET /{index}":               e.describe,
		"GET /{index}/_settings":     e.describe,
		"POST /{index}/_analyze":     e.analyze,
		"POST /{index}/_termvectors": e.termVectors,
		"POST /_mtermvectors":        e.manyTermVectors,
		"POST /{index}/_bulk":        e.bulk,
		"GET /{index}/_search":       e.search,
		"POST /{index}/_search":      e.search,
		"GET /_search":               e.search,
		"POST /_search":              e.search,
		"POST /{index}/_msearch":     e.manySearches,
		"GET /{index}/_count":        e.count,
		"POST /{index}/_count":       e.count,
		"POST /_search/scroll":       e.nextPage,
		"DELETE /_search/scroll":     e.closeScrolls,
		"/":                          noHandler,
	} {
		e.mux.Handle(pattern, e.serve(h))
	}
	return e
}

// ServeHTTP answers one request. A body may have 1 MiB, for _bulk 64 MiB.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(w, r) }

// Serve serves at an address until stop is called.
func (e *Engine) Serve(ctx context.Context, address string) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with ErrServerClosed
	}()
	return "http://" + l.Addr().String(), func() {
		_ = server.Close()
		<-done
	}, nil
}

// A handler returns the body of the answer, which is encoded as JSON, or panics
// with a [refusal].
type handler func(c *call) any

func noHandler(c *call) any {
	panic(illegal("no handler found for uri [%s] and method [%s]: the embedded engine does not serve it", c.URL.RequestURI(), c.Method))
}

// serve handles requests by h: searches concurrently, others one by one.
func (e *Engine) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, params: r.URL.Query(), status: http.StatusOK}
		var body any
		if refused := caught(func() {
			c.read(w)
			if strings.HasSuffix(r.Pattern, "/_search") && !c.params.Has("scroll") {
				e.mu.RLock()
				defer e.mu.RUnlock()
			} else {
				e.mu.Lock()
				defer e.mu.Unlock()
			}
			c.started = time.Now()
			if index := r.PathValue("index"); strings.HasPrefix(index, "_") && index != "_all" {
				noHandler(c)
			}
			body = h(c)
		}); refused != nil {
			c.status, body = refused.status, refused.body()
		}
		options := []json.Options{json.Deterministic(true)}
		if c.flag("pretty") {
			options = append(options, jsontext.WithIndent("  "))
		}
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(c.status)
		_ = json.MarshalWrite(w, body, options...) // on error the client is gone
	}
}
