package proxy

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/tracing"
)

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientSpan   = "b7ad6b7169203331"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// startTraced returns a proxy that traces the share sample of
// the requests, and what it exports.
func startTraced(t *testing.T, o Options, sample float64, answer func(n int, r rawRequest) string) (p *rig, spans *tracetest.InMemoryExporter) {
	t.Helper()
	spans = tracetest.NewInMemoryExporter()
	o.Tracer = tracing.NewProvider(sample, sdk.WithSyncer(spans))
	return start(t, o, answer), spans
}

// named returns the span of a name and kind.
func named(t *testing.T, spans tracetest.SpanStubs, name string, kind trace.SpanKind) tracetest.SpanStub {
	t.Helper()
	for _, s := range spans {
		if s.Name == name && s.SpanKind == kind {
			return s
		}
	}
	t.Fatalf("no span %q of kind %v in %v", name, kind, spans)
	return tracetest.SpanStub{}
}

// hasAttributes compares some attributes of a span.
func hasAttributes(t *testing.T, s tracetest.SpanStub, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, a := range s.Attributes {
		if _, wanted := want[string(a.Key)]; wanted {
			got[string(a.Key)] = a.Value.String()
		}
	}
	check.Equal(t, want, got, s.Name)
}

func TestTraceOfARequestGoesOnInTheCluster(t *testing.T) {
	p, exported := startTraced(t, Options{}, 0, nil)
	exchangeRaw(t, p.addr, "GET /books/_doc/1?realtime=secret HTTP/1.1\nHost: a\nTraceparent: "+clientParent+"\nTracestate: v=1\nConnection: close\n\n")
	spans := exported.GetSpans()
	server, call := named(t, spans, "GET", trace.SpanKindServer), named(t, spans, "GET", trace.SpanKindClient)
	check.That(t, server.SpanContext.TraceID().String() == clientTrace && server.Parent.SpanID().String() == clientSpan, "the request is in the trace %s below %s", server.SpanContext.TraceID(), server.Parent.SpanID())
	check.Equal(t, server.SpanContext.SpanID(), call.Parent.SpanID(), "the call is below")
	want := []string{"00-" + clientTrace + "-" + call.SpanContext.SpanID().String() + "-01"}
	got := p.only(t)
	check.That(t, slices.Equal(got.get("Traceparent"), want) && slices.Equal(got.get("Tracestate"), []string{"v=1"}), "the node got %q and %q, want %q", got.get("Traceparent"), got.get("Tracestate"), want)
	hasAttributes(t, server, map[string]string{
		"http.request.method": "GET", "url.path": "/books/_doc/1", "url.scheme": "http", "http.response.status_code": "200",
		"client.address": "127.0.0.1", "network.protocol.version": "1.1",
	})
	hasAttributes(t, call, map[string]string{
		"http.request.method": "GET", "url.full": p.URL + "/books/_doc/1", "http.response.status_code": "200", "server.address": "127.0.0.1",
	})
}

func TestUntracedRequestsKeepTheirBytes(t *testing.T) {
	p, exported := startTraced(t, Options{}, 0, nil)
	for _, parent := range []string{strings.TrimSuffix(clientParent, "1") + "0", "odd"} {
		exchangeRaw(t, p.addr, "GET /books/_doc/1 HTTP/1.1\nHost: a\nTraceparent: "+parent+"\nTracestate: ,,odd\nConnection: close\n\n")
		all := p.all()
		got := all[len(all)-1]
		check.That(t, slices.Equal(got.get("Traceparent"), []string{parent}) && slices.Equal(got.get("Tracestate"), []string{",,odd"}), "the node got %q and %q", got.get("Traceparent"), got.get("Tracestate"))
	}
	spans := exported.GetSpans()
	check.That(t, len(spans) == 0, "spans: %v", spans)
}

func TestHostileTraceHeadersFailNoRequest(t *testing.T) {
	p, _ := startTraced(t, Options{}, 1, nil)
	for name, headers := range map[string]string{
		"garbage":        "Traceparent: \x80\xff--;\n",
		"zeros":          "Traceparent: 00-00000000000000000000000000000000-0000000000000000-01\n",
		"future version": "Traceparent: cc" + clientParent[2:] + "-what-comes\n",
		"twice":          "Traceparent: " + clientParent + "\nTraceparent: " + clientParent + "\n",
		"long state":     "Traceparent: " + clientParent + "\nTracestate: " + strings.Repeat("a=b,", 15<<10) + "\n",
		"odd state":      "Traceparent: " + clientParent + "\nTracestate: =,\xff=\xfe\n",
	} {
		got := exchangeRaw(t, p.addr, "GET /a HTTP/1.1\nHost: a\n"+headers+"Connection: close\n\n")
		check.That(t, strings.HasPrefix(got, "HTTP/1.1 200 "), "%s: %s", name, got)
	}
	huge := exchangeRaw(t, p.addr, "GET /a HTTP/1.1\nHost: a\nTracestate: "+strings.Repeat("a=b,", 25<<10)+"\nConnection: close\n\n")
	check.That(t, strings.HasPrefix(huge, "HTTP/1.1 431 "), "100 KB of tracestate: %.60s", huge)
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
		"failed":     {nil, fails(context.DeadlineExceeded), []string{"read", "expand"}, map[string]string{"akin.outcome": "failed_open", "akin.reason": "budget"}},
		"rejected": {
			inTurn(answerWith(400, jsonType, "{}"), emptyAnswer), rewriteTo(`{}`),
			[]string{"read", "expand", "fallback"},
			map[string]string{"akin.outcome": "failed_open", "akin.reason": "rejected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, exported := startTraced(t, Options{Expander: test.expander}, 1, test.answer)
			exchangeRaw(t, p.addr, request)
			spans := exported.GetSpans()
			server := named(t, spans, "POST /{index}/_search", trace.SpanKindServer)
			hasAttributes(t, server, test.want)
			for _, part := range test.parts {
				s := named(t, spans, part, trace.SpanKindInternal)
				check.That(t, s.Parent.SpanID() == server.SpanContext.SpanID(), "%s: no part of the search: %v", part, s)
			}
			for _, s := range spans {
				for _, a := range s.Attributes {
					check.That(t, !strings.Contains(a.Value.String(), "sec"), "%s: the text of the search is in %s: %s", s.Name, a.Key, a.Value.String())
				}
			}
		})
	}
}

func TestAnswerThatIsCutOffEndsItsSpan(t *testing.T) {
	p, exported := startTraced(t, Options{}, 1, inTurn("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbroken"+hangUp))
	exchangeRaw(t, p.addr, "GET /a HTTP/1.1\nHost: a\nConnection: close\n\n")
	s := named(t, exported.GetSpans(), "GET", trace.SpanKindServer)
	hasAttributes(t, s, map[string]string{"error.type": "aborted"})
	check.Equal(t, codes.Error, s.Status.Code, s.Status, "the status")
}
