// Package tracing makes the spans of OpenTelemetry traces, and sends them to a
// collector over OTLP/HTTP. What is not sampled costs nothing but the question
// whether it is.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/akin-search/akin/internal/recovery"
)

// name is that of the instrumentation, and of the service unless
// OTEL_SERVICE_NAME says otherwise.
const name = "akin"

const (
	// maxWaiting is how many spans wait to be sent; more are dropped.
	maxWaiting = 2048
	// maxValue is the length in bytes of the longest attribute, such as a path.
	maxValue = 1 << 10
	// HeaderBytes is the most that a span adds to the headers of a request, beside
	// the tracestate that its client sent.
	HeaderBytes = len("Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n")
	// closeTimeout is how long what waits may take to be sent at the end.
	closeTimeout = 3 * time.Second
)

// Options say what is traced and where spans go.
type Options struct {
	// Endpoint is the base URL of the collector. Spans go to /v1/traces below it.
	Endpoint string
	// Sample is the share of the traces that begin here, in [0, 1]. Those that a
	// client has begun are followed as the client decided.
	Sample float64
	// Header is sent with the spans.
	Header http.Header
	// Version is that of akin.
	Version    string
	Logger     *slog.Logger
	Guard      *recovery.Guard
	Registerer prometheus.Registerer
}

// A Tracer begins traces. A nil Tracer begins none.
type Tracer struct {
	provider *sdk.TracerProvider
	exporter *exporter
}

// New returns a tracer, which [Tracer.Close] ends.
func New(ctx context.Context, o Options) (*Tracer, error) {
	origin, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", name), attribute.String("service.version", o.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	e, err := newExporter(o, origin)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	batches := sdk.NewBatchSpanProcessor(e, sdk.WithMaxQueueSize(maxWaiting), sdk.WithMaxExportBatchSize(maxBatch),
		sdk.WithBatchTimeout(batchDelay), sdk.WithExportTimeout(exportTimeout))
	return &Tracer{exporter: e, provider: sdk.NewTracerProvider(
		sdk.WithSpanProcessor(queue{batches, e}),
		sdk.WithResource(origin),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Sample))),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: maxValue, AttributeCountLimit: 32}),
	)}, nil
}

// Close sends what waits, within a few seconds.
func (t *Tracer) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	defer t.exporter.end()
	stop := context.AfterFunc(ctx, t.exporter.end) // then all that is left fails at once
	defer stop()
	_ = t.provider.Shutdown(context.WithoutCancel(ctx)) // the exporter reports its errors itself
}

// A Span is a part of a trace. The zero Span is none.
type Span struct{ span trace.Span }

// Arrived begins the span of a request that a client sent, which continues the
// client's trace, if there is one. It returns the request in that trace.
func (t *Tracer) Arrived(r *http.Request) (*http.Request, Span) {
	if t == nil {
		return r, Span{}
	}
	// A header that is there twice is no trace, and one too odd to read is none.
	ctx := propagation.TraceContext{}.Extract(r.Context(), joined(r.Header))
	method, kind := knownMethod(r.Method), trace.WithSpanKind(trace.SpanKindServer)
	ctx, span := t.provider.Tracer(name).Start(ctx, spanName(method), kind)
	if !span.IsRecording() {
		return r, Span{}
	}
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	span.SetAttributes(
		attribute.String("http.request.method", method), attribute.String("url.path", r.URL.EscapedPath()), attribute.String("url.scheme", scheme),
		attribute.String("client.address", client), attribute.String("network.protocol.version", version(r)))
	return r.WithContext(ctx), Span{span}
}

// joined reads headers. Values of one name are one list.
type joined http.Header

// Get returns the values of a header.
func (h joined) Get(key string) string { return strings.Join(http.Header(h).Values(key), ",") }

// Set is not used.
func (joined) Set(string, string) {}

// Keys is not used.
func (joined) Keys() []string { return nil }

// knownMethod returns a method that OpenTelemetry knows, "_OTHER" for others,
// which clients can make up.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch,
		http.MethodTrace, http.MethodConnect:
		return method
	}
	return "_OTHER"
}

// spanName returns the name of the span of a request.
func spanName(method string) string {
	if method == "_OTHER" {
		return "HTTP"
	}
	return method
}

func version(r *http.Request) string {
	if r.ProtoMajor >= 2 {
		return strconv.Itoa(r.ProtoMajor)
	}
	return strconv.Itoa(r.ProtoMajor) + "." + strconv.Itoa(r.ProtoMinor)
}

// Start begins a part of the trace that ctx belongs to, if it is sampled.
func Start(ctx context.Context, part string) (context.Context, Span) { return start(ctx, part) }

func start(ctx context.Context, part string, o ...trace.SpanStartOption) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsSampled() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(name).Start(ctx, part, o...)
	return ctx, Span{span}
}

// Follow returns ctx in the trace of another context, for what outlives that.
func Follow(ctx, other context.Context) context.Context {
	if span := trace.SpanFromContext(other); span.SpanContext().IsSampled() {
		return trace.ContextWithSpan(ctx, span)
	}
	return ctx
}

// ID returns the trace that ctx belongs to, "" for none.
func ID(ctx context.Context) string {
	if of := trace.SpanContextFromContext(ctx); of.IsSampled() {
		return of.TraceID().String()
	}
	return ""
}

// Carried returns the trace that a request says it belongs to, "" for none.
func Carried(r *http.Request) string {
	of := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(r.Context(), joined(r.Header)))
	if !of.IsValid() {
		return ""
	}
	return of.TraceID().String()
}

// Call begins the span of a call, and returns the request as it is sent: req
// itself, if it is not traced, else a copy with the span in its headers.
func Call(req *http.Request) (*http.Request, Span) {
	if !trace.SpanContextFromContext(req.Context()).IsSampled() {
		return req, Span{}
	}
	ctx, s := start(req.Context(), spanName(knownMethod(req.Method)), trace.WithSpanKind(trace.SpanKindClient))
	asked := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path, RawPath: req.URL.RawPath}
	s.span.SetAttributes(
		attribute.String("http.request.method", knownMethod(req.Method)), attribute.String("url.full", asked.String()),
		attribute.String("server.address", req.URL.Hostname()))
	if port, err := strconv.Atoi(req.URL.Port()); err == nil {
		s.span.SetAttributes(attribute.Int("server.port", port))
	}
	sent := req.WithContext(ctx)
	sent.Header = req.Header.Clone()
	delete(sent.Header, "Tracestate")
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(sent.Header))
	return sent, s
}

// Set adds an attribute to the span, unless the value is "".
func (s Span) Set(key, value string) {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// SetName names the span by what was asked for.
func (s Span) SetName(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// End ends the span. Of an error it has the kind only: the text may be that of
// a search.
func (s Span) End(err error) {
	switch {
	case s.span == nil:
		return
	case err == nil:
	case errors.Is(err, context.Canceled):
		s.failed("canceled")
	case errors.Is(err, context.DeadlineExceeded):
		s.failed("timeout")
	default:
		s.failed("_OTHER")
	}
	s.span.End()
}

// EndStatus ends the span of a request that got a status; 0 is none, because it
// was cut off. For those that were sent, from is 400, else 500.
func (s Span) EndStatus(status, from int) {
	if s.span == nil {
		return
	}
	if status > 0 {
		s.span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	switch {
	case status == 0:
		s.failed("aborted")
	case status >= from:
		s.failed(strconv.Itoa(status))
	}
	s.span.End()
}

// EndAnswer ends the span of a [Call].
func (s Span) EndAnswer(res *http.Response, err error) {
	if err != nil {
		s.End(err)
		return
	}
	s.EndStatus(res.StatusCode, http.StatusBadRequest)
}

func (s Span) failed(kind string) {
	s.span.SetAttributes(attribute.String("error.type", kind))
	s.span.SetStatus(codes.Error, "")
}
