package nodes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A node is out for firstRest, twice as long after each failure, up to maxRest.
	firstRest = time.Second
	maxRest   = 30 * time.Second
	// maxSilence is how long a node with unanswered requests, which may be long
	// ones, may answer nothing before it is pinged, for up to knockTimeout: enough
	// for an ordinary garbage collection.
	maxSilence   = time.Second
	knockTimeout = 2 * time.Second
	// A node is out after minFailures in a row within at least minFailing: clients
	// can cause answers of 503, with searches in an index that has lost its shards,
	// but not only these for a second. After enoughFailures it is pinged. So it is
	// where connections broke off, and out only where the ping fails, too: engines
	// drop a connection for an unknown method, or a gzip body that is broken (seen
	// with OpenSearch 2), which says nothing of the node.
	minFailures    = 3
	minFailing     = time.Second
	enoughFailures = 10
)

// Kinds of failures, values of the label "kind".
const (
	kindConnect = "connect" // no connection
	kindTLS     = "tls"     // no TLS on the connection
	kindHung    = "hung"    // nothing is answered, not even a HEAD of /
	kindBroken  = "broken"  // the connection broke off before an answer
	kindStatus  = "status"  // 502, 503 or 504
)

// errHung says that a request was taken back from a node that hangs.
var errHung = errors.New("the node does not answer")

// States of a node.
const (
	in      int32 = iota // it gets requests
	out                  // it gets none until it answers a knock
	onTrial              // it gets one, which decides
	trying               // that one is under way
)

// A node is one node of the cluster.
type node struct {
	base    *url.URL // without a trailing slash
	name    string
	state   atomic.Int32 // changed with mu held, but for onTrial and trying
	waiting atomic.Int64 // unanswered requests
	// since is the time of the last answer, or of the first request after it if
	// none was waiting then, 0 while none is.
	since   atomic.Int64
	watched atomic.Bool
	failing atomic.Int64 // the time of the first failure in a row, 0 for none
	rest    atomic.Int64 // how long the node stays out, 0 while it is well

	mu       sync.Mutex
	failures int
	broken   bool                                      // one of them was a connection that broke
	pinged   int64                                     // when the last ping for failures began, 0 for never
	outs     int                                       // how often it was put out
	safe     map[*http.Request]context.CancelCauseFunc // requests that can be taken back
}

// lend returns req such that n can take it back until it is over.
func (n *node) lend(req *http.Request) *http.Request {
	ctx, cancel := context.WithCancelCause(req.Context()) // it ends with req's, when the answer was read
	sent := req.WithContext(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.safe[sent] = cancel
	return sent
}

// over reports whether sent is not one that was taken back. It cannot be later.
func (n *node) over(sent *http.Request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.safe[sent]
	delete(n.safe, sent)
	return ok
}

// takeBack cancels what can be sent to another node, within the budget.
func (p *Pool) takeBack(n *node) {
	if p.choose(isIn, []*node{n}) == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for sent, cancel := range n.safe {
		if !p.budget.Allow() {
			return
		}
		delete(n.safe, sent)
		cancel(errHung)
	}
}

// now returns the time since the pool was made, at least 1.
func (p *Pool) now() int64 { return max(int64(time.Since(p.born)), 1) }

// began notes that a request is sent to n.
func (p *Pool) began(n *node) {
	n.waiting.Add(1)
	if n.since.Load() == 0 && n.since.CompareAndSwap(0, p.now()) {
		p.watch(n)
	}
}

// heard notes a sign of life of n.
func (p *Pool) heard(n *node) {
	if n.waiting.Load() == 0 {
		n.since.Store(0)
		if n.waiting.Load() == 0 || !n.since.CompareAndSwap(0, p.now()) {
			return // else a request began meanwhile, which took n for watched
		}
	} else {
		n.since.Store(p.now())
	}
	p.watch(n)
}

// watch has n looked after while requests are waiting there.
func (p *Pool) watch(n *node) {
	if !n.watched.Load() && n.watched.CompareAndSwap(false, true) {
		p.after(maxSilence, func(ctx context.Context) { p.look(ctx, n) })
	}
}

// look finds out whether n hangs, if it has been silent for too long.
func (p *Pool) look(ctx context.Context, n *node) {
	since := n.since.Load()
	if since == 0 || n.state.Load() == out { // a node that is out is knocked at anyway
		n.watched.Store(false)
		if n.since.Load() != 0 && n.state.Load() != out {
			p.watch(n)
		}
		return
	}
	wait := maxSilence - time.Duration(p.now()-since)
	if wait <= 0 {
		wait = maxSilence
		answered, err := p.knock(ctx, n)
		switch {
		case answered:
			p.heard(n)
			if n.state.Load() == trying { // a long search: it was not refused at least
				p.well(n)
			}
		case n.since.Load() == since && ctx.Err() == nil:
			p.failed(n, kindHung, err)
			p.takeBack(n)
		}
	}
	p.after(wait, func(ctx context.Context) { p.look(ctx, n) })
}

// knock pings n without credentials, so that 401 is fine. An error says that n
// is not well.
func (p *Pool) knock(ctx context.Context, n *node) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, knockTimeout)
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
	_ = res.Body.Close() // it is empty
	return true, sick(res.StatusCode)
}

// sick returns an error for a status of a node that cannot do its work.
func sick(status int) error {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("status %d", status)
	}
	return nil
}

// answered notes the status of an answer.
func (p *Pool) answered(n *node, status int) {
	if err := sick(status); err != nil {
		p.failed(n, kindStatus, err)
	} else if n.failing.Load() != 0 || n.state.Load() != in {
		p.well(n)
	}
}

// well notes that n does its work.
func (p *Pool) well(n *node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state.Load() != in {
		p.log.Info("node is up again", "node", n.name)
	}
	n.failures, n.broken = 0, false
	n.failing.Store(0)
	n.rest.Store(0)
	n.state.Store(in)
}

// failed notes a failure of n, unless n is out.
func (p *Pool) failed(n *node, kind string, err error) {
	p.metrics.failures.WithLabelValues(n.name, kind).Inc()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state.Load() == out {
		return
	}
	now := p.now()
	if n.failures++; n.failures == 1 {
		n.failing.Store(now)
	}
	if kind == kindBroken {
		n.broken = true
	}
	short := n.state.Load() == in && (n.failures < minFailures || time.Duration(now-n.failing.Load()) < minFailing)
	// What one client sends can break connections (an unknown method): where
	// statuses come among that, a ping decides, too.
	if kind == kindBroken || kind == kindStatus && (short || n.broken) {
		due := n.pinged == 0 || time.Duration(now-n.pinged) >= minFailing || n.state.Load() == trying
		if due && (!short || n.failures >= enoughFailures) {
			n.pinged = now
			p.after(0, func(ctx context.Context) { p.suspect(ctx, n, kind) })
		}
		return
	}
	if n.rest.Load() == 0 {
		p.log.Warn("node is down", "node", n.name, "cause", kind, "err", err)
	}
	p.putOut(n)
}

// suspect puts n out if it does not answer a ping well either.
func (p *Pool) suspect(ctx context.Context, n *node, kind string) {
	_, err := p.knock(ctx, n)
	if err == nil && kind == kindBroken && n.state.Load() != out {
		p.well(n)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if state := n.state.Load(); err == nil || ctx.Err() != nil || n.failures == 0 || state != in && state != trying {
		return
	}
	if n.rest.Load() == 0 {
		p.log.WarnContext(ctx, "node is down", "node", n.name, "cause", kind, "err", err)
	}
	p.putOut(n)
}

// putOut puts n out, twice as long as the last time. The caller holds n.mu.
func (p *Pool) putOut(n *node) {
	rest := min(max(2*time.Duration(n.rest.Load()), firstRest), maxRest)
	n.rest.Store(int64(rest))
	n.state.Store(out)
	n.outs++
	outs := n.outs
	// Up to a tenth later, so that several processes do not knock at once.
	p.after(rest+rand.N(rest/10), func(ctx context.Context) { p.visit(ctx, n, outs) }) //nolint:gosec // jitter, no secret
}

// visit knocks at n and puts it on trial if it answers and was not back since.
func (p *Pool) visit(ctx context.Context, n *node, outs int) {
	if n.state.Load() != out {
		return
	}
	answered, err := p.knock(ctx, n)
	if answered {
		p.heard(n)
	} else if ctx.Err() == nil {
		p.takeBack(n)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.outs != outs || n.state.Load() != out || ctx.Err() != nil:
	case err != nil:
		p.putOut(n)
	default:
		n.state.Store(onTrial)
	}
}

// checking names what a panic in the work on nodes is counted as.
const checking = "checking nodes"

// after calls f after a while, unless the pool, whose end ends ctx, is closed.
// Where f panics it is called again later, else a node would stay out.
func (p *Pool) after(d time.Duration, f func(ctx context.Context)) {
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ctx.Err() == nil {
			p.running.Go(func() {
				if err := p.guard.Do(checking, func() error { f(p.ctx); return nil }); err != nil {
					p.after(maxRest, f)
				}
			})
		}
	})
}
