package limits

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

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
	return &encrypted{tls.Server(conn, l.config)}, nil
}

// An encrypted connection is one with TLS, as net/http reads and writes it.
type encrypted struct{ *tls.Conn }

// Read is that of the connection.
func (c *encrypted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if no, ok := errors.AsType[tls.RecordHeaderError](err); ok && no.Conn != nil {
		below := of(c)
		_, _ = below.Write(below.of.refuse.answer(http.StatusBadRequest, "the client does not speak TLS")) // it may speak no HTTP either
	}
	return n, err
}

// Write is that of the connection.
func (c *encrypted) Write(p []byte) (int, error) {
	if _, err := c.Conn.Write(of(c).answered(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
