package serve

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/demo"
)

func TestTraceOfASearchHasItsStages(t *testing.T) {
	var carried atomic.Int64 // what akin asks at start may still be on its way
	engine := demo.NewEngine()
	node := startNode(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if parent := r.Header.Get("Traceparent"); parent != "" {
			carried.Add(1)
		}
		engine.ServeHTTP(w, r)
	}))
	spans, credentials := make(chan *tracepb.Span, 1000), make(chan string, 100)
	collector := startNode(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		batch := &collectorpb.ExportTraceServiceRequest{}
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, batch) != nil {
			t.Errorf("the collector got %s %s with a body of %d bytes (%v)", r.Method, r.URL, len(body), err)
		}
		credentials <- r.Header.Get("Authorization")
		for _, of := range batch.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					spans <- s
				}
			}
		}
	}))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=ApiKey%20secret")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "1")
	a, _ := startApp(t, node, func(cfg *configs.Config) {
		cfg.Expansion.Budget = configs.Duration(10 * time.Second)
	})
	call(engine, http.MethodPut, "/books", `{"mappings":{"properties":{"title":{"type":"text"}}}}`)
	call(engine, http.MethodPost, "/books/_bulk", `{"index":{"_id":"1"}}
{"title":"an automobile"}
{"index":{"_id":"2"}}
{"title":"a car"}
`)
	w := call(a.server.Handler(), http.MethodPost, "/books/_search", `{"query":{"match":{"title":"car"}}}`)
	check.Must(t, strings.Contains(w.Body.String(), "automobile"), "not expanded: %s", w.Body)
	a.Close()

	byID, server := map[string]*tracepb.Span{}, (*tracepb.Span)(nil)
	close(spans)
	for s := range spans {
		byID[string(s.GetSpanId())] = s
		if s.GetName() == "POST /{index}/_search" {
			server = s
		}
	}
	parts := map[string]int{}
	for _, s := range byID {
		if string(s.GetTraceId()) != string(server.GetTraceId()) {
			continue
		}
		path := s.GetName()
		for p := byID[string(s.GetParentSpanId())]; p != nil; p = byID[string(p.GetParentSpanId())] {
			path = p.GetName() + " > " + path
		}
		parts[path]++
	}
	const root = "POST /{index}/_search"
	for _, path := range []string{
		root, root + " > read", root + " > POST", root + " > expand",
		root + " > expand > parse", root + " > expand > fields", root + " > expand > analyze > POST",
		root + " > expand > analyze", root + " > expand > rows", root + " > expand > select", root + " > expand > write",
	} {
		check.That(t, parts[path] != 0, "no span %q in %v", path, parts)
	}
	check.That(t, carried.Load() >= 4, "%d calls with a traceparent", carried.Load())
	check.Equal(t, "ApiKey secret", <-credentials, "the collector got the credentials")
}

func TestAccessLogGoesToStandardOutput(t *testing.T) {
	a, _ := startApp(t, refusingCluster(t, http.StatusTeapot), func(cfg *configs.Config) { cfg.Log.Access = true })
	call(a.server.Handler(), http.MethodGet, "/books?q=secret", "")
	a.Close() // which writes what waits
	got := a.process.stdout.(*lockedBuffer)
	got.has(t, `"path":"/books","protocol":"HTTP/1.1","status":418,`)
	check.Equal(t, 1, strings.Count(got.String(), "\n"), "standard output has", got)
}
