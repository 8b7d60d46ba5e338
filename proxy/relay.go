package proxy

import (
	"cmp"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/proxy/report"
)

// flushDelay is how long a piece of an answer waits for the next one before it
// is sent. Clients that stop reading behind the JSON, as Go's do, can reuse
// their connection only if the last chunk came together with the empty one
// after it.
const flushDelay = time.Millisecond

// A relay writes an answer and adds nothing that the cluster did not send.
type relay struct {
	http.ResponseWriter
	guard    *recovery.Guard
	followed *report.Exchange
	// search says that the request is a search. status is the answer's, 0 before
	// it begins; bytes is the length of its body so far.
	search bool
	status int
	bytes  int64

	mu      sync.Mutex  // held to write and to flush
	timer   *time.Timer // flushes; nil before its first use
	pending bool        // the timer is running
	ended   bool        // the rest is sent with the end of the answer
}

// relayed returns h behind a relay, and counts answers. It follows requests if
// they are traced or if access is not nil, which gets a record of each. guard
// recovers panics of the relay's timer.
func relayed(h func(w *relay, r *http.Request), guard *recovery.Guard, count *report.Metrics, traced bool, access *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w2 := &relay{ResponseWriter: w, guard: guard, followed: report.Follow(r, traced, access)}
		began, complete := count.Begin(), false
		defer func() {
			w2.end(complete)
			counted := 0 // for an answer that broke off
			if complete {
				w2.status = cmp.Or(w2.status, http.StatusSwitchingProtocols) // unset if the connection was hijacked
				counted = w2.status
			}
			count.End(began, w2.search, counted)
			w2.followed.End(r, w2.status, w2.bytes, complete)
		}()
		h(w2, r)
		complete = true
	})
}

// Unwrap lets [http.ResponseController] hijack the connection.
func (w *relay) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader writes the status line. Elasticsearch sends no Date, and no
// Content-Type without a body; a nil entry keeps net/http from adding one.
func (w *relay) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(status)
	if w.status != 0 { // send it even without a body and while the client still sends its own
		w.flushSoon()
	}
}

func (w *relay) writeHeader(status int) {
	if w.status != 0 {
		return
	}
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.status = status
		h := w.Header()
		for _, name := range []string{"Date", "Content-Type"} {
			if _, ok := h[name]; !ok {
				h[name] = nil
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a piece of the body.
func (w *relay) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// writeWhole writes a complete answer. It does not flush, so that net/http
// sends a length and no chunks.
func (w *relay) writeWhole(status int, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(status)
	n, _ := w.ResponseWriter.Write(body) // on error the client is gone
	w.bytes += int64(n)
}

// FlushError flushes after flushDelay.
func (w *relay) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushSoon()
	return nil
}

// flushSoon starts the timer. The caller holds the lock.
func (w *relay) flushSoon() {
	switch {
	case w.pending || w.ended:
	case w.timer == nil:
		w.timer = time.AfterFunc(flushDelay, func() {
			_ = w.guard.Do("sending an answer", func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.pending = false
				if w.ended {
					return nil
				}
				return http.NewResponseController(w.ResponseWriter).Flush() // if it fails, so does the next write
			})
		})
	default:
		w.timer.Reset(flushDelay)
	}
	w.pending = true
}

// end stops writing. The server sends the rest of a complete answer itself.
func (w *relay) end(complete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	w.timer.Stop()
	if !complete {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the client may be gone
	}
	w.ended = true
}
