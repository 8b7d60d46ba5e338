// Package tracetest has a collector of traces for tests.
package tracetest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Collector takes spans over OTLP/HTTP.
type Collector struct {
	URL string

	mu       sync.Mutex
	requests []*http.Request
	batches  []*collectorpb.ExportTraceServiceRequest
}

// Start starts a collector for the time of a test. answer, unless nil, writes
// its n-th answer, from 1; else it takes all.
func Start(t *testing.T, answer func(n int, w http.ResponseWriter)) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		batch := &collectorpb.ExportTraceServiceRequest{}
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" ||
			proto.Unmarshal(body, batch) != nil {
			t.Errorf("the collector got %s %s with %v and a body of %d bytes (%v)", r.Method, r.URL, r.Header, len(body), err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.requests, c.batches = append(c.requests, r), append(c.batches, batch)
		if answer != nil {
			answer(len(c.requests), w)
		}
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Requests returns the requests so far.
func (c *Collector) Requests() []*http.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*http.Request(nil), c.requests...)
}

// Batches returns what they carried.
func (c *Collector) Batches() []*collectorpb.ExportTraceServiceRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*collectorpb.ExportTraceServiceRequest(nil), c.batches...)
}

// Spans returns the spans so far.
func (c *Collector) Spans() (spans []*tracepb.Span) {
	for _, batch := range c.Batches() {
		for _, of := range batch.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				spans = append(spans, scope.GetSpans()...)
			}
		}
	}
	return spans
}

// Attributes returns the attributes of a span as text.
func Attributes(s *tracepb.Span) map[string]string {
	all := map[string]string{}
	for _, a := range s.GetAttributes() {
		all[a.GetKey()] = a.GetValue().GetStringValue()
		if n := a.GetValue().GetIntValue(); n != 0 {
			all[a.GetKey()] = strconv.FormatInt(n, 10)
		}
	}
	return all
}
