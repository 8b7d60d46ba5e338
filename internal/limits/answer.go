package limits

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// answerRate, in bytes a second, is how fast a client must read over grace.
	answerRate = 64 << 10
	// AnswerGrace is how long a client may read nothing.
	AnswerGrace = 30 * time.Second
	// MaxAnswer is the largest answer that is buffered: hundreds of searches.
	MaxAnswer = 8 << 20
)

// A Recipient is the client that an answer is buffered for. Name is its name in
// the budget. Conn is its connection, or nil; it is cut off if the client reads
// less than answerRate over Grace, and CutOff counts that.
type Recipient struct {
	Name   string
	Conn   *http.ResponseController
	Grace  time.Duration
	CutOff prometheus.Counter
}

// A heldAnswer is an answer of which the first bytes are in memory.
type heldAnswer struct {
	Prefixed

	client *Recipient
	pace   pace
	sent   int // size of the last piece
	// whole is the complete answer until it is read; failure is why it is nil.
	whole   []byte
	failure error
}

// Whole reads an answer and puts it back; its memory is released when the
// client has it. It returns [ErrTooLarge] above [MaxAnswer], [ErrNoRoom], or
// the error with which the answer broke off; then a reader gets what was read,
// and the rest. A second call reads nothing and returns the same.
func (c *Recipient) Whole(memory *Budget, res *http.Response) ([]byte, error) {
	if a, ok := res.Body.(*heldAnswer); ok {
		return a.whole, a.failure
	}
	if res.ContentLength > MaxAnswer {
		return nil, ErrTooLarge
	}
	a := c.newAnswer(memory, res.Body, res.Body)
	read, err := Read(res.Body, a.hold, res.ContentLength, MaxAnswer)
	a.first, a.failure = read, err
	switch {
	case err == nil:
		a.whole = read
		a.rest = broken{io.EOF}
	case !errors.Is(err, ErrNoRoom) && !errors.Is(err, ErrTooLarge):
		a.rest = broken{err}
	}
	res.Body = a
	return a.whole, err
}

// Replace replaces the body of an answer.
func (c *Recipient) Replace(memory *Budget, res *http.Response, body []byte) {
	closer := io.Closer(res.Body)
	if old, ok := closer.(*heldAnswer); ok {
		closer = old.Closer
		old.hold.Release()
	}
	a := c.newAnswer(memory, closer, broken{io.EOF})
	a.hold.Add(int64(cap(body)))
	a.first, a.whole = body, body
	res.Body = a
}

func (c *Recipient) newAnswer(memory *Budget, closer io.Closer, rest io.Reader) *heldAnswer {
	return &heldAnswer{
		Prefixed: Prefixed{hold: memory.Hold(Answer, c.Name), rest: rest, Closer: closer},
		client:   c, pace: pace{stretch: c.Grace, rate: answerRate},
	}
}

// broken ends an answer, with [io.EOF] or the error with which it broke off.
type broken struct{ err error }

// Read returns the error.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

// Read reads the answer and sets the deadline of its client.
func (a *heldAnswer) Read(p []byte) (int, error) {
	a.whole = nil // only first may keep the text alive
	if len(a.first) == 0 {
		a.endPace()
		return a.rest.Read(p)
	}
	n, err := a.Prefixed.Read(p)
	if a.client.Conn == nil {
		return n, err
	}
	now := time.Now() // before the piece is written to the client
	begins := a.pace.since.IsZero()
	if begins {
		a.pace.since = now
	}
	if a.pace.note(a.sent, now) || begins {
		_ = a.client.Conn.SetWriteDeadline(a.pace.until()) // connections of servers have deadlines
	}
	a.sent = n
	return n, err
}

// Close closes the answer and releases its memory.
func (a *heldAnswer) Close() error {
	if a.endPace() {
		a.client.CutOff.Inc()
	}
	return a.Prefixed.Close()
}

// endPace removes the deadline, and reports whether it has passed.
func (a *heldAnswer) endPace() (late bool) {
	if a.client.Conn == nil || a.pace.since.IsZero() {
		return false
	}
	late = !time.Now().Before(a.pace.until())
	_ = a.client.Conn.SetWriteDeadline(time.Time{})
	a.pace.since = time.Time{}
	a.sent = 0
	return late
}

// Peek calls read with the beginning of an answer, at most limit bytes, and
// puts it back. The memory is released when the client has it.
func (c *Recipient) Peek(memory *Budget, res *http.Response, limit int64, read func(io.Reader) error) error {
	b := &beginning{Prefixed{hold: memory.Hold(Answer, c.Name), rest: res.Body, Closer: res.Body}}
	err := read(io.LimitReader(b, limit))
	res.Body = &b.Prefixed
	return err
}

// A beginning keeps what is read of an answer, or returns [ErrNoRoom].
type beginning struct{ Prefixed }

// Read reads and keeps bytes.
func (b *beginning) Read(p []byte) (int, error) {
	if !b.hold.Take(int64(len(p))) {
		return 0, ErrNoRoom
	}
	n, err := b.rest.Read(p)
	b.hold.Give(int64(len(p) - n))
	b.first = append(b.first, p[:n]...)
	return n, err
}
