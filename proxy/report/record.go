package report

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// maxLoggedText is how many bytes of a path, or of what else a client
// sends, are in a record.
const maxLoggedText = 1 << 10

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
