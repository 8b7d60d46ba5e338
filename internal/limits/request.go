package limits

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/internal/recovery"
)

const (
	// bodyRate, in bytes a second, is how fast a body must arrive over each grace.
	bodyRate = 8 << 10
	// BodyGrace is enough for a lost packet to be sent again.
	BodyGrace = time.Second
)

// A pace is what a client must keep up: rate, over each stretch of time.
type pace struct {
	stretch time.Duration
	rate    int64 // bytes a second
	since   time.Time
	bytes   int64
}

func (p *pace) until() time.Time { return p.since.Add(p.stretch) }

// note adds n bytes. It reports whether a new stretch begins.
func (p *pace) note(n int, now time.Time) bool {
	p.bytes += int64(n)
	if p.bytes < int64(p.stretch)*p.rate/int64(time.Second) {
		return false
	}
	p.since, p.bytes = now, 0
	return true
}

// An Arriving is the body of a request while the client sends it. While it is
// awaited, a read fails with [ErrSlow] if the body comes at less than bodyRate;
// the next read continues there. Each read has its own goroutine, because
// net/http would take a read that fails at a deadline for the end of the
// client. The goroutine ends with the read, the cut-off, or the connection.
type Arriving struct {
	body    io.ReadCloser
	awaited bool
	patient pace // while awaited
	// reading returns the result of the read in progress into buffer; nil for
	// none. unread is what the last read has brought, and err its error. The body
	// is collected elsewhere, or the read would keep its memory alive.
	reading chan arrived
	buffer  []byte
	unread  []byte
	err     error
	guard   *recovery.Guard
	hold    *Hold // the memory of the buffer
	conn    *http.ResponseController
	steady  pace         // until it is cut off
	cutAt   atomic.Int64 // when, in Unix nanoseconds; 0 for never
}

// arrived is the result of a read. It has the bytes themselves: the transport
// may still wait for it after the handler has freed the buffer.
type arrived struct {
	read []byte
	err  error
}

// NewArriving returns the body of r, awaited for grace and cut off after cut.
func NewArriving(w http.ResponseWriter, r *http.Request, grace, cut time.Duration, guard *recovery.Guard, hold *Hold) *Arriving {
	now := time.Now()
	a := &Arriving{
		body: r.Body, awaited: true, patient: pace{stretch: grace, rate: bodyRate, since: now}, guard: guard, hold: hold,
		conn: http.NewResponseController(w), steady: pace{stretch: cut, rate: bodyRate, since: now},
	}
	a.setDeadline(a.steady.until())
	return a
}

// setDeadline sets when the client is cut off; the zero time is never.
func (a *Arriving) setDeadline(t time.Time) {
	if a.conn.SetReadDeadline(t) != nil { // not a server's connection
		return
	}
	at := int64(0)
	if !t.IsZero() {
		at = t.UnixNano()
	}
	a.cutAt.Store(at)
}

// IsLate reports whether the client was cut off; false for nil.
func (a *Arriving) IsLate() bool {
	if a == nil {
		return false
	}
	at := a.cutAt.Load()
	return at != 0 && time.Now().UnixNano() >= at
}

// Take reads all of the body of r, at most limit bytes, into memory of hold.
// After [ErrNoRoom], [ErrTooLarge] and [ErrSlow] the body of r is still
// complete; after any other error it broke off.
func (a *Arriving) Take(r *http.Request, hold *Hold, limit int64) ([]byte, error) {
	raw, err := Read(a, hold, r.ContentLength, limit)
	switch {
	case err == nil:
		a.Free()
		return raw, nil
	case errors.Is(err, ErrNoRoom), errors.Is(err, ErrTooLarge), errors.Is(err, ErrSlow):
		a.awaited = false
		r.Body = &Prefixed{first: raw, hold: hold, rest: a, Closer: a.body}
	}
	return nil, err
}

// Free releases the buffer after the last read. On nil it does nothing.
func (a *Arriving) Free() {
	if a != nil {
		a.buffer = nil
		a.hold.Release()
	}
}

// Read implements [io.Reader].
func (a *Arriving) Read(p []byte) (int, error) {
	if len(a.unread) == 0 && a.err == nil {
		switch {
		case a.reading == nil && !a.awaited:
			n, err := a.body.Read(p)
			a.note(n, err)
			return n, err
		case a.reading == nil && !a.start(len(p)):
			return 0, ErrNoRoom
		case !a.wait():
			return 0, ErrSlow
		}
	}
	n := copy(p, a.unread)
	if a.unread = a.unread[n:]; len(a.unread) > 0 {
		return n, nil
	}
	return n, a.err
}

// start starts a read of at most n bytes. It returns false without memory.
func (a *Arriving) start(n int) bool {
	if n = min(n, firstRead); cap(a.buffer) < n {
		if !a.hold.Take(int64(n - cap(a.buffer))) {
			return false
		}
		a.buffer = make([]byte, n)
	}
	reading, buffer := make(chan arrived, 1), a.buffer[:n]
	a.reading = reading
	go func() {
		got := arrived{err: recovery.ErrPanic} // if it panics
		_ = a.guard.Do("reading a body", func() error {
			n, err := a.body.Read(buffer)
			got = arrived{buffer[:n], err}
			return nil
		})
		reading <- got
	}()
	return true
}

// wait waits for the read in progress; false means that the body is too slow.
func (a *Arriving) wait() bool {
	var enough <-chan time.Time
	if a.awaited {
		timer := time.NewTimer(time.Until(a.patient.until()))
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case got := <-a.reading:
		a.reading = nil
		a.unread = got.read
		a.err = got.err
		a.note(len(got.read), got.err)
		return true
	case <-enough:
		return false
	}
}

// note moves the deadlines after n more bytes.
func (a *Arriving) note(n int, err error) {
	now := time.Now()
	a.patient.note(n, now)
	switch {
	case errors.Is(err, io.EOF):
		a.setDeadline(time.Time{}) // the connection will be reused
	case err == nil && a.steady.note(n, now):
		a.setDeadline(a.steady.until())
	}
}
