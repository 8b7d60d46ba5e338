package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits towards the cluster. A node has as long for its answer as the client
// is willing to wait: the client's disconnect ends the request.
const (
	dialTimeout         = 5 * time.Second
	tlsHandshakeTimeout = 5 * time.Second
	// idleConnTimeout is below the keep-alive time of the usual load balancers,
	// 60 s, so that akin is the side that closes.
	idleConnTimeout = 50 * time.Second
	// idleConnsPerNode keeps as many connections as there are clients at once;
	// net/http's default of 2 makes new ones all the time.
	idleConnsPerNode = 512
	// A node that fails to connect is passed over for firstRest, and twice as
	// long each further time, at most maxRest.
	firstRest = time.Second
	maxRest   = 30 * time.Second
)

// upstream sends requests to the nodes of the cluster in turn.
type upstream struct {
	nodes     []*node
	turn      atomic.Uint64
	transport *http.Transport
	now       func() time.Time // replaced by tests
	log       *slog.Logger
}

// A node is one node of the cluster. It rests after a failure to connect.
type node struct {
	base   *url.URL     // without a trailing slash
	resume atomic.Int64 // Unix nanoseconds, 0 while the node is up
	mu     sync.Mutex   // held to change resume and rest
	rest   time.Duration
}

func newUpstream(urls []string, tlsConfig *tls.Config, log *slog.Logger) (*upstream, error) {
	if len(urls) == 0 {
		return nil, errors.New("no URL of a cluster node")
	}
	u := &upstream{now: time.Now, log: log}
	for i, raw := range urls {
		base, err := parseBase(raw)
		if err != nil {
			return nil, fmt.Errorf("cluster URL %d: %w", i+1, err)
		}
		u.nodes = append(u.nodes, &node{base: base})
	}
	u.transport = &http.Transport{
		// No Proxy: the environment's proxy is for the world outside.
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       tlsConfig.Clone(), // of nil is nil
		TLSHandshakeTimeout:   tlsHandshakeTimeout,
		MaxIdleConnsPerHost:   idleConnsPerNode,
		IdleConnTimeout:       idleConnTimeout,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // else it asks for gzip and decodes it
	}
	return u, nil
}

// parseBase parses the base URL of a node. Its errors do not show the URL,
// which could hold a password.
func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q is not http or https", u.Scheme)
	case u.Host == "":
		return nil, errors.New("it has no host")
	case u.User != nil:
		return nil, errors.New("it holds credentials; those of the clients are passed on")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it has a query or a fragment")
	}
	u.RawPath = strings.TrimRight(u.EscapedPath(), "/")
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// RoundTrip sends out to the next node that is not resting, and passes on to
// the one after it where no connection comes about. A request of which a byte
// may have been sent is not sent again, and where all nodes rest just one is
// asked. It replaces out.URL and may wrap out.Body: out belongs to it.
func (u *upstream) RoundTrip(out *http.Request) (*http.Response, error) {
	asked := out.URL
	if out.Body != nil && out.GetBody == nil && len(u.nodes) > 1 {
		// The transport closes the body of a request that it could not send.
		// The one who made out closes it in the end.
		out.Body = keepOpen{out.Body}
	}
	turn := u.turn.Add(1)
	var failure error
	for i := range u.nodes {
		n := u.nodes[(turn+uint64(i))%uint64(len(u.nodes))]
		if n.resting(u) {
			continue
		}
		res, err := u.send(n, asked, out)
		if err == nil || !unsent(err) {
			return res, err
		}
		failure = err
	}
	if failure != nil {
		return nil, failure
	}
	return u.send(u.firstToResume(), asked, out)
}

// send sends out to n and notes whether a connection came about.
func (u *upstream) send(n *node, asked *url.URL, out *http.Request) (*http.Response, error) {
	if out.GetBody != nil {
		body, err := out.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	out.URL = n.resolve(asked)
	res, err := u.transport.RoundTrip(out)
	switch {
	case err == nil:
		u.up(n)
	case unsent(err):
		u.down(n, err)
	}
	return res, err
}

// unsent reports whether err says that no connection to the node came about.
// The error of a client that went away is the context's.
func unsent(err error) bool {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &cert)
}

// resolve returns the URL of a request for asked, of which path and query
// count, at n.
func (n *node) resolve(asked *url.URL) *url.URL {
	target := *asked
	target.Scheme, target.Host = n.base.Scheme, n.base.Host
	if n.base.Path == "" {
		return &target
	}
	target.RawPath = n.base.RawPath + asked.EscapedPath()
	target.Path = n.base.Path + asked.Path
	if asked.Opaque != "" {
		target.Opaque = n.base.RawPath + asked.Opaque
	}
	return &target
}

func (n *node) resting(u *upstream) bool {
	resume := n.resume.Load()
	return resume != 0 && u.now().UnixNano() < resume
}

// firstToResume returns the node whose rest ends first.
func (u *upstream) firstToResume() *node {
	first := u.nodes[0]
	for _, n := range u.nodes[1:] {
		if n.resume.Load() < first.resume.Load() {
			first = n
		}
	}
	return first
}

// down sends n to rest. Requests that were on their way to a resting node do
// not prolong its rest.
func (u *upstream) down(n *node, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.resting(u) {
		return
	}
	if n.rest == 0 {
		u.log.Warn("node is not reachable", "node", n.base.String(), "err", err)
	}
	n.rest = min(max(2*n.rest, firstRest), maxRest)
	n.resume.Store(u.now().Add(n.rest).UnixNano())
}

// up ends the rest of n.
func (u *upstream) up(n *node) {
	if n.resume.Load() == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rest != 0 {
		u.log.Info("node is reachable again", "node", n.base.String())
	}
	n.rest = 0
	n.resume.Store(0)
}

// keepOpen is a body that outlives the attempt to send it.
type keepOpen struct{ io.Reader }

// Close does nothing.
func (keepOpen) Close() error { return nil }
