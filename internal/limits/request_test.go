package limits

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// A node may answer early; then the transport reads the body on while the
// handler returns.
func TestABodyIsReadOnAfterItsHandlerHasEnded(t *testing.T) {
	out, in := io.Pipe()
	hold := New(1<<20).Hold(SearchBody, "a")
	r := httptest.NewRequest(http.MethodPost, "/", out)
	a := NewArriving(httptest.NewRecorder(), r, time.Millisecond, time.Minute, nil, hold)
	_, err := a.Take(r, hold, 1<<10)
	check.Must(t, errors.Is(err, ErrSlow), "%v", err)
	a.Free()
	go func() { _, _ = in.Write([]byte("late")) }()
	p := make([]byte, 8)
	n, err := r.Body.Read(p)
	check.That(t, string(p[:n]) == "late" && err == nil, "%q, %v", p[:n], err)
}

// Who keeps to the pace may go on for ever; what came early does not count
// later.
func TestPace(t *testing.T) {
	began := time.Now()
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	p := pace{stretch: 2 * time.Second, rate: 100, since: began}
	for _, step := range []struct {
		at    float64
		bytes int
		until float64
	}{{0.5, 199, 2}, {1, 1, 3}, {2.5, 100_000, 4.5}, {4, 150, 4.5}, {4.5, 50, 6.5}} {
		p.note(step.bytes, at(step.at))
		got := p.until()
		check.That(t, got.Equal(at(step.until)), "%d bytes at %v s: the stretch ends after %v", step.bytes, step.at, got.Sub(began))
	}
}
