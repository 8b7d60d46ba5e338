// Package nodes sends requests to the nodes of a cluster: it chooses the node,
// tracks which nodes are down, and repeats unanswered requests on another node
// if that is harmless.
package nodes

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/internal/tracing"
)

const (
	// pingTimeout limits pings, but for those of silent nodes.
	pingTimeout = 2 * time.Second
	// checking is the operation that panics in pings are counted for.
	checking = "checking nodes"
)

// ErrBody is in the errors of a request's Body that say nothing of the node:
// the client sent a broken body.
var ErrBody = errors.New("the body of the request is broken")

// A NotSentError says that a request was not sent, for a reason that says
// nothing of the node, and how to answer it.
type NotSentError struct {
	Status       int
	Type, Reason string // of the answer, without secrets
	Err          error  // the cause
}

// Error returns reason and cause.
func (e *NotSentError) Error() string { return e.Reason + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *NotSentError) Unwrap() error { return e.Err }

// errHung says that a request to a node that hangs was cancelled for a retry.
var errHung = errors.New("the node does not answer")

// Options configure a [Pool].
type Options struct {
	// URLs are the base URLs of the nodes, at least one: http or https, with or
	// without path prefix, without credentials.
	URLs []string
	// TLS is for https nodes, read-only; nil uses the system's roots.
	TLS *tls.Config
	// Sign, unless nil, wraps what sends requests, to sign them for the host of
	// their URL. Pings go without.
	Sign func(next http.RoundTripper) http.RoundTripper
	// MaxIdle limits idle connections to all nodes together; 0 means no limit.
	MaxIdle int
	// Logger gets nodes that go down or up; nil discards that.
	Logger *slog.Logger
	// Trusted says that nodes that are slow are busy, not down: none is pinged, as
	// if all answered at once.
	Trusted bool
	// Guard recovers panics in pings; nil does not count or log them.
	Guard *recovery.Guard
	// Registerer registers the metrics; nil keeps them private.
	Registerer prometheus.Registerer
}

// A Pool sends requests to the nodes of a cluster. It draws two nodes at random
// and takes the one with fewer requests in flight. A node that cannot be
// reached, hangs, or fails for a while is down: it gets no requests until it
// answers again. If all are down, they still get requests.
//
// It is an [http.RoundTripper] that replaces the URL of a request but for path
// and query. Its methods may be called concurrently.
type Pool struct {
	transport http.RoundTripper // the connections; tests replace it
	traced    http.RoundTripper // transport with signatures and spans
	budget    *retryBudget
	metrics   *metrics
	guard     *recovery.Guard
	stop      context.CancelFunc // stops the pings
	running   sync.WaitGroup     // goroutines that ping

	mu    sync.Mutex // guards the nodes' states
	nodes []*node
}

// New returns a pool; the caller closes it. It makes no call. Its errors hide
// URLs, which may hold a password. It panics if the metrics' names are taken.
func New(o Options) (*Pool, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("no URL of a cluster node")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	net := newTransport(o.TLS)
	net.MaxIdleConns = o.MaxIdle
	registering := promauto.With(o.Registerer)
	p := &Pool{transport: transport{net}, budget: newRetryBudget(retryShare), metrics: newMetrics(registering), guard: o.Guard}
	sending := p.transport
	if o.Sign != nil {
		sending = o.Sign(sending)
	}
	p.traced = tracing.Transport(sending)
	for i, raw := range o.URLs {
		base, err := parseBase(raw)
		if err != nil {
			return nil, fmt.Errorf("cluster URL %d: %w", i+1, err)
		}
		name := base.String()
		if !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.name == name }) {
			p.nodes = append(p.nodes, &node{
				base: base, name: name, log: o.Logger, failures: p.metrics.failures,
				cancels: map[*http.Request]context.CancelCauseFunc{}, timer: time.NewTimer(0),
			})
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	for _, n := range p.nodes {
		p.measure(registering, n)
		if !o.Trusted {
			p.running.Go(func() { p.watch(ctx, n) })
		}
	}
	return p, nil
}

func (p *Pool) measure(registering promauto.Factory, n *node) {
	for _, kind := range []string{kindConnect, kindTLS, kindHung, kindBroken, kindStatus} {
		p.metrics.failures.WithLabelValues(n.name, kind)
	}
	gauge := func(metric, help string, value func() int) {
		registering.NewGaugeFunc(prometheus.GaugeOpts{Name: metric, Help: help, ConstLabels: prometheus.Labels{"node": n.name}}, func() float64 {
			p.mu.Lock()
			defer p.mu.Unlock()
			return float64(value())
		})
	}
	gauge("akin_node_up", "1 while a node gets requests, 0 while it is down.", func() int {
		if n.state == up {
			return 1
		}
		return 0
	})
	gauge("akin_node_requests_in_flight", "Requests that a node has not answered yet.", func() int { return n.inFlight })
}

func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be http:// or https://, a host, and perhaps :port and /prefix")
	}
	u.RawPath = strings.TrimRight(u.EscapedPath(), "/")
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// CloseIdleConnections closes connections that no request uses.
func (p *Pool) CloseIdleConnections() { (&http.Client{Transport: p.transport}).CloseIdleConnections() }

// Close stops the pings and waits for them. Requests can still be sent, but a
// node that is down stays so until it answers one.
func (p *Pool) Close() {
	p.stop()
	p.running.Wait()
	p.CloseIdleConnections()
}

// Several reports whether there is more than one node.
func (p *Pool) Several() bool { return len(p.nodes) > 1 }

// TakeRepeat reports whether the retry budget allows sending a request again
// that an overloaded cluster has answered, and takes from it.
func (p *Pool) TakeRepeat() bool { return p.budget.allow(spare) }

type (
	safeKey   struct{}
	repeatKey struct{}
)

// Repeated marks a request that [Pool.TakeRepeat] allowed, or that replaces
// another, so that the budget does not count it.
func Repeated(ctx context.Context) context.Context { return context.WithValue(ctx, repeatKey{}, true) }

// Safe marks requests as harmless to send twice: they only read, and leave
// nothing behind. Unanswered, they are sent to another node, once and within
// the budget, if they have no body or a GetBody.
func Safe(ctx context.Context) context.Context { return context.WithValue(ctx, safeKey{}, true) }

// RoundTrip sends req to a node, and to the next one if there is no connection.
// After that only [Safe] requests are sent again.
func (p *Pool) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Value(repeatKey{}) == nil {
		p.budget.note()
	}
	asked, replayable := req.URL, req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
	own := *req // a RoundTripper must not change the request, which may be sent again
	req = &own
	safe := replayable && p.Several() && req.Context().Value(safeKey{}) != nil
	if !replayable && p.Several() {
		req.Body = io.NopCloser(req.Body) // the transport closes bodies that it could not send
	}
	n := p.first()
	for tried := []*node(nil); ; {
		req.URL = n.resolve(asked)
		res, err := p.send(n, req, safe)
		if err == nil || req.Context().Err() != nil || unsendable(err) {
			return res, err
		}
		tried = append(tried, n)
		if n = p.other(tried); n == nil {
			return nil, err
		}
		reason := retryUnanswered
		switch _, unsent := errors.AsType[*dialError](err); {
		case unsent:
			reason = retryUnsent
		case errors.Is(err, errHung): // already within the budget
			reason = retryHung
		case !safe || !p.budget.allow(0):
			return nil, err
		}
		safe = safe && reason == retryUnsent
		p.metrics.retries.WithLabelValues(reason).Inc()
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// unsendable reports whether an error is about the request and no node.
func unsendable(err error) bool {
	_, unsent := errors.AsType[*NotSentError](err)
	return unsent || errors.Is(err, ErrBody)
}

// first returns the first node to ask.
func (p *Pool) first() *node {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.nodes {
		if n.state == recovering {
			n.state = onTrial
			return n
		}
	}
	if n := p.choose(func(n *node) bool { return n.state == up }); n != nil {
		return n
	}
	// All are down. Those with the shortest back-off are most likely to answer; an
	// overload that took all down must not go to a single one.
	least := slices.MinFunc(p.nodes, func(a, b *node) int { return cmp.Compare(a.backoff, b.backoff) })
	return p.choose(func(n *node) bool { return n.backoff == least.backoff })
}

// other returns a node that is up and was not tried, or nil.
func (p *Pool) other(tried []*node) *node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.choose(func(n *node) bool { return n.state == up && !slices.Contains(tried, n) })
}

// choose draws two of the allowed nodes and returns the less busy one, or nil.
// The caller holds p.mu.
func (p *Pool) choose(may func(*node) bool) *node {
	var all []*node
	for _, n := range p.nodes {
		if may(n) {
			all = append(all, n)
		}
	}
	if len(all) < 2 {
		return append(all, nil)[0]
	}
	a := rand.IntN(len(all))                        //nolint:gosec // a draw, no secret
	b := (a + 1 + rand.IntN(len(all)-1)) % len(all) //nolint:gosec // a draw, no secret
	if all[b].inFlight < all[a].inFlight {
		return all[b]
	}
	return all[a]
}

// send sends req to n. If safe, it may be cancelled and fail with errHung.
func (p *Pool) send(n *node, req *http.Request, safe bool) (*http.Response, error) {
	sent, cancel := req, context.CancelCauseFunc(nil)
	if safe {
		var ctx context.Context // ends with that of req, when the answer is read
		ctx, cancel = context.WithCancelCause(req.Context())
		sent = req.WithContext(ctx)
	}
	p.mu.Lock()
	n.sent(time.Now(), sent, cancel)
	p.mu.Unlock()
	res, err := p.traced.RoundTrip(sent)
	if p.ended(n, sent, safe, res, err) {
		return res, err
	}
	if err == nil {
		_ = res.Body.Close() // the answer comes too late
	}
	return nil, errHung
}

// ended records the outcome of a request to n. It returns false if the request
// was cancelled for a retry: then the outcome does not count.
func (p *Pool) ended(n *node, sent *http.Request, safe bool, res *http.Response, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n.inFlight--
	if _, kept := n.cancels[sent]; safe && !kept {
		return false
	}
	delete(n.cancels, sent)
	now := time.Now()
	dial, unsent := errors.AsType[*dialError](err)
	switch {
	case err == nil:
		n.heard(now)
		if err := sick(res.StatusCode); err != nil {
			n.fail(now, kindStatus, err)
		} else {
			n.works()
		}
	case sent.Context().Err() != nil, unsendable(err): // nothing about the node
		if n.state == onTrial {
			n.state = recovering
		}
	case unsent:
		n.fail(now, dial.kind, err)
	default:
		n.fail(now, kindBroken, err)
	}
	return true
}

// watch pings n whenever due, until ctx ends.
func (p *Pool) watch(ctx context.Context, n *node) {
	for {
		p.mu.Lock()
		n.plan()
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-n.timer.C:
		}
		if p.guard.Do(checking, func() error { p.check(ctx, n); return nil }) != nil { // a panic: it would come again at once
			select {
			case <-ctx.Done():
			case <-time.After(maxBackoff):
			}
		}
	}
}

// check pings n if due.
func (p *Pool) check(ctx context.Context, n *node) {
	p.mu.Lock()
	before, began := *n, time.Now()
	p.mu.Unlock()
	if due := before.due(); due.IsZero() || began.Before(due) {
		return
	}
	limit := pingTimeout
	if !before.failing(began) {
		limit = maxSilence - pingSilent
	}
	answered, err := p.ping(ctx, n, limit)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil && n.pinged(&before, began, time.Now(), answered, err) {
		p.cancelToRetry(n)
	}
}

// cancelToRetry cancels requests in flight at n that another node can answer,
// within the budget. The caller holds p.mu.
func (p *Pool) cancelToRetry(n *node) {
	if p.choose(func(other *node) bool { return other.state == up && other != n }) == nil {
		return
	}
	for sent, cancel := range n.cancels {
		if !p.budget.allow(0) {
			return
		}
		delete(n.cancels, sent)
		cancel(errHung)
	}
}

// ping sends n a HEAD of / without credentials, so 401 is fine. An error means
// that n does not work.
func (p *Pool) ping(ctx context.Context, n *node, limit time.Duration) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "/", http.NoBody)
	if err != nil {
		return false, err
	}
	req.URL = n.resolve(req.URL)
	req.Header.Set("User-Agent", "akin")
	res, err := p.transport.RoundTrip(req)
	if err != nil {
		return false, err
	}
	_ = res.Body.Close() // empty
	return true, sick(res.StatusCode)
}

// Reach pings all nodes and returns nil as soon as one answers anything.
func (p *Pool) Reach(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reached atomic.Bool
	err := recovery.InParallel(len(p.nodes), len(p.nodes), func(i int) error {
		return p.guard.Do(checking, func() error {
			answered, err := p.ping(ctx, p.nodes[i], pingTimeout)
			if answered {
				reached.Store(true)
				cancel()
			}
			return err
		})
	})
	if reached.Load() {
		return nil
	}
	return err
}

const (
	// retryShare is the share of requests that may be retried, in thousandths, so
	// that it is an integer.
	retryShare = 100
	token      = 1000 // for one retry
	// firstTokens is the initial number.
	firstTokens = 10 * token
	// spare is reserved for requests without any answer: repeating what an
	// overloaded cluster refused must not use it up.
	spare = firstTokens - token
	// maxTokens is enough for a node that dies under load with dozens of searches.
	maxTokens = 50 * token
)

// A retryBudget limits retries to a share of the requests. It is a token
// bucket: each request adds the share, each retry takes a token.
type retryBudget struct {
	mu     sync.Mutex
	share  int
	tokens int
}

func newRetryBudget(share int) *retryBudget { return &retryBudget{share: share, tokens: firstTokens} }

// note counts a request that is not a retry.
func (b *retryBudget) note() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.share, maxTokens)
}

// allow takes a token for a retry, unless fewer than leave tokens would remain.
func (b *retryBudget) allow(leave int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < leave+token {
		return false
	}
	b.tokens -= token
	return true
}
