package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Limits of one reply of Redis.
const (
	// maxRowBytes limits a packed row, and so the longest string that a push
	// writes and a reader accepts.
	maxRowBytes = 1 << 20
	// maxElements limits an array; lists of versions are the longest.
	maxElements = 1 << 16
	// maxLine limits a reply without a length, such as an error.
	maxLine = 64 << 10
	// maxDepth limits nested arrays, which the library reads by recursion; the
	// slots of a cluster take four levels.
	maxDepth = 8
	// maxElementText limits what is read of an element in a Sentinel's answer; the
	// longest is an announcement of two addresses.
	maxElementText = 2 << 10
)

// errReply is wrapped by errors for replies that Redis would never send.
var errReply = errors.New("not an answer of Redis")

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// boundReplies returns dial with connections that refuse replies beyond the
// limits above. The client library allocates what a reply's header claims
// before it reads on: 20 bytes from something other than Redis could end the
// process.
func boundReplies(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		bounded := &boundedConn{Conn: conn}
		if raw, ok := conn.(syscall.Conn); ok {
			// The library asks the socket whether the server has closed it.
			return &boundedSocket{boundedConn: bounded, Conn: raw}, nil
		}
		return bounded, nil
	}
}

type boundedConn struct {
	net.Conn
	scan replyScanner
}

func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bad := c.scan.check(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

func (c *boundedConn) Write(p []byte) (int, error) {
	c.scan.sent(p)
	return c.Conn.Write(p)
}

type boundedSocket struct {
	*boundedConn
	syscall.Conn
}

// A replyScanner follows a stream of RESP2 or RESP3 replies, in pieces of any
// size, to check lengths, and the shape of replies that must have one.
type replyScanner struct {
	skip int    // remaining bytes of a string, including CR LF
	line []byte // beginning of a line whose end is missing
	open []int  // remaining elements of each enclosing array

	wants    atomic.Int32 // the shape that is due, set by the writer
	array    bool         // the reply is an array with these elements
	elements []string     // kind of each and, of strings, the text
}

// Shapes of replies. A subscribed connection gets messages.
const (
	anyShape int32 = iota
	addressShape
	messageShape
)

// Requests to a Sentinel whose answers go-redis v9.23 reads without checking
// their shape, in its own goroutines, where a panic ends the process.
var (
	asksMaster = []byte("*3\r\n$8\r\nsentinel\r\n$23\r\nget-master-addr-by-name\r\n")
	subscribes = []byte("*3\r\n$9\r\nsubscribe\r\n")
)

// sent records what is asked.
func (s *replyScanner) sent(p []byte) {
	switch {
	case bytes.HasPrefix(p, asksMaster):
		s.wants.Store(addressShape)
	case bytes.HasPrefix(p, subscribes):
		s.wants.Store(messageShape)
	}
}

// First bytes of lines with a length: of strings and of arrays. Attributes of
// RESP3 ('|') are never requested.
const (
	stringKinds = "$=!"
	arrayKinds  = "*~>%"
	plainKinds  = "+-:_,#("
)

// check returns an error that wraps errReply if the next bytes p of the stream
// are not replies or exceed the limits. After an error the stream is unusable.
func (s *replyScanner) check(p []byte) (err error) {
	for len(p) > 0 && err == nil {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip -= n
			if last := len(s.elements) - 1; s.wants.Load() != anyShape && len(s.open) == 1 && last >= 0 {
				text := p[:min(n, max(0, n+s.skip-len("\r\n")))]
				s.elements[last] += string(text[:min(len(text), max(0, maxElementText-len(s.elements[last])))])
			}
			p = p[n:]
			if s.skip == 0 {
				err = s.end()
			}
			continue
		}
		if len(s.line) == 0 && strings.IndexByte(stringKinds+arrayKinds+plainKinds, p[0]) < 0 {
			return fmt.Errorf("%w: a reply that begins with the byte %#x", errReply, p[0])
		}
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		if len(s.line)+len(part) > maxLine {
			return fmt.Errorf("%w: a line of more than %d bytes", errReply, maxLine)
		}
		s.line, p = append(s.line, part...), rest
		if ended {
			err = s.take(s.line[0], string(bytes.TrimSuffix(s.line[1:], []byte{'\r'})))
			s.line = s.line[:0]
		}
	}
	return err
}

// take processes a line: its first byte and the text after it.
func (s *replyScanner) take(kind byte, text string) error {
	isArray, isString := strings.IndexByte(arrayKinds, kind) >= 0, strings.IndexByte(stringKinds, kind) >= 0
	n, limit := 0, maxRowBytes
	if isArray {
		limit = maxElements
	}
	if isArray || isString { // n < 0 is a null
		var err error
		if n, err = strconv.Atoi(text); err != nil || n > limit {
			return fmt.Errorf("%w: a reply whose length is no number up to %d", errReply, limit)
		}
		text = ""
	}
	switch depth := len(s.open); {
	case s.wants.Load() == anyShape:
	case depth == 0:
		s.array, s.elements = isArray && n >= 0, s.elements[:0]
	case depth == 1 && len(s.elements) < 8:
		element := string(kind) + text
		if isString && n < 0 {
			element = "_"
		}
		s.elements = append(s.elements, element)
	}
	switch {
	case isArray && n > 0 && len(s.open) == maxDepth:
		return fmt.Errorf("%w: more than %d arrays in each other", errReply, maxDepth)
	case isArray && n > 0:
		if kind == '%' { // a map: keys and values
			n *= 2
		}
		s.open = append(s.open, n)
		return nil
	case isString && n >= 0:
		s.skip = n + len("\r\n")
		return nil // its bytes end it
	}
	return s.end()
}

// end records the end of a value, which may end enclosing arrays. It returns an
// error for a complete reply of the wrong shape.
func (s *replyScanner) end() error {
	for last := len(s.open) - 1; last >= 0; last-- {
		if s.open[last]--; s.open[last] > 0 {
			return nil
		}
		s.open = s.open[:last]
	}
	wants := s.wants.Load()
	if wants == addressShape {
		s.wants.CompareAndSwap(wants, anyShape)
	}
	if wants == anyShape || !s.array { // for other kinds the library returns an error
		return nil
	}
	e := s.elements
	ok := false
	switch {
	case len(e) < 2:
	case wants == addressShape, e[0] == "$pong":
		ok = len(e) == 2 && e[0][0] == '$' && e[1][0] == '$'
	case len(e) != 3 || e[1][0] != '$':
	case e[0] == "$subscribe":
		ok = e[2][0] == ':'
	case e[0] == "$message":
		ok = e[2][0] == '$' && (e[1] != "$+switch-master" || strings.Count(e[2], " ") == 4)
	}
	if !ok {
		return fmt.Errorf("%w: an answer of %d values that no Sentinel would give", errReply, len(e))
	}
	return nil
}
