package tracing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/akin-search/akin/internal/tracing/tracetest"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	sampled = "00-" + traceID + "-b7ad6b7169203331-01"
)

func newTracer(t *testing.T, o Options) *Tracer {
	t.Helper()
	o.Registerer = prometheus.NewRegistry()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	tracer, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tracer.exporter.end)
	return tracer
}

func request(traceparent ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/books/_search?q=secret", http.NoBody)
	if len(traceparent) > 0 {
		r.Header["Traceparent"] = traceparent
	}
	return r
}

func count(t *Tracer, result string) float64 {
	return testutil.ToFloat64(t.exporter.spans.WithLabelValues(result))
}

func TestTraceOfAClientGoesOn(t *testing.T) {
	collector := tracetest.Start(t, nil)
	tracer := newTracer(t, Options{Endpoint: collector.URL + "/", Version: "1.2.3", Header: http.Header{"Authorization": {"Bearer key"}}})
	r := request(sampled)
	r.Header.Set("Tracestate", "vendor=value")
	r, span := tracer.Arrived(r)
	if got := ID(r.Context()); got != traceID {
		t.Errorf("the trace is %q, want the client's", got)
	}
	ctx, part := Start(r.Context(), "part")
	call, sent := Call(request(sampled).WithContext(ctx))
	part.End(errors.New("secret"))
	span.EndStatus(http.StatusOK, 500)
	sent.EndAnswer(&http.Response{StatusCode: http.StatusNotFound}, nil)
	tracer.Close()

	spans := collector.Spans()
	if len(spans) != 3 {
		t.Fatalf("%d spans arrived, want 3", len(spans))
	}
	inner, server, client := spans[0], spans[1], spans[2]
	for _, s := range spans {
		if string(s.GetTraceId()) != string(server.GetTraceId()) || s.GetTraceState() != "vendor=value" {
			t.Errorf("%s: trace %x with state %q", s.GetName(), s.GetTraceId(), s.GetTraceState())
		}
		if s.GetStartTimeUnixNano() == 0 || s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() {
			t.Errorf("%s: from %d to %d", s.GetName(), s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano())
		}
	}
	if string(inner.GetParentSpanId()) != string(server.GetSpanId()) || string(client.GetParentSpanId()) != string(inner.GetSpanId()) {
		t.Error("the spans are not below one another")
	}
	if got := call.Header.Get("Traceparent"); !strings.HasPrefix(got, "00-"+traceID) || got == sampled || call.Header.Get("Tracestate") != "vendor=value" {
		t.Errorf("the call carries %q and %q", got, call.Header.Get("Tracestate"))
	}
	if text := collector.Batches()[0].String(); strings.Contains(text, "secret") || !strings.Contains(text, "1.2.3") || !strings.Contains(text, "/books/_search") {
		t.Errorf("the spans have a text of the search, or not what they should: %s", text)
	}
	if got := collector.Requests()[0].Header.Get("Authorization"); got != "Bearer key" {
		t.Errorf("the collector got the credentials %q", got)
	}
	if count(tracer, exported) != 3 {
		t.Errorf("%v spans are counted as exported", count(tracer, exported))
	}
}

func TestUnsampledRequestIsSentAsItIs(t *testing.T) {
	tracer := newTracer(t, Options{Endpoint: "http://127.0.0.1:1"})
	for name, r := range map[string]*http.Request{"client says no": request(strings.TrimSuffix(sampled, "1") + "0"), "no share of the requests": request()} {
		r, span := tracer.Arrived(r)
		ctx, part := Start(r.Context(), "part")
		if out, call := Call(r.WithContext(ctx)); out.Header.Get("Traceparent") != r.Header.Get("Traceparent") || call != (Span{}) || part != (Span{}) || span != (Span{}) {
			t.Errorf("%s: traced", name)
		}
	}
}

func TestOddTraceparentBeginsAnotherTrace(t *testing.T) {
	collector := tracetest.Start(t, nil)
	tracer := newTracer(t, Options{Endpoint: collector.URL, Sample: 1})
	for name, headers := range map[string][]string{
		"garbage":             {"\xff\x00;--"},
		"empty":               {""},
		"zeros":               {"00-00000000000000000000000000000000-0000000000000000-01"},
		"no span":             {"00-" + traceID + "-0000000000000000-01"},
		"version ff":          {"ff" + sampled[2:]},
		"upper case":          {strings.ToUpper(sampled)},
		"twice":               {sampled, sampled},
		"version 0 with more": {sampled + "-more"},
		"100 KB":              {strings.Repeat("0", 100<<10)},
	} {
		r, _ := tracer.Arrived(request(headers...))
		if got := ID(r.Context()); len(got) != 32 || got == traceID {
			t.Errorf("%s: the trace is %q, want another one", name, got)
		}
	}
	for name, header := range map[string]string{"future version": "cc" + sampled[2:] + "-what-comes", "unknown flags": sampled[:53] + "03"} {
		if r, _ := tracer.Arrived(request(header)); ID(r.Context()) != traceID {
			t.Errorf("%s: the trace is %q, want the client's", name, ID(r.Context()))
		}
	}
	for name, state := range map[string]string{"100 KB": strings.Repeat("a=b,", 25<<10), "garbage": "\x00=\xff"} {
		r := request(sampled)
		r.Header.Set("Tracestate", state)
		r, _ = tracer.Arrived(r)
		if out, _ := Call(r); ID(r.Context()) != traceID || out.Header.Get("Tracestate") != "" {
			t.Errorf("%s: the trace is %q with the state %.20q", name, ID(r.Context()), out.Header.Get("Tracestate"))
		}
	}
}

func TestSpansAreSentAgainWhereTheCollectorRecovers(t *testing.T) {
	for name, test := range map[string]struct {
		first func(http.ResponseWriter)
		calls int
		want  string
	}{
		"busy": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, 2, exported},
		"throttled": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 2, exported},
		"for an hour": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 1, failed},
		"for a day": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 1, failed},
		"bad request": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) }, 1, failed},
		"redirect":    {func(w http.ResponseWriter) { w.Header().Set("Location", "/v1/traces"); w.WriteHeader(http.StatusFound) }, 1, failed},
		"in part": {func(w http.ResponseWriter) {
			body, _ := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 1}})
			w.Write(body)
		}, 1, rejected},
		"more than it got": {func(w http.ResponseWriter) {
			body, _ := proto.Marshal(&collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: math.MaxInt64}})
			w.Write(body)
		}, 1, rejected},
	} {
		t.Run(name, func(t *testing.T) {
			collector := tracetest.Start(t, func(n int, w http.ResponseWriter) {
				if n == 1 {
					test.first(w)
				}
			})
			var log bytes.Buffer
			tracer := newTracer(t, Options{Endpoint: collector.URL, Sample: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			_, span := tracer.Arrived(request())
			span.EndStatus(200, 500)
			tracer.Close()
			if got := len(collector.Requests()); got != test.calls || count(tracer, test.want) != 1 {
				t.Errorf("%d calls, want %d; %v %s", got, test.calls, count(tracer, test.want), test.want)
			}
			if logged := strings.Count(log.String(), "spans of traces are lost"); (logged == 1) != (test.want != exported) {
				t.Errorf("logged: %s", &log)
			}
		})
	}
}

// TestDeadCollectorHoldsNothingUp has a collector that never answers, and more
// spans than may wait.
func TestDeadCollectorHoldsNothingUp(t *testing.T) {
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer server.Close()
	defer close(hang)
	var log bytes.Buffer
	tracer := newTracer(t, Options{Endpoint: server.URL, Sample: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	const spans = 3 * maxWaiting
	for range spans {
		_, span := tracer.Arrived(request())
		span.EndStatus(200, 500)
	}
	if dropped := count(tracer, dropped); dropped < spans-maxWaiting-maxBatch || dropped == spans {
		t.Errorf("%v of %d spans were dropped, want all but those that fit", dropped, spans)
	}
	began := time.Now()
	tracer.Close()
	if took := time.Since(began); took > 3*closeTimeout { // not those of all batches
		t.Errorf("closing took %v", took)
	}
	if got := count(tracer, dropped) + count(tracer, failed); got != spans {
		t.Errorf("%v spans are counted as lost, want %d", got, spans)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 {
		t.Errorf("%d lines were logged, want one: %s", lines, &log)
	}
}

func TestNothingIsAllocatedWithoutATrace(t *testing.T) {
	var off *Tracer
	r := request(sampled)
	ctx := context.WithValue(r.Context(), http.ServerContextKey, new(http.Server))
	r = r.WithContext(ctx)
	if n := testing.AllocsPerRun(100, func() {
		r, span := off.Arrived(r)
		ctx, part := Start(r.Context(), "part")
		out, call := Call(r)
		if out != r || ID(ctx) != "" {
			t.Error("traced")
		}
		_ = Follow(ctx, ctx)
		call.EndAnswer(nil, io.EOF)
		part.End(nil)
		part.Set("key", "value")
		span.EndStatus(200, 500)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
