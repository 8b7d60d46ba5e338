// Package nodes sends requests to the nodes of a cluster: it chooses which node
// is asked, notices which are not well, and repeats on another node what was
// not answered where that is harmless.
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

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/internal/tracing"
)

// retryShare is the share of the requests that may be repeated by default.
const retryShare = 0.1

// Options say what [New] builds a pool from.
type Options struct {
	// URLs are the base URLs of the nodes, at least one, http or https, with or
	// without a path prefix, without credentials.
	URLs []string
	// TLS, not to be modified, is for https nodes; nil verifies by the system's
	// roots.
	TLS *tls.Config
	// MaxIdle bounds idle connections to all nodes together; 0 is no bound.
	MaxIdle int
	// Budget bounds the searches that are repeated; nil is a tenth of the requests.
	Budget *RetryBudget
	// Logger receives which nodes are out and back; nil discards that.
	Logger *slog.Logger
	// Guard recovers what panics while nodes are looked after; nil only recovers.
	Guard *recovery.Guard
	// Registerer receives the metrics; nil keeps them.
	Registerer prometheus.Registerer
}

// A Pool sends requests to the nodes of a cluster: of two drawn at random to
// the one with fewer unanswered requests. A node that cannot be connected to,
// hangs, or fails for a while is out: it gets no requests until it answers
// again. Where all are out they are asked all the same.
//
// It implements [http.RoundTripper], except that it replaces the URL of a
// request, of which path and query count, and may wrap its body. Its methods
// may be called concurrently.
type Pool struct {
	nodes     []*node
	transport http.RoundTripper // a transport, replaced by tests
	traced    http.RoundTripper // transport with spans
	budget    *RetryBudget
	log       *slog.Logger
	metrics   *metrics
	guard     *recovery.Guard
	born      time.Time

	ctx     context.Context //nolint:containedctx // Ends with the pool: knocks belong to no request.
	cancel  context.CancelFunc
	mu      sync.Mutex // held to begin and to close
	running sync.WaitGroup
}

// New returns a pool. It makes no call. Its errors do not show a URL, which
// could hold a password.
func New(o Options) (*Pool, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("no URL of a cluster node")
	}
	net := newTransport(o.TLS)
	net.MaxIdleConns = o.MaxIdle
	p := &Pool{transport: transport{net}, budget: o.Budget, log: o.Logger, metrics: newMetrics(), guard: o.Guard, born: time.Now()}
	p.traced = tracing.Transport(p.transport)
	for i, raw := range o.URLs {
		base, err := parseBase(raw)
		if err != nil {
			return nil, fmt.Errorf("cluster URL %d: %w", i+1, err)
		}
		name := base.String()
		if !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.name == name }) {
			p.nodes = append(p.nodes, &node{base: base, name: name, safe: map[*http.Request]context.CancelCauseFunc{}})
		}
	}
	if p.budget == nil {
		p.budget = NewRetryBudget(retryShare)
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if o.Registerer != nil {
		if err := p.metrics.register(o.Registerer, p.nodes); err != nil {
			return nil, fmt.Errorf("metrics of the nodes: %w", err)
		}
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// parseBase parses the base URL of a node.
func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be http:// or https://, a host, and perhaps :port and /prefix")
	}
	u.RawPath = strings.TrimRight(u.EscapedPath(), "/")
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// CloseIdleConnections closes the connections that no request uses.
func (p *Pool) CloseIdleConnections() { (&http.Client{Transport: p.transport}).CloseIdleConnections() }

// Close ends what runs for the pool itself and waits for that. Requests can
// still be sent, but nodes that are out stay so until they answer one.
func (p *Pool) Close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.running.Wait()
	p.CloseIdleConnections()
}

// Reach pings all nodes and returns nil as soon as one has answered anything,
// else an error.
func (p *Pool) Reach(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan error, len(p.nodes))
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	for _, n := range p.nodes {
		calls.Go(func() {
			answers <- p.guard.Do(checking, func() error {
				if answered, err := p.knock(ctx, n); !answered {
					return err
				}
				return nil
			})
		})
	}
	var err error
	for range p.nodes {
		if err = <-answers; err == nil {
			return nil
		}
	}
	return err
}

// Several reports whether there is more than one node.
func (p *Pool) Several() bool { return len(p.nodes) > 1 }

// MayRepeat reports whether a request that an overloaded cluster has answered
// may be sent again, within the budget, and counts that.
func (p *Pool) MayRepeat() bool { return p.budget.AllowMore() }

type (
	safeKey   struct{}
	repeatKey struct{}
)

// Repeated marks a request that [Pool.MayRepeat] allowed, or that stands for
// another, for the budget.
func Repeated(ctx context.Context) context.Context { return context.WithValue(ctx, repeatKey{}, true) }

// Safe marks requests as harmless to send twice: they read, and leave nothing
// behind. One that was not answered is sent to another node, once and within
// the budget, if it has no body or a GetBody.
func Safe(ctx context.Context) context.Context { return context.WithValue(ctx, safeKey{}, true) }

// RoundTrip sends req to a node, and to the next one where no connection comes
// about. Only [Safe] requests are sent again later than that.
func (p *Pool) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Value(repeatKey{}) == nil {
		p.budget.Note()
	}
	asked, safe := req.URL, false
	if len(p.nodes) > 1 {
		if again := req.Body == nil || req.Body == http.NoBody || req.GetBody != nil; again {
			safe = req.Context().Value(safeKey{}) != nil
		} else {
			// The transport closes bodies that it could not send.
			req.Body = io.NopCloser(req.Body)
		}
	}
	n := p.first()
	for tried := []*node(nil); ; {
		res, err := p.send(n, asked, req, safe)
		if err == nil || req.Context().Err() != nil {
			return res, err
		}
		tried = append(tried, n)
		if n = p.choose(isIn, tried); n == nil {
			return nil, err
		}
		reason := retryUnanswered
		switch _, unsent := errors.AsType[*dialError](err); {
		case unsent:
			reason = retryUnsent
		case errors.Is(err, errHung): // it was taken back, within the budget
			reason = retryHung
		case !safe || !p.budget.Allow():
			return nil, err
		}
		safe = safe && reason == retryUnsent
		p.metrics.retries.WithLabelValues(reason).Inc()
	}
}

// first returns the node that is asked first.
func (p *Pool) first() *node {
	for _, n := range p.nodes {
		if n.state.Load() == onTrial && n.state.CompareAndSwap(onTrial, trying) {
			return n
		}
	}
	if n := p.choose(isIn, nil); n != nil {
		return n
	}
	// All are out. Those that are so for the shortest time are the likeliest to
	// answer; an overload that puts all out must not be put on one.
	least := slices.MinFunc(p.nodes, func(a, b *node) int { return cmp.Compare(a.rest.Load(), b.rest.Load()) })
	if n := p.choose(func(n *node) bool { return n.rest.Load() <= least.rest.Load() }, nil); n != nil {
		return n
	}
	return least // one came back meanwhile
}

func isIn(n *node) bool { return n.state.Load() == in }

// choose draws two nodes that were not tried, and returns the less busy one,
// nil for none.
func (p *Pool) choose(may func(*node) bool, tried []*node) *node {
	var drawn [2]*node
	seen := 0
	for _, n := range p.nodes {
		if !may(n) || slices.Contains(tried, n) {
			continue
		}
		seen++
		if seen <= 2 {
			drawn[seen-1] = n
		} else if at := rand.IntN(seen); at < 2 { //nolint:gosec // a draw, no secret
			drawn[at] = n
		}
	}
	if seen < 2 {
		return drawn[0]
	}
	a, b := drawn[0].waiting.Load(), drawn[1].waiting.Load()
	if b < a || a == b && rand.IntN(2) == 0 { //nolint:gosec // a draw, no secret
		return drawn[1]
	}
	return drawn[0]
}

// send sends req to n. If safe, it may be taken back and fail with errHung.
func (p *Pool) send(n *node, asked *url.URL, req *http.Request, safe bool) (*http.Response, error) {
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			n.state.CompareAndSwap(trying, onTrial)
			return nil, err
		}
		req.Body = body
	}
	req.URL = n.resolve(asked)
	p.began(n)
	sent := req
	if safe {
		sent = n.lend(req)
	}
	res, err := p.traced.RoundTrip(sent)
	n.waiting.Add(-1)
	if safe && !n.over(sent) {
		if err == nil {
			_ = res.Body.Close() // too late
		}
		return nil, errHung
	}
	switch {
	case err == nil:
		p.heard(n)
		p.answered(n, res.StatusCode)
	case req.Context().Err() != nil: // the client left, which says nothing of the node
		n.state.CompareAndSwap(trying, onTrial)
	default:
		kind := kindBroken
		if unsent, ok := errors.AsType[*dialError](err); ok {
			kind = unsent.kind
		}
		p.failed(n, kind, err)
	}
	return res, err
}

// resolve returns the URL of asked, of which path and query count, at n.
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

// Why a request is sent to another node, values of the label "reason".
const (
	retryUnsent     = "unsent"
	retryUnanswered = "unanswered"
	retryHung       = "hung"
)

// metrics are what the pool counts. The label node is the base URL.
type metrics struct{ failures, retries *prometheus.CounterVec }

func newMetrics() *metrics {
	return &metrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_node_failures_total",
			Help: "Failures of nodes by kind: connect, tls, hung (nothing is answered), broken (the connection broke off before an answer), status (502, 503 or 504).",
		}, []string{"node", "kind"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_node_retries_total",
			Help: "Requests sent to another node, by reason: unsent (no connection to the first one came about), and of searches unanswered (it broke off) and hung (it does not answer).",
		}, []string{"reason"}),
	}
}

// register registers the metrics, with gauges of these nodes.
func (m *metrics) register(r prometheus.Registerer, nodes []*node) error {
	errs := []error{r.Register(m.failures), r.Register(m.retries)}
	for _, reason := range []string{retryUnsent, retryUnanswered, retryHung} {
		m.retries.WithLabelValues(reason)
	}
	for _, n := range nodes {
		for _, kind := range []string{kindConnect, kindTLS, kindHung, kindBroken, kindStatus} {
			m.failures.WithLabelValues(n.name, kind)
		}
		gauge := func(name, help string, value func() float64) {
			errs = append(errs, r.Register(prometheus.NewGaugeFunc(
				prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"node": n.name}}, value)))
		}
		gauge("akin_node_up", "1 while a node gets requests, 0 while it is down.", func() float64 {
			if isIn(n) {
				return 1
			}
			return 0
		})
		gauge("akin_node_requests_in_flight", "Requests that a node has not answered yet.",
			func() float64 { return float64(n.waiting.Load()) })
	}
	return errors.Join(errs...)
}

// Tokens of a [RetryBudget], in thousandths so that they fit an integer.
const (
	token       = 1000
	firstTokens = 10 * token
	// spare is what an overloaded cluster leaves for requests not answered at all.
	spare = firstTokens - token
	// maxTokens are for a node that dies under load with dozens of searches.
	maxTokens = 50 * token
)

// A RetryBudget keeps repetitions to a share of the requests. It is a token
// bucket: each request adds the share, each repetition takes one of at most 50
// tokens; at first there are 10. Its methods may be called concurrently.
type RetryBudget struct {
	share  int64
	tokens atomic.Int64
}

// NewRetryBudget allows share, in [0, 1], repetitions for each request.
func NewRetryBudget(share float64) *RetryBudget {
	b := &RetryBudget{share: int64(share * token)}
	b.tokens.Store(firstTokens)
	return b
}

// Note counts a request. Repetitions are not noted.
func (b *RetryBudget) Note() {
	if b.tokens.Load() < maxTokens {
		b.tokens.Add(b.share) // concurrent calls may exceed the limit by a little
	}
}

// Allow reports whether a request may be repeated now, and counts that.
func (b *RetryBudget) Allow() bool { return b.take(0) }

// AllowMore is Allow for an overloaded cluster: it leaves tokens for requests
// that were not answered at all.
func (b *RetryBudget) AllowMore() bool { return b.take(spare) }

func (b *RetryBudget) take(leave int64) bool {
	for {
		left := b.tokens.Load()
		if left < leave+token {
			return false
		}
		if b.tokens.CompareAndSwap(left, left-token) {
			return true
		}
	}
}
