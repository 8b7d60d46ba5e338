package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collectorpb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/akin-search/akin/internal/recovery"
)

const (
	maxBatch      = 512
	batchDelay    = 5 * time.Second  // of spans that are no whole batch
	exportTimeout = 10 * time.Second // of a batch with all attempts
	callTimeout   = 5 * time.Second
	firstWait     = 500 * time.Millisecond // before the second attempt, twice that before the third
	maxAnswer     = 64 << 10
	warnEvery     = time.Minute
)

// What became of spans, values of the label "result".
const (
	exported = "exported"
	dropped  = "dropped"  // as many wait as may
	failed   = "failed"   // the collector does not answer, or not with a 200
	rejected = "rejected" // by the collector, of a batch of which it took the rest
)

// A queue bounds the spans that wait, and counts those that it drops.
type queue struct {
	sdk.SpanProcessor // has room for all of them

	exporter *exporter
}

// OnEnd takes a span that has ended, if there is room.
func (q queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.exporter.waiting.Add(1) > maxWaiting {
		q.exporter.waiting.Add(-1)
		q.exporter.lost(dropped, 1, nil)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// An exporter sends spans to a collector as OTLP/HTTP has it, in protobuf. The
// SDK's own brings gRPC with it, some hundred packages.
type exporter struct {
	url     string
	header  http.Header
	client  *http.Client
	origin  *resource.Resource
	version string
	log     *slog.Logger
	guard   *recovery.Guard
	spans   *prometheus.CounterVec
	waiting atomic.Int64
	warned  atomic.Int64    // when the log said that spans were lost, in Unix nanoseconds
	life    context.Context //nolint:containedctx // Ends with the tracer: spans belong to no request.
	end     context.CancelFunc
}

func newExporter(o Options, origin *resource.Resource) (*exporter, error) {
	e := &exporter{
		url: strings.TrimRight(o.Endpoint, "/") + "/v1/traces", header: o.Header, origin: origin, version: o.Version, log: o.Logger, guard: o.Guard,
		client: &http.Client{
			Transport: &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswer}, Timeout: callTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_trace_spans_total",
			Help: "Spans of traces that ended, by result: exported, dropped since too many wait, failed to be sent, or rejected by the collector.",
		}, []string{"result"}),
	}
	for _, result := range []string{exported, dropped, failed, rejected} {
		e.spans.WithLabelValues(result)
	}
	e.life, e.end = context.WithCancel(context.Background())
	return e, o.Registerer.Register(e.spans)
}

// ExportSpans sends spans. It returns no error: whoever gets it would only
// print it.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	e.waiting.Add(-int64(len(spans)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)() //nolint:contextcheck // The end of the tracer ends the call, too.
	var refused int64
	err := e.guard.Do("exporting spans", func() error {
		body, err := proto.Marshal(e.request(spans))
		if err == nil {
			refused, err = e.send(ctx, body)
			refused = min(max(refused, 0), int64(len(spans))) // whatever the collector says
		}
		return err
	})
	switch {
	case err != nil:
		e.lost(failed, int64(len(spans)), err)
		return nil
	case refused > 0:
		e.lost(rejected, refused, nil)
	}
	e.spans.WithLabelValues(exported).Add(float64(int64(len(spans)) - refused))
	return nil
}

// Shutdown closes the connection.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

// lost counts spans that do not arrive, and logs that at times.
func (e *exporter) lost(result string, n int64, err error) {
	e.spans.WithLabelValues(result).Add(float64(n))
	now, last := time.Now().UnixNano(), e.warned.Load()
	if time.Duration(now-last) > warnEvery && e.warned.CompareAndSwap(last, now) {
		e.log.Warn("spans of traces are lost; requests are not touched by that", "result", result, "spans", n, "err", err)
	}
}

// send sends a batch, and once more as long as the collector may recover and
// there is time. It returns how many spans the collector took no part of.
func (e *exporter) send(ctx context.Context, body []byte) (refused int64, err error) {
	for wait := firstWait; ; wait *= 2 {
		refused, after, err := e.post(ctx, body)
		if err == nil || after < 0 {
			return refused, err
		}
		after = max(after, wait/2+rand.N(wait)) //nolint:gosec // a delay, no secret
		if end, ok := ctx.Deadline(); ok && time.Until(end) < after {
			return 0, err
		}
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return 0, err
		}
	}
}

// post makes one call. With an error it returns how long to wait at least until
// the next one, less than 0 for none.
func (e *exporter) post(ctx context.Context, body []byte) (refused int64, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return 0, -1, err
	}
	maps.Copy(req.Header, e.header)
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", name+"/"+e.version)
	res, err := e.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch res.StatusCode {
	case http.StatusOK:
		var said collectorpb.ExportTraceServiceResponse
		if err == nil && proto.Unmarshal(answer, &said) == nil {
			refused = said.GetPartialSuccess().GetRejectedSpans()
		}
		return refused, 0, nil // an answer in another format is one, too
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 0, retryAfter(res.Header.Get("Retry-After")), fmt.Errorf("the collector answers %s", res.Status)
	}
	return 0, -1, errors.Join(fmt.Errorf("the collector answers %s", res.Status), err)
}

// retryAfter returns how long a Retry-After asks to wait, 0 if it says nothing.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 64); err == nil {
		return time.Duration(min(seconds, 1<<16)) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(time.Until(at), 0)
}

// request returns spans as the protocol has them.
func (e *exporter) request(spans []sdk.ReadOnlySpan) *collectorpb.ExportTraceServiceRequest {
	out := make([]*tracepb.Span, len(spans))
	for i, s := range spans {
		of, parent := s.SpanContext(), s.Parent()
		traceID, spanID, parentID := of.TraceID(), of.SpanID(), parent.SpanID()
		out[i] = &tracepb.Span{
			TraceId: traceID[:], SpanId: spanID[:], TraceState: of.TraceState().String(), Flags: uint32(of.TraceFlags()),
			Name: s.Name(), Kind: tracepb.Span_SpanKind(s.SpanKind()), //nolint:gosec // one of five
			StartTimeUnixNano: uint64(s.StartTime().UnixNano()), EndTimeUnixNano: uint64(s.EndTime().UnixNano()),
			Attributes: attributes(s.Attributes()),
		}
		if s.Status().Code == codes.Error {
			out[i].Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
		}
		if parent.IsValid() {
			out[i].ParentSpanId = parentID[:]
		}
	}
	return &collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: attributes(e.origin.Attributes())},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: name, Version: e.version}, Spans: out,
		}},
	}}}
}

// attributes returns attributes as the protocol has them.
func attributes(in []attribute.KeyValue) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, len(in))
	for i, a := range in {
		value := &commonpb.AnyValue{}
		if a.Value.Type() == attribute.INT64 {
			value.Value = &commonpb.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		} else {
			value.Value = &commonpb.AnyValue_StringValue{StringValue: a.Value.String()}
		}
		out[i] = &commonpb.KeyValue{Key: string(a.Key), Value: value}
	}
	return out
}
