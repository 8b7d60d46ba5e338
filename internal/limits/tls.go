package limits

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// TLS returns a listener on l whose clients must use TLS.
func TLS(l *Listener, c *tls.Config) net.Listener { return &tlsListener{l, c} }

type tlsListener struct {
	*Listener

	config *tls.Config
}

// Accept returns the next connection. The first read does the handshake.
func (l *tlsListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	of(conn).isTLS = true
	return &encrypted{tls.Server(conn, l.config)}, nil
}

// An encrypted connection is a TLS connection for net/http.
type encrypted struct{ *tls.Conn }

// Read keeps heads of requests, and tells a client that does not speak TLS so.
func (c *encrypted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	of(c).heads.add(p[:n])
	if no, ok := errors.AsType[tls.RecordHeaderError](err); ok && no.Conn != nil {
		below := of(c)
		_, _ = below.Write(below.of.refuse.answer(http.StatusBadRequest, "the client does not speak TLS")) // the client may not speak HTTP either
	}
	return n, err
}

// Write writes p, or a refusal in place of net/http's.
func (c *encrypted) Write(p []byte) (int, error) {
	if _, err := c.Conn.Write(of(c).answered(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
