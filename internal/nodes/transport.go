package nodes

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"
)

// Limits of the connections to the nodes. A node has as long for its answer
// as the client is willing to wait: the client's disconnect ends the
// request.
const (
	// dialTimeout is enough for one SYN to be lost on the way and sent again,
	// handshakeTimeout for TLS with a node under load.
	dialTimeout      = time.Second
	handshakeTimeout = 2 * time.Second
	// idleConnTimeout is below the keep-alive time of the usual load balancers,
	// 60 s, so that akin is the side that closes.
	idleConnTimeout = 50 * time.Second
	// idleConnsPerNode keeps as many connections as there are clients at once;
	// net/http's default of 2 makes new ones all the time.
	idleConnsPerNode = 512
)

// Heads of requests in bytes. To one that is too large for it Elasticsearch
// answers 400 and then ignores the connection, though it keeps it open;
// another request on it would hang (seen with OpenSearch 2 and Elasticsearch
// 8). By default the first line may have 4 KiB in both, the headers 8 KiB in
// OpenSearch and 16 KiB in Elasticsearch.
const (
	// maxLine and maxHeaders are half of these limits: requests with more get a
	// connection of which they are the last.
	maxLine    = 2 << 10
	maxHeaders = 4 << 10
	// smallHead is below any limit that somebody might set. With a larger head the
	// connection is closed after a 400 or a 431.
	smallHead = 1 << 10
)

// A dialError says that no connection came about, so that nothing was sent.
type dialError struct {
	kind string
	err  error
}

// Error implements error.
func (e *dialError) Error() string { return e.err.Error() }

// Unwrap returns what happened.
func (e *dialError) Unwrap() error { return e.err }

// kindOf returns the kind of a failure to get an answer.
func kindOf(err error) string {
	if unsent, ok := errors.AsType[*dialError](err); ok {
		return unsent.kind
	}
	return kindBroken
}

// newTransport returns what sends requests to nodes with these settings of
// TLS.
func newTransport(config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, &dialError{kindConnect, err}
		}
		return &nodeConn{Conn: conn}, nil
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Transport{
		// No Proxy: the environment's proxy is for the world outside.
		DialContext: dial,
		// Not TLSClientConfig: of an error after the connect one could not tell
		// whether the request had been sent.
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return handshake(ctx, conn, addr, config)
		},
		MaxIdleConnsPerHost:   idleConnsPerNode,
		IdleConnTimeout:       idleConnTimeout,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // else it asks for gzip and decodes it
	}
}

// handshake returns a TLS connection to addr over conn.
func handshake(ctx context.Context, conn net.Conn, addr string, config *tls.Config) (net.Conn, error) {
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr) // net/http puts it together
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake failed, which is told
		return nil, &dialError{kindTLS, err}
	}
	return &nodeConn{Conn: secure}, nil
}

// roundTrip sends req, and sees to it that a connection that the node may
// ignore is not used again.
func roundTrip(transport http.RoundTripper, req *http.Request) (*http.Response, error) {
	line, headers := headSize(req)
	if line > maxLine || headers > maxHeaders {
		req.Close = true
	}
	if req.Close || line+headers <= smallHead {
		return transport.RoundTrip(req)
	}
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if c, ok := got.Conn.(*nodeConn); ok {
			c.large.Store(true)
		}
	}}
	return transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
}

// A nodeConn says that a 400 or a 431 to a large head is the last answer on
// the connection, which the node should have said and does not: net/http then
// never keeps it. To close it later would hit the request that got it next.
type nodeConn struct {
	net.Conn

	large atomic.Bool // the request under way has a large head
	rest  []byte      // of the answer to it, read and not yet given out
}

// closing is the header that makes a connection the last one's.
const closing = "Connection: close\r\n"

// Read reads. Of the answer to a large head it holds the status line back until
// it is whole. Whether the head was large is known only when the answer comes:
// net/http reads on connections that are idle, too.
func (c *nodeConn) Read(p []byte) (n int, err error) {
	if len(c.rest) == 0 {
		n, err = c.Conn.Read(p)
		if n == 0 || !c.large.Load() {
			return n, err
		}
		line := append([]byte(nil), p[:n]...)
		for !c.answered(&line) && err == nil {
			n, err = c.Conn.Read(p)
			line = append(line, p[:n]...)
		}
		c.rest = line
	}
	n = copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) > 0 {
		err = nil // the next Read that asks the connection has it
	}
	return n, err
}

// answered reports whether enough of the answer is there to know what it is,
// and adds the header to one that refuses the request.
func (c *nodeConn) answered(answer *[]byte) bool {
	const longest = 128 // bytes of a status line
	end := bytes.Index(*answer, []byte("\r\n"))
	if end < 0 {
		return len(*answer) > longest
	}
	if bytes.HasPrefix(*answer, []byte("HTTP/1.1 1")) { // the answer itself is still to come
		return true
	}
	c.large.Store(false)
	if bytes.HasPrefix(*answer, []byte("HTTP/1.1 400")) || bytes.HasPrefix(*answer, []byte("HTTP/1.1 431")) {
		*answer = slices.Insert(*answer, end+2, []byte(closing)...)
	}
	return true
}

// headSize returns the lengths of the first line of a request and of its
// headers.
func headSize(r *http.Request) (line, headers int) {
	line = len(r.Method) + len(r.URL.RawQuery) + len(r.URL.Opaque) + max(len(r.URL.RawPath), len(r.URL.Path)) + len("  HTTP/1.1")
	if line > maxLine/3 { // escaping makes a path up to three times as long
		line = len(r.Method) + len(r.URL.RequestURI()) + len("  HTTP/1.1")
	}
	headers = len("Host: \r\n") + len(r.URL.Host)
	for name, values := range r.Header {
		for _, value := range values {
			headers += len(name) + len(value) + len(": \r\n")
		}
	}
	return line, headers
}
