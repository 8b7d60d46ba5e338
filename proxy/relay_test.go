package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/proxy/report"
)

// flushCounter counts the flushes that reach the server's writer.
type flushCounter struct {
	*httptest.ResponseRecorder
	flushes int
}

// FlushError counts.
func (f *flushCounter) FlushError() error {
	f.flushes++
	return nil
}

// relayTo serves one request by h behind a relay and returns the flushes that
// were made.
func relayTo(t *testing.T, h http.HandlerFunc) (flushes int) {
	t.Helper()
	w := &flushCounter{ResponseRecorder: httptest.NewRecorder()}
	defer func() { _, flushes = recover(), w.flushes }()
	relayed(func(w *relay, r *http.Request) { h(w, r) }, nil, noTraffic(), false, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.flushes
}

// noTraffic counts what nobody looks at.
func noTraffic() *report.Metrics {
	return report.NewMetrics(prometheus.NewRegistry(), report.Values{})
}

// writePieces writes and flushes n pieces with a pause between them.
func writePieces(w http.ResponseWriter, n int, pause time.Duration) {
	for i := range n {
		if i > 0 {
			time.Sleep(pause) // The server is slow.
		}
		_, _ = w.Write([]byte("piece"))
		_ = http.NewResponseController(w).Flush()
	}
}

func TestPiecesOfAnAnswerAreSentWithItsEndWhereThatIsNear(t *testing.T) {
	for name, tt := range map[string]struct {
		pieces int
		pause  time.Duration
		want   int
	}{
		"one piece":                     {1, 0, 0},
		"pieces one after the other":    {5, flushDelay / 10, 0},
		"pieces with pauses":            {3, 10 * flushDelay, 2},
		"more than a moment altogether": {25, flushDelay / 10, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := relayTo(t, func(w http.ResponseWriter, _ *http.Request) { writePieces(w, tt.pieces, tt.pause) })
				check.Elapse(10 * flushDelay) // nothing may come behind the end
				check.Equal(t, tt.want, got, "flushes before the end")
			})
		})
	}
}

func TestWhatCameOfAnAnswerThatBreaksOffIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := relayTo(t, func(w http.ResponseWriter, _ *http.Request) {
			writePieces(w, 1, 0)
			panic(http.ErrAbortHandler)
		})
		check.Equal(t, 1, got, "flushes")
	})
}

// A node that takes no more of a body answers before its end, perhaps without a
// body of its own, and the handler waits for the rest of the client's.
func TestAnAnswerWithoutABodyDoesNotWaitForTheEndOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if flushes := relayTo(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			time.Sleep(time.Second) // The handler goes on after its answer.
		}); flushes != 1 {
			t.Errorf("it was sent %d times", flushes)
		}
	})
}

// On a busy machine akin's own errors were sent in chunks now and then.
func TestErrorsOfAkinAreSentWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flushes := relayTo(t, func(w http.ResponseWriter, _ *http.Request) {
			writeError(w, http.StatusBadGateway, "akin_upstream_exception", "no node")
			time.Sleep(10 * flushDelay) // The handler goes on after its answer.
		})
		check.Equal(t, 0, flushes, "flushes before the end")
	})
}
