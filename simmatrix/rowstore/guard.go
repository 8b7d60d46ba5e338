package rowstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Bounds on one reply of Redis.
const (
	// maxRowBytes bounds a packed row, and with it the longest string that a
	// push writes and a reader takes.
	maxRowBytes = 1 << 20
	// maxElements bounds an array; the longest asked for are the versions.
	maxElements = 1 << 16
	// maxLine bounds a reply without a length, such as an error.
	maxLine = 64 << 10
	// maxDepth bounds arrays in arrays, which the library reads by recursion;
	// the slots of a cluster take four.
	maxDepth = 8
)

// errReply is wrapped by the error for a reply that Redis would not send.
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

type boundedSocket struct {
	*boundedConn
	syscall.Conn
}

// A replyScanner follows a stream of RESP2 replies, whatever pieces it comes
// in, just closely enough to know where the lengths stand.
type replyScanner struct {
	skip  int           // bytes of a string, with its CR LF, that are still to come
	size  int           // bytes of the current line so far
	kind  byte          // the line's first byte
	claim int           // the length it claims so far
	minus bool          // the length is negative: a null
	open  [maxDepth]int // elements still to come of each array around
	depth int           // how many of open there are
}

// check returns an error that wraps errReply where the next bytes p of the
// stream are not RESP2 or claim more than the bounds allow. After an error the
// stream is void.
func (s *replyScanner) check(p []byte) error {
	for len(p) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip -= n
			p = p[n:]
			continue
		}
		if s.size > 0 && s.limit() == 0 { // a line without a length: only its end matters
			n := bytes.IndexByte(p, '\n')
			if n < 0 {
				n = len(p)
			}
			if s.size += n; s.size > maxLine {
				return fmt.Errorf("%w: a line of more than %d bytes", errReply, maxLine)
			}
			if p = p[n:]; len(p) == 0 {
				return nil
			}
		}
		if err := s.next(p[0]); err != nil {
			return err
		}
		p = p[1:]
	}
	return nil
}

// limit returns the largest length that a line of this kind may claim, 0 for
// a line that claims none.
func (s *replyScanner) limit() int {
	switch s.kind {
	case '$':
		return maxRowBytes
	case '*':
		return maxElements
	default:
		return 0
	}
}

// next takes one byte of a line.
func (s *replyScanner) next(c byte) error {
	switch {
	case s.size == 0:
		if !bytes.ContainsRune([]byte("+-:$*"), rune(c)) {
			return fmt.Errorf("%w: a reply that begins with the byte %#x", errReply, c)
		}
		s.kind = c
	case c == '\n':
		return s.endLine()
	case s.limit() == 0 || c == '\r':
	case c == '-' && s.size == 1:
		s.minus = true
	case '0' <= c && c <= '9':
		s.claim = 10*s.claim + int(c-'0')
		if s.claim > s.limit() {
			return fmt.Errorf("%w: a reply that claims a length over %d", errReply, s.limit())
		}
	default:
		return fmt.Errorf("%w: a length with the byte %#x", errReply, c)
	}
	s.size++
	return nil
}

// endLine takes the end of a line, which is that of a value but for arrays
// that have elements.
func (s *replyScanner) endLine() error {
	kind, claim, minus := s.kind, s.claim, s.minus
	s.size, s.kind, s.claim, s.minus = 0, 0, 0, false
	if kind == '*' && claim > 0 && !minus {
		if s.depth == maxDepth {
			return fmt.Errorf("%w: more than %d arrays in each other", errReply, maxDepth)
		}
		s.open[s.depth] = claim
		s.depth++
		return nil
	}
	if kind == '$' && !minus {
		s.skip = claim + len("\r\n")
	}
	for s.depth > 0 {
		if s.open[s.depth-1]--; s.open[s.depth-1] > 0 {
			return nil
		}
		s.depth--
	}
	return nil
}
