package nodes

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
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
		return conn, nil
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
	return secure, nil
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
	var used net.Conn
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { used = got.Conn }}
	res, err := transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err == nil && used != nil && (res.StatusCode == http.StatusBadRequest || res.StatusCode == http.StatusRequestHeaderFieldsTooLarge) {
		res.Body = &lastBody{res.Body, used}
	}
	return res, err
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

// A lastBody is the body of the last answer on a connection.
type lastBody struct {
	io.ReadCloser

	conn net.Conn
}

// Read reads. A request that gets the connection between the end of the body
// and its close fails, and does not hang.
func (b *lastBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.conn.Close() // nothing more is to come
	}
	return n, err
}

// Close closes the connection, too.
func (b *lastBody) Close() error {
	_ = b.conn.Close() // Read may have done so
	return b.ReadCloser.Close()
}
