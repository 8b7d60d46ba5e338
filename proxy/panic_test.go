package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/proxy/report"
)

func panicOn(error) string { panic("a mistake") }

// panicking panics whatever is asked of it.
type panicking struct {
	http.ResponseWriter
	io.Closer
}

func (panicking) Read([]byte) (int, error) { panic("a mistake") }

func (panicking) FlushError() error { panic("a mistake") }

// A body is read in a goroutine of its own.
func TestPanicWhileABodyIsReadIsAnError(t *testing.T) {
	s := newServer(t, Options{Expander: expander(leaveAlone)})
	r := httptest.NewRequest(http.MethodPost, "/a/_search", panicking{Closer: http.NoBody})
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.proxy.ServeHTTP(w, r)
	n := counter(t, s.opts.Registry, "akin_panics_total", "operation", "reading a body")
	check.That(t, n == 1 && w.Code == http.StatusBadRequest, "%v panics are counted, status %d", n, w.Code)
}

// A timer sends the pieces of an answer.
func TestPanicWhileAPieceIsSentIsCounted(t *testing.T) {
	s := newServer(t, Options{})
	w := httptest.NewRecorder()
	relayed(func(w *relay, _ *http.Request) {
		writePieces(w, 1, 0)
		waitFor(t, "the panic", func() bool {
			return counter(t, s.opts.Registry, "akin_panics_total", "operation", "sending an answer") == 1
		})
		_, _ = io.WriteString(w, " and another")
	}, s.guard, s.metrics, false, nil).ServeHTTP(panicking{ResponseWriter: w}, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	check.Equal(t, "piece and another", w.Body.String(), "the client")
}

func TestPanicWhileTheStateIsWatchedIsCounted(t *testing.T) {
	s := newServer(t, Options{Check: func(context.Context) report.Condition { panic("a mistake") }})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	NewFront(s, nil).watch(ctx)
	check.Equal(t, 1, counter(t, s.opts.Registry, "akin_panics_total", "operation", "watching the state"), "panics are counted")
}
