//go:build unix

package nodes

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxDirectBody is the largest request body that is sent before the answer is
// read: every system takes that much from a writer before anybody reads it.
const maxDirectBody = 16 << 10

var (
	errAnswerHead = fmt.Errorf("the head of the answer is larger than %d bytes", maxAnswerHead)
	errSwitch     = errors.New("the node switches protocols, which nobody asked for")
	errClosed     = errors.New("the answer was closed before its end")
	errReadTwice  = errors.New("the answer is being read by another goroutine")
)

// A direct transport sends requests over HTTP/1.1 in the goroutine of the one
// who asks. net/http's has two more for each connection, and wakes both for
// each request: a third of what a request that passes through costs. What needs
// them goes there: bodies that stream, and a switch of protocols.
type direct struct {
	*http.Transport

	mu    sync.Mutex
	idle  map[origin][]*directConn // the one used last at the end
	count int                      // of idle connections
	sweep *time.Timer              // closes old ones; nil while there are none
}

// An origin is a node as connections reach it.
type origin struct{ scheme, host string }

// A directConn is a connection. While it is idle it has no buffers.
type directConn struct {
	net.Conn
	*buffers

	socket syscall.Conn // below TLS
	of     origin
	since  time.Time // of being idle
	left   int64     // bytes that the head of an answer may still have
}

// buffers are what a connection reads and writes through.
type buffers struct {
	r *bufio.Reader
	w *bufio.Writer
}

var bufferPool = sync.Pool{New: func() any {
	return &buffers{r: bufio.NewReaderSize(nil, 16<<10), w: bufio.NewWriterSize(nil, 4<<10)}
}}

func newDirect(t *http.Transport) http.RoundTripper {
	return &direct{Transport: t, idle: map[origin][]*directConn{}}
}

// RoundTrip sends req.
func (t *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if !isDirect(req) {
		return roundTrip(t.Transport, req)
	}
	if err := context.Cause(req.Context()); err != nil { // else some of it might be sent
		closeBody(req)
		return nil, err
	}
	line, headers := headSize(req)
	if line > maxLine || headers > maxHeaders {
		req.Close = true
	}
	of := origin{req.URL.Scheme, req.URL.Host}
	if c := t.take(of); c != nil {
		res, err := c.roundTrip(t, req, line+headers)
		if err == nil { // then c may be in use again
			return res, nil
		}
		silent := c.left == maxAnswerHead && req.Context().Err() == nil
		if !silent || req.Method != http.MethodGet && req.Method != http.MethodHead {
			return nil, err
		}
		if req.GetBody != nil { // the node closed the connection before it saw the request
			req = req.WithContext(req.Context())
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
	c, err := t.dial(req, of)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	return c.roundTrip(t, req, line+headers)
}

// closeBody closes the body of a request that is not sent.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // it is in memory
	}
}

// dial opens a connection.
func (t *direct) dial(req *http.Request, of origin) (*directConn, error) {
	dial, port := t.DialContext, "80"
	if of.scheme == "https" {
		dial, port = t.DialTLSContext, "443"
	}
	address := of.host
	if req.URL.Port() == "" {
		address = net.JoinHostPort(req.URL.Hostname(), port)
	}
	conn, err := dial(req.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &directConn{Conn: conn.(*nodeConn).Conn, of: of}
	socket := c.Conn
	if secure, ok := socket.(*tls.Conn); ok {
		socket = secure.NetConn().(*nodeConn).Conn
	}
	c.socket = socket.(syscall.Conn) // a TCP connection is one
	return c, nil
}

// isDirect reports whether req, and the answer, need nobody who reads while
// another writes.
func isDirect(req *http.Request) bool {
	if req.Method == http.MethodConnect || req.Header["Upgrade"] != nil || req.Header["Expect"] != nil {
		return false
	}
	return req.Body == nil || req.Body == http.NoBody ||
		req.GetBody != nil && 0 < req.ContentLength && req.ContentLength <= maxDirectBody
}

// roundTrip sends req, whose head has size bytes, and closes the connection
// unless it can be used again.
func (c *directConn) roundTrip(t *direct, req *http.Request, size int) (*http.Response, error) {
	ctx := req.Context()
	c.buffers = bufferPool.Get().(*buffers)
	c.r.Reset(c)
	c.w.Reset(c.Conn)
	c.left = maxAnswerHead
	body := &directBody{t: t, c: c, ctx: ctx}
	body.stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // ends reading and writing
	res, err := c.exchange(req)
	if err != nil {
		body.end(false)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	c.left = math.MaxInt64
	refused := res.StatusCode == http.StatusBadRequest || res.StatusCode == http.StatusRequestHeaderFieldsTooLarge
	body.keep = !res.Close && !req.Close && (!refused || size <= smallHead)
	if res.Body == http.NoBody {
		body.end(body.keep)
		return res, nil
	}
	body.ReadCloser, res.Body = res.Body, body
	return res, nil
}

// exchange writes req and reads the head of the answer.
func (c *directConn) exchange(req *http.Request) (*http.Response, error) {
	wrote := req.Write(c.w)
	if wrote == nil {
		wrote = c.w.Flush()
	}
	if wrote != nil && req.Context().Err() == nil { // a node that refuses a request may have answered and closed
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
	}
	for {
		res, err := http.ReadResponse(c.r, req)
		switch {
		case err != nil && wrote != nil:
			return nil, wrote
		case err != nil:
			return nil, err
		case res.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitch
		case res.StatusCode >= http.StatusOK || res.StatusCode < http.StatusContinue:
			res.Close = res.Close || wrote != nil
			return res, nil
		}
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(res.StatusCode, map[string][]string(res.Header)); err != nil {
				return nil, err
			}
		}
	}
}

// Read reads, of the head of an answer no more than it may have.
func (c *directConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errAnswerHead
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	return n, err
}

// A directBody is the body of an answer. At its end, or when it is closed, the
// connection is free. It may be closed while another goroutine reads it.
type directBody struct {
	io.ReadCloser

	t    *direct
	ctx  context.Context //nolint:containedctx // The request's, which ends the reading.
	stop func() bool
	keep bool

	mu      sync.Mutex
	c       *directConn // nil after the end
	err     error       // what readers get then
	reading bool
}

// IsHere reports whether all of an answer has come, so that reading it does not
// wait. Unsure, it reports false.
func IsHere(res *http.Response) bool {
	b, ok := res.Body.(*directBody)
	if !ok {
		return res.Body == http.NoBody
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.c != nil && !b.reading && res.ContentLength >= 0 && int64(b.c.r.Buffered()) >= res.ContentLength
}

// Read reads from the body. After an error it returns that again: who read a
// part of a broken answer must not take the rest for its end.
func (b *directBody) Read(p []byte) (int, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	return n, b.read(err)
}

// begin begins to read, unless the body has ended.
func (b *directBody) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
		return b.err
	case b.reading:
		return errReadTwice
	}
	b.reading = true
	return nil
}

// read ends the reading with an error, nil for none, and returns which one the
// reader gets.
func (b *directBody) read(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	switch {
	case b.err != nil: // it was closed meanwhile
		err = b.err
	case err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil:
		err = b.ctx.Err()
	}
	if b.err = err; err != nil {
		b.end(b.keep && errors.Is(err, io.EOF))
	}
	return err
}

// Close closes the body. What is left of it is not read.
func (b *directBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
	case b.reading: // who reads needs the buffers
		b.err = errClosed
		_ = b.c.SetDeadline(time.Unix(1, 0))
	default:
		b.err = errClosed
		b.end(false)
	}
	return nil
}

// end gives the connection back, to be kept or not.
func (b *directBody) end(keep bool) {
	c := b.c
	b.c = nil
	untouched := b.stop() // else the deadline is, or will be, in the past
	keep = keep && untouched && c.r.Buffered() == 0
	c.r.Reset(nil)
	c.w.Reset(nil)
	bufferPool.Put(c.buffers)
	c.buffers = nil
	if !keep || !b.t.put(c) {
		_ = c.Close() // nothing more is expected of it
	}
}

// take returns the idle connection that was used last and still lives, nil for
// none.
func (t *direct) take(of origin) *directConn {
	for {
		t.mu.Lock()
		idle := t.idle[of]
		if len(idle) == 0 {
			t.mu.Unlock()
			return nil
		}
		c := idle[len(idle)-1]
		t.idle[of] = idle[:len(idle)-1]
		t.count--
		t.mu.Unlock()
		if c.lives() {
			return c
		}
		_ = c.Close() // the node has closed it
	}
}

// put keeps a connection, if there is room.
func (t *direct) put(c *directConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle[c.of]) >= t.MaxIdleConnsPerHost || t.MaxIdleConns > 0 && t.count >= t.MaxIdleConns {
		return false
	}
	c.since = time.Now()
	t.idle[c.of] = append(t.idle[c.of], c)
	t.count++
	if t.sweep == nil {
		t.sweep = time.AfterFunc(t.IdleConnTimeout, t.closeOld)
	}
	return true
}

// lives reports whether a connection that is idle is open, and says nothing.
func (c *directConn) lives() bool {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return false
	}
	lives := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		lives = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		return true
	})
	if _, encrypted := c.Conn.(*tls.Conn); !encrypted || !lives || err != nil {
		return lives && err == nil
	}
	// TLS may have read what follows an answer, and has it in no other buffer. A
	// deadline that has passed ends a reading that finds none.
	if c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	_, err = c.Conn.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}

// closeOld closes connections that were idle for too long, while there are some
// idle ones.
func (t *direct) closeOld() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeBefore(time.Now().Add(-t.IdleConnTimeout))
	if t.sweep = nil; t.count > 0 {
		t.sweep = time.AfterFunc(t.IdleConnTimeout/2, t.closeOld)
	}
}

// CloseIdleConnections closes all connections that no request uses.
func (t *direct) CloseIdleConnections() {
	t.Transport.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeBefore(time.Now().Add(time.Second))
}

// closeBefore closes what is idle since before a time. The lock is held.
func (t *direct) closeBefore(limit time.Time) {
	for of, idle := range t.idle {
		for len(idle) > 0 && idle[0].since.Before(limit) {
			_ = idle[0].Close() // nothing more is expected of it
			idle, t.count = idle[1:], t.count-1
		}
		t.idle[of] = idle
	}
}
