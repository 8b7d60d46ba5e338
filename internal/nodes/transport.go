package nodes

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Limits of connections. Answers have none: clients decide how long they wait.
const (
	// dialTimeout leaves time to resend a lost SYN.
	dialTimeout      = time.Second
	handshakeTimeout = 2 * time.Second
	// expectTimeout is how long the body of a request with Expect: 100-continue
	// waits for the node, which always answers. A busy node took more than a
	// second to refuse a body, and got it.
	expectTimeout = 5 * time.Second
	// idleConnTimeout is below the 60 s of most load balancers: akin closes first.
	idleConnTimeout = 50 * time.Second
	// idleConnsPerNode is for as many clients; the default, 2, reconnects always.
	idleConnsPerNode = 512
)

// Sizes of request heads in bytes. Elasticsearch answers 400 to one that is too
// large and then ignores the connection but keeps it open: another request on
// it would hang (seen with OpenSearch 2 and Elasticsearch 8). The default
// limits are 4 KiB for the first line and for headers 8 KiB in OpenSearch, 16
// KiB in Elasticsearch.
const (
	// A request above half of these limits is the connection's last.
	maxLine    = 2 << 10
	maxHeaders = 4 << 10
	// smallHead is below any limit: above it, a 400 or 431 closes the connection.
	smallHead = 1 << 10
)

// maxAnswerHead limits the headers of an answer; warnings can take many
// kilobytes. net/http allows 10 MB per connection.
const maxAnswerHead = 1 << 20

// A dialError says that there was no connection, so nothing was sent.
type dialError struct {
	kind string
	error
}

// Unwrap returns the cause.
func (e *dialError) Unwrap() error { return e.error }

func newTransport(config *tls.Config) *http.Transport {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &http.Transport{
		// No Proxy: the environment's proxy is for outside addresses.
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dial(ctx, network, addr, nil)
		},
		// Not TLSClientConfig: its errors do not show whether the request was sent.
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dial(ctx, network, addr, config)
		},
		MaxIdleConnsPerHost:    idleConnsPerNode,
		MaxResponseHeaderBytes: maxAnswerHead,
		IdleConnTimeout:        idleConnTimeout,
		ExpectContinueTimeout:  expectTimeout,
		DisableCompression:     true, // else it asks for gzip and decodes it
	}
}

// dial returns a connection to addr, with TLS unless config is nil.
func dial(ctx context.Context, network, addr string, config *tls.Config) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, &dialError{kindConnect, err}
	}
	if config == nil {
		return newNodeConn(conn), nil
	}
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr) // net/http built addr
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the failed handshake is reported
		return nil, &dialError{kindTLS, err}
	}
	return newNodeConn(secure), nil
}

// A transport does not reuse connections that the node may ignore.
type transport struct{ *http.Transport }

// RoundTrip sends req.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	line, headers := headSize(req)
	// net/http sends a body even after the node has refused it, unless the request
	// is the connection's last.
	if line > maxLine || headers > maxHeaders || len(req.Header["Expect"]) > 0 {
		req.Close = true
	}
	if req.Close || line+headers <= smallHead {
		return t.Transport.RoundTrip(req)
	}
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if c, ok := got.Conn.(*nodeConn); ok {
			c.large.Store(true)
		}
	}}
	return t.Transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
}

// answerTimeout is how long an answer may take that the node began before it
// stopped reading the request.
const answerTimeout = time.Second

// A nodeConn delays a write error until the answer was read: a node may refuse
// a request and close the connection while the body is being sent, and for
// net/http a write error is the end of the connection.
//
// To a 400 or 431 for a large head it adds Connection: close, as the node
// should, so that net/http drops the connection. To close it later would hit
// the next request on it.
type nodeConn struct {
	net.Conn

	large atomic.Bool // the request in flight has a large head
	rest  []byte      // of its answer, read but not yet returned

	end  sync.Once
	over chan struct{} // closed when nothing more can be read
}

func newNodeConn(conn net.Conn) *nodeConn { return &nodeConn{Conn: conn, over: make(chan struct{})} }

// ended records that nothing more can be read.
func (c *nodeConn) ended() { c.end.Do(func() { close(c.over) }) }

// Close closes the connection.
func (c *nodeConn) Close() error {
	c.ended()
	return c.Conn.Close()
}

// Write writes. An error is returned only after the node's answer was read.
func (c *nodeConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		timer := time.NewTimer(answerTimeout)
		defer timer.Stop()
		select {
		case <-c.over:
		case <-timer.C:
		}
	}
	return n, err
}

// Read reads. It holds back the answer to a large head until the status line is
// complete. net/http reads idle connections, too: only then it is known.
func (c *nodeConn) Read(p []byte) (n int, err error) {
	defer func() {
		if err != nil {
			c.ended()
		}
	}()
	if len(c.rest) == 0 {
		n, err = c.Conn.Read(p)
		if n == 0 || !c.large.Load() {
			return n, err
		}
		line := bytes.Clone(p[:n])
		for !c.answered(&line) && err == nil {
			n, err = c.Conn.Read(p)
			line = append(line, p[:n]...)
		}
		c.rest = line
	}
	n = copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) > 0 {
		err = nil // the next Read from the connection returns it again
	}
	return n, err
}

// answered reports whether the status line is complete, and adds the header.
func (c *nodeConn) answered(answer *[]byte) bool {
	const longest = 128 // bytes of a status line
	end := bytes.Index(*answer, []byte("\r\n"))
	if end < 0 {
		return len(*answer) > longest
	}
	if bytes.HasPrefix(*answer, []byte("HTTP/1.1 1")) { // the final answer is still to come
		return true
	}
	c.large.Store(false)
	if bytes.HasPrefix(*answer, []byte("HTTP/1.1 400")) || bytes.HasPrefix(*answer, []byte("HTTP/1.1 431")) {
		*answer = slices.Insert(*answer, end+2, []byte("Connection: close\r\n")...)
	}
	return true
}

// headSize returns the sizes of the first line and of the headers.
func headSize(r *http.Request) (line, headers int) {
	line = len(r.Method) + len(r.URL.RequestURI()) + len("  HTTP/1.1")
	headers = len("Host: \r\n") + len(r.URL.Host)
	for name, values := range r.Header {
		for _, value := range values {
			headers += len(name) + len(value) + len(": \r\n")
		}
	}
	return line, headers
}

// Kinds of failures, values of the label "kind".
const (
	kindConnect = "connect" // no connection
	kindTLS     = "tls"     // no TLS on the connection
	kindHung    = "hung"    // no answer, not even to a ping
	kindBroken  = "broken"  // the connection broke before an answer
	kindStatus  = "status"  // 502, 503 or 504
)

// Reasons to send a request to another node, values of the label "reason".
const (
	retryUnsent     = "unsent"
	retryUnanswered = "unanswered"
	retryHung       = "hung"
)

// metrics are the pool's metrics. The label node is the base URL.
type metrics struct{ failures, retries *prometheus.CounterVec }

func newMetrics(registering promauto.Factory) *metrics {
	m := &metrics{
		failures: registering.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_node_failures_total",
			Help: "Failures of nodes by kind: connect, tls, hung (nothing is answered), broken (the connection broke off before an answer), status (502, 503 or 504).",
		}, []string{"node", "kind"}),
		retries: registering.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_node_retries_total",
			Help: "Requests sent to another node, by reason: unsent (no connection to the first one came about), and of searches unanswered (it broke off) and hung (it does not answer).",
		}, []string{"reason"}),
	}
	for _, reason := range []string{retryUnsent, retryUnanswered, retryHung} {
		m.retries.WithLabelValues(reason)
	}
	return m
}
