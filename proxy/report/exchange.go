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

// maxLoggedText is how many bytes of a path, or of what else a client
// sends, are in a record.
const maxLoggedText = 1 << 10

// An Exchange is a request that is followed, by one goroutine. A nil
// Exchange is one that is not.
type Exchange struct {
	span   trace.Span   // without effect where the request is not traced
	access *slog.Logger // gets a record of the request; nil is none
	began  time.Time

	outcome, reason string
	upstream        time.Duration // until the cluster's answer began or failed, 0 where it was not asked
}

// PassedThrough is the outcome of requests that are not searches; [Rewritten],
// [Unchanged] and [FailedOpen] are those of searches.
const PassedThrough = "passed_through"

// Follow begins to follow a request, nil where it is neither traced nor logged.
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

// Note notes what became of a request, and why, and how long it took until the
// cluster's answer began or failed. What failed stays failed.
func (x *Exchange) Note(outcome, reason string, upstream time.Duration) {
	if x != nil && x.outcome != FailedOpen {
		x.outcome, x.reason, x.upstream = outcome, reason, upstream
	}
}

// End ends the exchange of r, whose answer has that status, 0 where it did not
// begin, and a body of so many bytes. An answer that is not complete was cut
// off.
func (x *Exchange) End(r *http.Request, status int, bytes int64, complete bool) {
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
		x.access.LogAttrs(r.Context(), slog.LevelInfo, "request", x.record(r, status, bytes, complete)...)
	}
}

// record returns what the access log says of a request that has ended. The
// query string is left out: it can be a search.
func (x *Exchange) record(r *http.Request, status int, bytes int64, complete bool) []slog.Attr {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	record := []slog.Attr{
		slog.String("client", client), slog.String("method", bounded(r.Method)), slog.String("path", bounded(r.URL.EscapedPath())),
		slog.String("protocol", r.Proto), slog.Int("status", status), slog.Int64("bytes", bytes),
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

const (
	// maxWaiting is how many lines wait to be written.
	maxWaiting = 512
	// closing is how long the last lines have.
	closing = time.Second
)

// What became of a line.
const (
	Written = "written"
	Dropped = "dropped" // too many wait
	Failed  = "failed"  // it could not be written
)

// A Writer takes lines. Its methods may be called at the same time.
type Writer struct {
	mu    sync.Mutex  // held to add and to close
	lines chan []byte // nil once it is closed
	ended chan struct{}
	count func(result string)
}

// NewWriter returns a writer to an access log, which gets each line in one
// Write; [Writer.Close] ends it. count is called with what became of each line,
// by several goroutines.
func NewWriter(to io.Writer, guard *recovery.Guard, count func(result string)) *Writer {
	lines := make(chan []byte, maxWaiting)
	w := &Writer{lines: lines, ended: make(chan struct{}), count: count}
	go func() {
		defer close(w.ended)
		_ = guard.Do("writing the access log", func() error {
			var torn []byte
			for line := range lines {
				_, err := to.Write(append(torn, line...))
				if torn = nil; err != nil {
					torn = []byte{'\n'}
					count(Failed)
				} else {
					count(Written)
				}
			}
			return nil
		})
	}()
	return w
}

// Write has a line written, which ends with a line break, unless too many wait.
// It returns no error.
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

// Close writes what waits, for a second at most.
func (w *Writer) Close() {
	w.mu.Lock()
	if w.lines != nil {
		close(w.lines)
	}
	w.lines = nil
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-time.After(closing): // the disk hangs, and with it that goroutine
	}
}
