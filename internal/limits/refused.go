package limits

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// plainText is in what net/http answers, before there is a request, to a head
// that it does not take. It has no hook for that, but writes each such answer
// in one piece.
const plainText = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// answered returns p, or the refusal that the client gets in place of
// net/http's.
func (c *connection) answered(p []byte) []byte {
	if c.handling.Load() {
		return p
	}
	line, reason, refused := strings.Cut(string(p), plainText)
	if !refused {
		return p
	}
	_, line, _ = strings.Cut(line, " ")
	status, err := strconv.Atoi(line[:min(len(line), len("400"))])
	if err != nil {
		return p
	}
	return c.refusal(status, reason)
}

// refusal returns the answer to a head that is refused.
func (c *connection) refusal(status int, reason string) []byte {
	body := c.of.refuse(status, reason)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
}

// TLS returns l with clients that have to speak TLS.
func TLS(l *Listener, c *tls.Config) net.Listener { return &tlsListener{l, c} }

type tlsListener struct {
	*Listener

	config *tls.Config
}

// Accept returns the next connection. Its handshake comes with the first read.
func (l *tlsListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &encrypted{tls.Server(conn, l.config), conn.(*connection)}, nil
}

// An encrypted connection is one with TLS, as net/http reads and writes it.
type encrypted struct {
	*tls.Conn

	below *connection
}

// Read is that of the connection.
func (c *encrypted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if no, ok := errors.AsType[tls.RecordHeaderError](err); ok && no.Conn != nil {
		_, _ = c.below.Write(c.below.refusal(http.StatusBadRequest, "the client does not speak TLS")) // it may speak no HTTP either
	}
	return n, err
}

// Write is that of the connection.
func (c *encrypted) Write(p []byte) (int, error) {
	if _, err := c.Conn.Write(c.below.answered(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
