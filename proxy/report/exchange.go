package report

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// maxLoggedText is how many bytes of a path, or of what else a client
// sends, are in a record.
const maxLoggedText = 1 << 10

// An Exchange is a request that is followed. A nil Exchange is one that is not.
type Exchange struct {
	http.ResponseWriter

	span   trace.Span // without effect where the request is not traced
	began  time.Time
	status int   // 0 until the answer begins
	bytes  int64 // of its body

	mu              sync.Mutex
	outcome, reason string
	upstream        time.Duration // until the cluster's answer began, 0 where none did
}

// PassedThrough is the outcome of requests that are not searches; [Rewritten],
// [Unchanged] and [FailedOpen] are those of searches.
const PassedThrough = "passed_through"

type key struct{}

// of returns the exchange of a context, nil for none.
func of(ctx context.Context) *Exchange {
	x, _ := ctx.Value(key{}).(*Exchange)
	return x
}

// Handler returns h, whose requests are followed: h itself where they are not
// traced and there is no access log. access gets a record of each request.
func Handler(h http.Handler, traced bool, access *slog.Logger) http.Handler {
	if !traced && access == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &Exchange{ResponseWriter: w, span: trace.SpanFromContext(r.Context()), began: time.Now()}
		r = r.WithContext(context.WithValue(r.Context(), key{}, x))
		complete := false
		defer func() { x.end(r, access, complete) }()
		h.ServeHTTP(x, r)
		complete = true
	})
}

// Unwrap is for [http.ResponseController].
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader notes the status.
func (x *Exchange) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write notes how much is written.
func (x *Exchange) Write(p []byte) (int, error) {
	n, err := x.ResponseWriter.Write(p)
	x.bytes += int64(n)
	return n, err
}

// Answered notes that the cluster's answer to a request begins, which was sent
// at a time.
func Answered(ctx context.Context, sent time.Time) {
	if x := of(ctx); x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.upstream = time.Since(sent)
	}
}

// Name names a request by the shape of its path.
func Name(r *http.Request, shape string) {
	if x := of(r.Context()); x != nil {
		x.span.SetName(r.Method + " " + shape)
		x.span.SetAttributes(attribute.String("http.route", shape))
	}
}

// Note notes what became of a search, and why. What failed stays failed.
func Note(ctx context.Context, outcome, reason string) {
	x := of(ctx)
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.outcome != FailedOpen {
		x.outcome, x.reason = outcome, reason
	}
}

// end ends the exchange. Without a complete answer it was cut off.
func (x *Exchange) end(r *http.Request, access *slog.Logger, complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, value := range map[string]string{"akin.outcome": x.outcome, "akin.reason": x.reason} {
		if value != "" {
			x.span.SetAttributes(attribute.String(key, value))
		}
	}
	if complete && x.status == 0 { // written by whoever took the connection over
		x.status = http.StatusSwitchingProtocols
	}
	if !complete {
		x.span.SetAttributes(attribute.String("error.type", "aborted"))
		x.span.SetStatus(codes.Error, "")
	}
	if access != nil {
		access.LogAttrs(r.Context(), slog.LevelInfo, "request", x.record(r, complete)...)
	}
}

// record returns what the access log says of a request that has ended. The
// query string is left out: it can be a search. The lock is held.
func (x *Exchange) record(r *http.Request, complete bool) []slog.Attr {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	record := []slog.Attr{
		slog.String("client", client), slog.String("method", bounded(r.Method)), slog.String("path", bounded(r.URL.EscapedPath())),
		slog.String("protocol", r.Proto), slog.Int("status", x.status), slog.Int64("bytes", x.bytes),
		slog.Float64("duration_ms", milliseconds(time.Since(x.began))),
	}
	if x.upstream > 0 {
		record = append(record, slog.Float64("upstream_ms", milliseconds(x.upstream)))
	}
	if !complete {
		record = append(record, slog.Bool("aborted", true))
	}
	for _, a := range [][2]string{
		{"outcome", x.outcome},
		{"reason", x.reason},
		{"opaque_id", bounded(r.Header.Get("X-Opaque-Id"))},
		{"trace_id", traceID(r)},
	} {
		if a[1] != "" {
			record = append(record, slog.String(a[0], a[1]))
		}
	}
	return record
}

// traceID returns the trace of a request: that which akin has spans in, else
// the client's, "" for none.
func traceID(r *http.Request) string {
	of := trace.SpanContextFromContext(r.Context())
	if !of.IsSampled() {
		of = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
	}
	if !of.IsValid() {
		return ""
	}
	return of.TraceID().String()
}

func bounded(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxLoggedText)], "") }

// milliseconds returns a time in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
