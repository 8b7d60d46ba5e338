// Package tracing sets up OpenTelemetry: which requests are traced, what their
// spans hide, and where they are sent.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Environment variables that [Export] reads; the exporter reads more.
const (
	envEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envSample   = "OTEL_TRACES_SAMPLER_ARG"
)

// Export returns a provider that sends spans to /v1/traces below the endpoint
// in the environment, or nil if there is none. It samples all traces that a
// client has begun and samples, and a share of the others. Its Shutdown sends
// waiting spans.
func Export(ctx context.Context, version string) (*sdk.TracerProvider, error) {
	endpoint, sample := os.Getenv(envEndpoint), 0.01
	if endpoint == "" {
		return nil, nil
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New(envEndpoint + ": must be http:// or https://, a host, and perhaps :port and /prefix")
	}
	if text := os.Getenv(envSample); text != "" {
		var err error
		if sample, err = strconv.ParseFloat(text, 64); err != nil || !(sample >= 0 && sample <= 1) {
			return nil, errors.New(envSample + ": must be a share, from 0 to 1")
		}
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithTimeout(5*time.Second))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	origin, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "akin"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return NewProvider(sample, sdk.WithBatcher(exporter), sdk.WithResource(origin)), nil
}

// NewProvider is [Export] with another exporter.
func NewProvider(sample float64, o ...sdk.TracerProviderOption) *sdk.TracerProvider {
	return sdk.NewTracerProvider(append(o, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(sample))),
		sdk.WithRawSpanLimits(sdk.SpanLimits{AttributeValueLengthLimit: 1 << 10, AttributeCountLimit: 32}))...)
}

// Handler traces the requests to h; with a nil provider it returns h.
// otelhttp's handler replaces the request's body until h returns, so it gets a
// copy of the request: net/http checks the body when h sends the header, would
// not see that it was not read to its end, and could take the rest for the next
// request.
func Handler(h http.Handler, p *sdk.TracerProvider) http.Handler {
	if p == nil {
		return h
	}
	traced := otelhttp.NewHandler(h, "", otelhttp.WithTracerProvider(p), otelhttp.WithPropagators(propagation.TraceContext{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { traced.ServeHTTP(w, r.WithContext(r.Context())) })
}

// Transport returns next with a span for each call of a traced request; the
// headers of others stay byte for byte. Query strings can be searches, so it
// removes them from the attributes that otelhttp has set.
func Transport(next http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
		if span := trace.SpanFromContext(r.Context()); span.IsRecording() {
			asked := url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path, RawPath: r.URL.RawPath}
			span.SetAttributes(attribute.String("url.full", asked.String()))
		}
		return next.RoundTrip(r)
	}), otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method }),
		otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsSampled() }))
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Start begins the span of a stage of a traced request, else it does nothing.
func Start(ctx context.Context, stage string) (context.Context, trace.Span) {
	of := trace.SpanFromContext(ctx)
	if !of.SpanContext().IsSampled() {
		return ctx, noop.Span{}
	}
	return of.TracerProvider().Tracer("akin").Start(ctx, stage)
}
