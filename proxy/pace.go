package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/internal/recovery"
)

// Bounds of the time for which a client can have memory held, or a connection.
const (
	// DefaultBodyTimeout is [Options.BodyTimeout] where that is 0.
	DefaultBodyTimeout = 30 * time.Second
	// bodyRate is the least number of bytes a second at which a body has to come,
	// over each bodyGrace. Searches have few kilobytes and come whole; a modem of
	// 1998 has 7 KiB/s.
	bodyRate = 8 << 10
	// bodyGrace is how long any body is waited for: 20 times the default of
	// [Options.Budget], and what a lost packet takes to be sent again.
	bodyGrace = time.Second
	// answerRate and answerGrace are the same for clients that take an answer that
	// is held for them. The buffers of the two machines have megabytes of it.
	answerRate  = 64 << 10
	answerGrace = 30 * time.Second
)

// errSlow says that a body comes too slowly to wait for.
var errSlow = errors.New("the body comes slowly")

// A pace is what a client has to keep to: in each stretch of time at least the
// bytes that the rate makes of it. The last ones have one stretch.
type pace struct {
	stretch time.Duration
	rate    int64 // bytes a second
	since   time.Time
	bytes   int64
}

// until returns when the stretch ends.
func (p *pace) until() time.Time { return p.since.Add(p.stretch) }

// note notes n bytes more, at a time. It reports whether a new stretch begins.
func (p *pace) note(n int, now time.Time) bool {
	p.bytes += int64(n)
	if p.bytes < int64(p.stretch)*p.rate/int64(time.Second) {
		return false
	}
	p.since, p.bytes = now, 0
	return true
}

// An arriving is the body of a request while the client sends it. While it is
// awaited a read ends with [errSlow] where the body comes at less than
// bodyRate; the next read goes on where that one left off.
//
// A deadline of the connection cannot do that: net/http takes the first read
// that fails for the end of the client. So each read is in a goroutine, which
// ends with that read, with the deadline that cuts the client off, or with the
// connection.
type arriving struct {
	body    io.ReadCloser
	awaited bool
	patient pace // while it is awaited
	err     error
	// under is the read that is under way, into buffer, nil for none; unread is
	// what it has brought. The buffer is apart from the memory that the body is
	// gathered in, which the read would keep alive.
	under  chan arrived
	buffer []byte
	unread []byte
	guard  *recovery.Guard
	held   *budget.Hold // the memory of the buffer

	conn *http.ResponseController
	// lasting is the pace of the connection, of no stretch for none, and deadline
	// its end, in Unix nanoseconds, 0 for never.
	lasting  pace
	deadline atomic.Int64
}

// arrived is what a read returned.
type arrived struct {
	n   int
	err error
}

// newArriving returns the body of r, which is cut off after cut, unless that is
// 0. Its buffer takes memory of held until that is released.
func (s *Server) newArriving(w http.ResponseWriter, r *http.Request, cut time.Duration, held *budget.Hold) *arriving {
	now := time.Now()
	a := &arriving{
		body: r.Body, awaited: true, patient: pace{stretch: s.bodyGrace, rate: bodyRate, since: now}, guard: s.guard, held: held,
		conn: http.NewResponseController(w), lasting: pace{stretch: cut, rate: bodyRate, since: now},
	}
	if cut > 0 {
		a.cutAt(a.lasting.until())
	}
	return a
}

// cutAt sets the deadline, the zero time for none.
func (a *arriving) cutAt(t time.Time) {
	if a.conn.SetReadDeadline(t) != nil { // no server's connection
		return
	}
	at := int64(0)
	if !t.IsZero() {
		at = t.UnixNano()
	}
	a.deadline.Store(at)
}

// late reports whether the client was cut off. Of nil it is false.
func (a *arriving) late() bool {
	if a == nil {
		return false
	}
	at := a.deadline.Load()
	return at != 0 && time.Now().UnixNano() >= at
}

// Read implements [io.Reader].
func (a *arriving) Read(p []byte) (int, error) {
	if len(a.unread) > 0 {
		return a.takeUnread(p), nil
	}
	if a.err != nil {
		return 0, a.err
	}
	if !a.awaited && a.under == nil {
		n, err := a.body.Read(p)
		a.note(n, err)
		return n, err
	}
	if a.under == nil && !a.start(len(p)) {
		return 0, errNoRoom
	}
	if !a.wait() {
		return 0, errSlow
	}
	n := a.takeUnread(p)
	if len(a.unread) > 0 {
		return n, nil
	}
	return n, a.err
}

// start starts a read of at most n bytes. It reports false where there is no
// memory for them.
func (a *arriving) start(n int) bool {
	if n = min(n, firstRead); cap(a.buffer) < n {
		if !a.held.Take(int64(n-cap(a.buffer))) {
			return false
		}
		a.buffer = make([]byte, n)
	}
	under, buffer := make(chan arrived, 1), a.buffer[:n]
	a.under = under
	go func() {
		var got arrived
		if err := a.guard.Do("reading a body", func() error {
			got.n, got.err = a.body.Read(buffer)
			return nil
		}); err != nil {
			got = arrived{0, err}
		}
		under <- got
	}()
	return true
}

// wait waits for the read that is under way. It reports false where that takes
// too long for a body that is awaited.
func (a *arriving) wait() bool {
	var enough <-chan time.Time
	if a.awaited {
		timer := time.NewTimer(time.Until(a.patient.until()))
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case got := <-a.under:
		a.under, a.unread, a.err = nil, a.buffer[:got.n], got.err
		a.note(got.n, got.err)
		return true
	case <-enough:
		return false
	}
}

// free lets go of the buffer once all of the body is there, or nobody wants it.
func (a *arriving) free() {
	if a != nil {
		a.buffer = nil
		a.held.Release()
	}
}

func (a *arriving) takeUnread(p []byte) int {
	n := copy(p, a.unread)
	a.unread = a.unread[n:]
	return n
}

// note moves the deadlines after n bytes more.
func (a *arriving) note(n int, err error) {
	now := time.Now()
	a.patient.note(n, now)
	switch {
	case a.lasting.stretch == 0:
	case errors.Is(err, io.EOF):
		a.cutAt(time.Time{}) // the connection is used on
	case err == nil && a.lasting.note(n, now):
		a.cutAt(a.lasting.until())
	}
}

// A leaving is an answer that is held while its client takes it: one that takes
// it at less than answerRate is cut off. Without a connection it does nothing.
type leaving struct {
	conn *http.ResponseController
	pace pace
	sent int // the last piece
}

// next is called before each piece of n bytes is written.
func (l *leaving) next(n int) {
	if l.conn == nil {
		return
	}
	now := time.Now()
	first := l.pace.since.IsZero()
	if first {
		l.pace.since = now
	}
	if l.pace.note(l.sent, now) || first {
		_ = l.conn.SetWriteDeadline(l.pace.until()) // servers' connections have it
	}
	l.sent = n
}

// end ends the deadline once nothing is held any more. It reports whether it
// has passed.
func (l *leaving) end() (late bool) {
	if l.conn == nil || l.pace.since.IsZero() {
		return false
	}
	late = !time.Now().Before(l.pace.until())
	_ = l.conn.SetWriteDeadline(time.Time{})
	l.conn = nil
	return late
}

// clientOf returns what stands for the client at an address, host and port: the
// host, of IPv6 the network of 64 bits that one customer has.
func clientOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is4() {
		return host.String()
	}
	network, _ := host.Prefix(64) // a length that every address has
	return network.String()
}

// ClientOf returns the client of the search in whose context the expander or
// the reranker was called, "" for none.
func ClientOf(ctx context.Context) string {
	if ex := exchangeOf(ctx); ex != nil {
		return ex.client
	}
	return ""
}
