package store

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
)

// errReply is wrapped by errors for replies that Redis would never send.
var errReply = errors.New("not an answer of Redis")

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// boundReplies returns dial with connections that refuse replies beyond the
// limits above. The client library (go-redis v9.23) allocates what a reply's
// length claims before it reads on: "*9999999999" from something other than
// Redis ends the process, for lack of memory.
func boundReplies(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		bounded := &boundedConn{Conn: conn}
		if raw, ok := conn.(syscall.Conn); ok {
			// The library asks the socket whether the server has closed it.
			return &boundedSocket{bounded, raw}, nil
		}
		return bounded, nil
	}
}

type boundedSocket struct {
	*boundedConn
	syscall.Conn
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

// A replyScanner follows a stream of RESP2 or RESP3 replies, in pieces of any
// size, to check lengths. The library speaks RESP3 with Sentinels.
type replyScanner struct {
	skip int    // remaining bytes of a string, including CR LF
	line []byte // beginning of a line whose end is missing
	open []int  // remaining elements of each enclosing array
}

// First bytes of lines: those with the length of a string or an array, and
// others. Attributes of RESP3 ('|') are never requested.
const (
	stringKinds = "$=!"
	arrayKinds  = "*~>%"
	plainKinds  = "+-:_,#("
)

// check returns an error that wraps errReply if the next bytes p of the stream
// are not replies or exceed the limits. After an error the stream is unusable.
func (s *replyScanner) check(p []byte) error {
	for len(p) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip -= n
			p = p[n:]
			continue
		}
		if len(s.line) == 0 && strings.IndexByte(stringKinds+arrayKinds+plainKinds, p[0]) < 0 {
			return fmt.Errorf("%w: a reply that begins with the byte %#x", errReply, p[0])
		}
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		s.line = append(s.line, part...)
		p = rest
		if len(s.line) > maxLine {
			return fmt.Errorf("%w: a line of more than %d bytes", errReply, maxLine)
		}
		if ended {
			if err := s.take(s.line[0], strings.TrimSuffix(string(s.line[1:]), "\r")); err != nil {
				return err
			}
			s.line = s.line[:0]
		}
	}
	return nil
}

// take processes the line that begins a value.
func (s *replyScanner) take(kind byte, length string) error {
	for len(s.open) > 0 && s.open[len(s.open)-1] == 0 {
		s.open = s.open[:len(s.open)-1]
	}
	if len(s.open) > 0 {
		s.open[len(s.open)-1]--
	}
	if strings.IndexByte(plainKinds, kind) >= 0 {
		return nil
	}
	isArray, limit := strings.IndexByte(arrayKinds, kind) >= 0, maxRowBytes
	if isArray {
		limit = maxElements
	}
	n, err := strconv.Atoi(length)
	switch {
	case err != nil || n > limit:
		return fmt.Errorf("%w: a reply whose length is no number up to %d", errReply, limit)
	case kind == '%' && n > 0: // a map: keys and values
		s.open = append(s.open, 2*n)
	case isArray && n > 0:
		s.open = append(s.open, n)
	case !isArray && n >= 0: // n < 0 is a null
		s.skip = n + len("\r\n")
	}
	if len(s.open) > maxDepth {
		return fmt.Errorf("%w: more than %d arrays in each other", errReply, maxDepth)
	}
	return nil
}
