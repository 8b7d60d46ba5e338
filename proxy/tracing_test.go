package proxy

import (
	"context"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/internal/tracing/tracetest"
)

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientSpan   = "b7ad6b7169203331"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// A tracedProxy is one that traces, and sends all spans when it is asked for
// them.
type tracedProxy struct {
	addr      string
	tracer    *tracing.Tracer
	collector *tracetest.Collector
}

func startTraced(t *testing.T, o Options, sample float64) *tracedProxy {
	t.Helper()
	p := &tracedProxy{collector: tracetest.Start(t, nil)}
	o.Registry = prometheus.NewRegistry()
	var err error
	if o.Tracer, err = tracing.New(t.Context(), tracing.Options{Endpoint: p.collector.URL, Sample: sample, Logger: slog.New(slog.DiscardHandler), Registerer: o.Registry}); err != nil {
		t.Fatal(err)
	}
	p.tracer = o.Tracer
	p.addr, _ = startProxy(t, o)
	return p
}

// spans ends the tracing and returns all spans by their names.
func (p *tracedProxy) spans() map[string]*tracepb.Span {
	p.tracer.Close()
	named := map[string]*tracepb.Span{}
	for _, s := range p.collector.Spans() {
		named[s.GetName()] = s
	}
	return named
}

// traced compares some attributes of a span.
func traced(t *testing.T, s *tracepb.Span, want map[string]string) {
	t.Helper()
	got := tracetest.Attributes(s)
	for key := range got {
		if _, wanted := want[key]; !wanted {
			delete(got, key)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", s.GetName(), diff)
	}
}

func TestTraceOfARequestGoesOnInTheCluster(t *testing.T) {
	node := startRawNode(t, nil)
	p := startTraced(t, Options{Upstreams: []string{node.URL}}, 0)
	exchangeRaw(t, p.addr, "GET /books/_doc/1?realtime=secret HTTP/1.1\nHost: a\nTraceparent: "+clientParent+"\nTracestate: v=1\nConnection: close\n\n")
	spans := p.spans()
	if len(p.collector.Spans()) != 2 || spans["GET"] == nil {
		t.Fatalf("spans: %v", p.collector.Spans())
	}
	var server, call *tracepb.Span
	for _, s := range p.collector.Spans() {
		if s.GetKind() == tracepb.Span_SPAN_KIND_SERVER {
			server = s
		} else {
			call = s
		}
	}
	if hex.EncodeToString(server.GetTraceId()) != clientTrace || hex.EncodeToString(server.GetParentSpanId()) != clientSpan {
		t.Errorf("the request is in the trace %x below %x", server.GetTraceId(), server.GetParentSpanId())
	}
	if string(call.GetParentSpanId()) != string(server.GetSpanId()) || call.GetKind() != tracepb.Span_SPAN_KIND_CLIENT {
		t.Errorf("the call is below %x", call.GetParentSpanId())
	}
	want := []string{"00-" + clientTrace + "-" + hex.EncodeToString(call.GetSpanId()) + "-01"}
	if got := node.only(t); !slices.Equal(got.get("Traceparent"), want) || !slices.Equal(got.get("Tracestate"), []string{"v=1"}) {
		t.Errorf("the node got %q and %q, want %q", got.get("Traceparent"), got.get("Tracestate"), want)
	}
	traced(t, server, map[string]string{
		"http.request.method": "GET", "url.path": "/books/_doc/1", "url.scheme": "http", "http.response.status_code": "200",
		"client.address": "127.0.0.1", "network.protocol.version": "1.1",
	})
	traced(t, call, map[string]string{
		"http.request.method": "GET", "url.full": node.URL + "/books/_doc/1", "http.response.status_code": "200", "server.address": "127.0.0.1",
	})
}

// TestUntracedRequestsKeepTheirBytes sends what is not sampled through a proxy
// that traces.
func TestUntracedRequestsKeepTheirBytes(t *testing.T) {
	node := startRawNode(t, nil)
	p := startTraced(t, Options{Upstreams: []string{node.URL}}, 0)
	for _, parent := range []string{strings.TrimSuffix(clientParent, "1") + "0", "odd"} {
		exchangeRaw(t, p.addr, "GET /books/_doc/1 HTTP/1.1\nHost: a\nTraceparent: "+parent+"\nTracestate: ,,odd\nConnection: close\n\n")
		all := node.all()
		if got := all[len(all)-1]; !slices.Equal(got.get("Traceparent"), []string{parent}) || !slices.Equal(got.get("Tracestate"), []string{",,odd"}) {
			t.Errorf("the node got %q and %q", got.get("Traceparent"), got.get("Tracestate"))
		}
	}
	if spans := p.spans(); len(spans) > 0 {
		t.Errorf("spans: %v", spans)
	}
}

func TestHostileTraceHeadersFailNoRequest(t *testing.T) {
	node := startRawNode(t, nil)
	p := startTraced(t, Options{Upstreams: []string{node.URL}, MaxHeader: 64 << 10}, 1)
	for name, headers := range map[string]string{
		"garbage":        "Traceparent: \x80\xff--;\n",
		"zeros":          "Traceparent: 00-00000000000000000000000000000000-0000000000000000-01\n",
		"future version": "Traceparent: cc" + clientParent[2:] + "-what-comes\n",
		"twice":          "Traceparent: " + clientParent + "\nTraceparent: " + clientParent + "\n",
		"long state":     "Traceparent: " + clientParent + "\nTracestate: " + strings.Repeat("a=b,", 15<<10) + "\n",
		"odd state":      "Traceparent: " + clientParent + "\nTracestate: =,\xff=\xfe\n",
	} {
		got := exchangeRaw(t, p.addr, "GET /a HTTP/1.1\nHost: a\n"+headers+"Connection: close\n\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	huge := exchangeRaw(t, p.addr, "GET /a HTTP/1.1\nHost: a\nTracestate: "+strings.Repeat("a=b,", 25<<10)+"\nConnection: close\n\n")
	if !strings.HasPrefix(huge, "HTTP/1.1 431 ") {
		t.Errorf("100 KB of tracestate: %.60s", huge)
	}
}

func TestTraceOfASearchSaysWhatBecameOfIt(t *testing.T) {
	const request = "POST /books/_search?q=sec HTTP/1.1\nHost: a\nContent-Type: application/json\nConnection: close\nContent-Length: 15\n\n" +
		`{"query":"sec"}`
	for name, test := range map[string]struct {
		answer   func(int, rawRequest) string
		expander expander
		parts    []string
		want     map[string]string
	}{
		"rewritten":  {nil, rewriteTo(`{}`), []string{"read", "expand"}, map[string]string{"akin.outcome": "rewritten", "http.route": "/{index}/_search"}},
		"left alone": {nil, leaveAlone, []string{"read", "expand"}, map[string]string{"akin.outcome": "unchanged", "akin.reason": "left alone"}},
		"failed": {
			nil, func(context.Context, *expand.Request) (*expand.Result, error) { return nil, context.DeadlineExceeded },
			[]string{"read", "expand"},
			map[string]string{"akin.outcome": "failed_open", "akin.reason": "budget"},
		},
		"rejected": {func(n int, _ rawRequest) string {
			if n == 1 {
				return "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
			}
			return emptyAnswer
		}, rewriteTo(`{}`), []string{"read", "expand", "fallback"}, map[string]string{"akin.outcome": "failed_open", "akin.reason": "rejected"}},
	} {
		t.Run(name, func(t *testing.T) {
			node := startRawNode(t, test.answer)
			p := startTraced(t, Options{Upstreams: []string{node.URL}, Expander: test.expander}, 1)
			exchangeRaw(t, p.addr, request)
			spans := p.spans()
			server := spans["POST /{index}/_search"]
			traced(t, server, test.want)
			for _, part := range test.parts {
				if string(spans[part].GetParentSpanId()) != string(server.GetSpanId()) {
					t.Errorf("%s: no part of the search: %v", part, spans[part])
				}
			}
			for _, batch := range p.collector.Batches() {
				if strings.Contains(batch.String(), "sec") {
					t.Errorf("the text of the search is in the spans: %v", batch)
				}
			}
		})
	}
}

func TestAnswerThatIsCutOffEndsItsSpan(t *testing.T) {
	node := startRawNode(t, func(int, rawRequest) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbroken" + hangUp
	})
	p := startTraced(t, Options{Upstreams: []string{node.URL}}, 1)
	exchangeRaw(t, p.addr, "GET /a HTTP/1.1\nHost: a\nConnection: close\n\n")
	p.tracer.Close()
	for _, s := range p.collector.Spans() {
		if s.GetKind() == tracepb.Span_SPAN_KIND_SERVER {
			traced(t, s, map[string]string{"error.type": "aborted"})
			if s.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR {
				t.Errorf("the status is %v", s.GetStatus())
			}
			return
		}
	}
	t.Error("there is no span of the request")
}
