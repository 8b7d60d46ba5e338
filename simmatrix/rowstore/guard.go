package rowstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// Bounds on one reply of Redis.
const (
	// maxRowBytes bounds a packed row, and with it the longest string that a
	// push writes and a reader accepts.
	maxRowBytes = 1 << 20
	// maxElements bounds an array; the longest are lists of versions.
	maxElements = 1 << 16
	// maxLine bounds a reply without a length, such as an error.
	maxLine = 64 << 10
	// maxDepth bounds arrays in arrays, which the library reads by recursion;
	// the slots of a cluster take four.
	maxDepth = 8
)

// errReply is wrapped by the error for a reply that Redis would never send.
var errReply = errors.New("not an answer of Redis")

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// boundReplies returns dial with connections that refuse replies longer than
// the bounds above. The client library allocates what a reply's header claims
// before it reads on: 20 bytes from something that is not Redis could end the
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
	c.scan.shape.sent(p)
	return c.Conn.Write(p)
}

type boundedSocket struct {
	*boundedConn
	syscall.Conn
}

// A replyScanner follows a stream of RESP2 or RESP3 replies, in pieces of any
// size, just closely enough to find the lengths.
type replyScanner struct {
	skip int    // bytes of a string, with its CR LF, still to come
	line []byte // the beginning of a line whose end is missing
	open []int  // elements still to come of each array around

	shape shapeGuard
}

// The first bytes of lines with a length: of strings and of arrays. Attributes
// of RESP3 ('|') are never requested.
const (
	stringKinds = "$=!"
	arrayKinds  = "*~>%"
	plainKinds  = "+-:_,#("
)

// check returns an error that wraps errReply where the next bytes p of the
// stream are not replies or claim more than the bounds allow. After an error
// the stream is unusable.
func (s *replyScanner) check(p []byte) error {
	for len(p) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip -= n
			s.shape.text(len(s.open), p[:min(n, max(0, n+s.skip-len("\r\n")))])
			p = p[n:]
			if s.skip == 0 {
				if err := s.end(); err != nil {
					return err
				}
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
		s.line = append(s.line, part...)
		p = rest
		if !ended {
			return nil
		}
		if err := s.take(s.line[0], string(bytes.TrimSuffix(s.line[1:], []byte{'\r'}))); err != nil {
			return err
		}
		s.line = s.line[:0]
	}
	return nil
}

// take reads a line: its first byte and the text after it.
func (s *replyScanner) take(kind byte, text string) error {
	s.shape.begin(len(s.open), kind, text)
	var limit int
	isArray := strings.IndexByte(arrayKinds, kind) >= 0
	switch {
	case isArray:
		limit = maxElements
	case strings.IndexByte(stringKinds, kind) >= 0:
		limit = maxRowBytes
	default:
		return s.end()
	}
	n, err := strconv.Atoi(text) // negative: a null
	if err != nil || n > limit {
		return fmt.Errorf("%w: a reply whose length is no number up to %d", errReply, limit)
	}
	switch {
	case isArray && n > 0 && len(s.open) == maxDepth:
		return fmt.Errorf("%w: more than %d arrays in each other", errReply, maxDepth)
	case isArray && n > 0 && kind == '%': // a map: keys and values
		s.open = append(s.open, 2*n)
		return nil
	case isArray && n > 0:
		s.open = append(s.open, n)
		return nil
	case !isArray && n >= 0:
		s.skip = n + len("\r\n")
		return nil // which ends it
	}
	return s.end()
}

// end records that a value has ended, and with it perhaps arrays around it.
func (s *replyScanner) end() error {
	for last := len(s.open) - 1; last >= 0; last-- {
		if s.open[last]--; s.open[last] > 0 {
			return nil
		}
		s.open = s.open[:last]
	}
	return s.shape.end()
}
