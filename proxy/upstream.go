package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
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
	// typesTime is how long it is believed that the cluster has mapping types.
	typesTime = time.Minute
)

// upstream sends requests to the nodes of the cluster in turn.
type upstream struct {
	nodes     []*node
	turn      atomic.Uint64
	transport *http.Transport
	types     atomic.Pointer[knownTypes]
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

// ask makes a call of akin's own for the client that sent r: with its headers,
// credentials among them, less those about its body, its connection and the
// form of the answer. It reads an answer of at most MaxBody bytes.
func (s *Server) ask(ctx context.Context, r *http.Request, method, path string, body []byte) (status int, answer []byte, err error) {
	out, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	out.Header = r.Header.Clone()
	for name := range out.Header {
		if slices.Contains(notAsked[:], name) || slices.Contains(connectionOptions(r.Header), name) {
			delete(out.Header, name)
		}
	}
	out.Header["Accept"] = []string{"application/json"}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // else net/http makes one up
	}
	if len(body) > 0 {
		out.Header["Content-Type"] = []string{"application/json"}
	}
	res, err := s.upstream.RoundTrip(out)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = readUpTo(res.Body, min(res.ContentLength, firstRead), s.opts.MaxBody+1)
	if err == nil && int64(len(answer)) > s.opts.MaxBody {
		err = fmt.Errorf("%s: the answer is larger than %d bytes", path, s.opts.MaxBody)
	}
	return res.StatusCode, answer, err
}

// notAsked are the headers of a client's request that a call made for it has
// not.
var notAsked = [...]string{
	"Accept", "Accept-Charset", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect",
	"Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", controlHeader, profileHeader,
}

// connectionOptions returns the names of the headers that are for the next hop
// alone (RFC 9110, section 7.6.1).
func connectionOptions(h http.Header) (names []string) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// knownTypes is what was learnt of a cluster's mapping types.
type knownTypes struct {
	are   bool
	until time.Time
}

// knowsTypes reports whether the cluster has mapping types. With them
// POST /i/_doc/_search searches; without, it stores a document named _search,
// which must not be rewritten. Engines on Lucene 8 have them, those on later
// ones do not; the version of an OpenSearch can pretend to be that of an
// Elasticsearch 7.
func (s *Server) knowsTypes(ctx context.Context, r *http.Request) bool {
	if known := s.upstream.types.Load(); known != nil && s.upstream.now().Before(known.until) {
		return known.are
	}
	status, answer, err := s.ask(ctx, r, http.MethodGet, "/", nil)
	var page struct {
		Version struct {
			Lucene string `json:"lucene_version"`
		} `json:"version"`
	}
	if err != nil || status != http.StatusOK || json.Unmarshal(answer, &page) != nil || page.Version.Lucene == "" {
		return false // and unknown: the next one asks again
	}
	known := &knownTypes{strings.HasPrefix(page.Version.Lucene, "8."), s.upstream.now().Add(typesTime)}
	s.upstream.types.Store(known)
	return known.are
}
