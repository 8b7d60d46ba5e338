package report

import (
	"bytes"
	"io"
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

	"github.com/akin-search/akin/internal/recovery"
)

// maxLoggedText limits each text of a client in a record, in bytes.
const maxLoggedText = 1 << 10

// An Exchange is a request that one goroutine follows; nil follows nothing.
type Exchange struct {
	span   trace.Span   // does nothing if the request is not traced
	access *slog.Logger // gets a record of the request; may be nil
	began  time.Time

	outcome, reason string
	upstream        time.Duration // until the cluster's answer began or failed; 0 if it was not asked
}

// PassedThrough is the outcome of requests other than searches, which have
// [Rewritten], [Unchanged] and [FailedOpen].
const PassedThrough = "passed_through"

// Follow begins to follow a request. It returns nil unless that is traced or
// logged.
func Follow(r *http.Request, traced bool, access *slog.Logger) *Exchange {
	if !traced && access == nil {
		return nil
	}
	return &Exchange{span: trace.SpanFromContext(r.Context()), access: access, began: time.Now()}
}

// Name names a request by the shape of its path.
func (x *Exchange) Name(method, shape string) {
	if x != nil {
		x.span.SetName(method + " " + shape)
		x.span.SetAttributes(attribute.String("http.route", shape))
	}
}

// Note sets outcome and reason of a request, and the time until the cluster's
// answer began or failed. [FailedOpen] is never replaced.
func (x *Exchange) Note(outcome, reason string, upstream time.Duration) {
	if x != nil && x.outcome != FailedOpen {
		x.outcome, x.reason = outcome, reason
		x.upstream = upstream
	}
}

// End ends the exchange of r, whose answer has the status (0 if it did not
// begin) and size given. An answer that is not complete was cut off.
func (x *Exchange) End(r *http.Request, status int, size int64, complete bool) {
	if x == nil {
		return
	}
	for key, value := range map[string]string{"akin.outcome": x.outcome, "akin.reason": x.reason} {
		if value != "" {
			x.span.SetAttributes(attribute.String(key, value))
		}
	}
	if !complete {
		x.span.SetAttributes(attribute.String("error.type", "aborted"))
		x.span.SetStatus(codes.Error, "")
	}
	if x.access != nil {
		x.access.LogAttrs(r.Context(), slog.LevelInfo, "request", x.record(r, status, size, complete)...)
	}
}

// record returns the access log's record of a request. It omits the query
// string, which can be a search.
func (x *Exchange) record(r *http.Request, status int, size int64, complete bool) []slog.Attr {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	record := []slog.Attr{
		slog.String("client", client), slog.String("method", bounded(r.Method)), slog.String("path", bounded(r.URL.EscapedPath())),
		slog.String("protocol", r.Proto), slog.Int("status", status), slog.Int64("bytes", size),
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

// traceID returns the trace id of a request, akin's or else the client's, or
// "".
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

const (
	// maxWaiting limits the lines waiting to be written.
	maxWaiting = 512
	// closing is how long Close waits for the last lines.
	closing = time.Second
)

// Outcomes of a line.
const (
	Written = "written"
	Dropped = "dropped" // too many wait
	Failed  = "failed"  // it could not be written
)

// A Writer writes lines in the background, for concurrent use.
type Writer struct {
	mu    sync.Mutex  // held to add and to close
	lines chan []byte // nil after Close
	ended chan struct{}
	count func(result string)
}

// NewWriter returns a writer to an access log, which gets each line in one
// Write. [Writer.Close] stops it. count is called with the outcome of each
// line, by several goroutines.
func NewWriter(to io.Writer, guard *recovery.Guard, count func(result string)) *Writer {
	lines := make(chan []byte, maxWaiting)
	w := &Writer{lines: lines, ended: make(chan struct{}), count: count}
	go func() {
		defer close(w.ended)
		_ = guard.Do("writing the access log", func() error {
			var torn []byte
			for line := range lines {
				_, err := to.Write(append(torn, line...))
				if err != nil {
					torn = []byte{'\n'}
					count(Failed)
				} else {
					torn = nil
					count(Written)
				}
			}
			return nil
		})
	}()
	return w
}

// Write queues a line, which ends with a line break, unless too many wait. It
// returns no error.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.lines <- bytes.Clone(line):
	default:
		w.count(Dropped)
	}
	return len(line), nil
}

// Close writes the waiting lines, for at most a second.
func (w *Writer) Close() {
	w.mu.Lock()
	if w.lines != nil {
		close(w.lines)
	}
	w.lines = nil
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-time.After(closing): // the disk hangs, and so does the goroutine
	}
}
