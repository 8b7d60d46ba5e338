package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// A node is down for minBackoff, then twice as long each time up to
	// maxBackoff.
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	// maxSilence is how long a node with requests in flight, which may take long,
	// may answer nothing: more than an ordinary garbage collection takes, and with
	// time to ask another node before clients give up. The node is pinged after
	// pingSilent and has the rest of that time to answer.
	maxSilence = time.Second
	pingSilent = maxSilence / 2
	// A node is down after minFailures in a row over at least minFailing: clients
	// can cause 503 by searching an index that has lost its shards, but not only
	// 503 for a second. After enoughFailures it is pinged earlier.
	minFailures    = 3
	minFailing     = time.Second
	enoughFailures = 10
)

// A state is the state of a node.
type state int

const (
	up         state = iota // gets requests
	down                    // gets none until it answers a ping
	recovering              // has answered a ping: the next request tries it
	onTrial                 // that request is in flight; no other is sent
)

// A node is one node of the cluster and its health. Outcomes of requests and
// pings go in; its state and the time of the next ping (due) come out. It does
// no I/O, and the pool holds a lock for it.
type node struct {
	base     *url.URL // without trailing slash
	name     string
	log      *slog.Logger
	failures *prometheus.CounterVec

	state    state
	inFlight int // requests without an answer
	// cancels has the requests in flight that can be sent to another node.
	cancels map[*http.Request]context.CancelCauseFunc
	// silentSince is the time of the last answer, or of the first request after it
	// if none was in flight then; zero if no answer is due.
	silentSince time.Time

	failed       int           // failures in a row
	failingSince time.Time     // time of the first of these
	broken       bool          // one of them was a broken connection
	backoff      time.Duration // how long it is down; 0 once it works
	pingAt       time.Time     // next ping because it fails or is down; zero for never
	pingedAt     time.Time     // when the last such ping began

	timer *time.Timer // fires when due
}

// resolve returns the URL of asked at n; path and query stay.
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

// sent records a request to n. cancel is nil if no other node can get it.
func (n *node) sent(now time.Time, req *http.Request, cancel context.CancelCauseFunc) {
	n.inFlight++
	if cancel != nil {
		n.cancels[req] = cancel
	}
	if n.silentSince.IsZero() {
		n.silentSince = now
		n.plan()
	}
}

// heard records a sign of life.
func (n *node) heard(now time.Time) {
	n.silentSince = now
	if n.inFlight == 0 {
		n.silentSince = time.Time{}
	}
}

// works records that n works.
func (n *node) works() {
	if n.state != up {
		n.log.Info("node is up again", "node", n.name)
	}
	n.state = up
	n.failed = 0
	n.broken = false
	n.backoff = 0
	n.pingAt = time.Time{}
}

// fail records a failure, which says nothing new if the node is down.
//
// Engines drop a connection for an unknown method, or a broken gzip body (seen
// with OpenSearch 2). Clients cause that, so after broken connections only a
// failed ping takes the node down.
func (n *node) fail(now time.Time, kind string, err error) {
	n.failures.WithLabelValues(n.name, kind).Inc()
	if n.state == down {
		return
	}
	if n.failed++; n.failed == 1 {
		n.failingSince = now
	}
	n.broken = n.broken || kind == kindBroken
	long := n.state != up || n.failed >= minFailures && now.Sub(n.failingSince) >= minFailing
	switch {
	case kind != kindBroken && kind != kindStatus, long && !n.broken:
		n.goDown(now, kind, err)
	case n.state == onTrial:
		n.pingAt = now
	case n.pingAt.IsZero() && (long || n.failed >= enoughFailures):
		n.pingAt = n.pingedAt.Add(minFailing) // at once, unless just done
	}
	n.plan()
}

// goDown takes n down, for twice as long as the last time.
func (n *node) goDown(now time.Time, cause string, err error) {
	if n.backoff == 0 {
		n.log.Warn("node is down", "node", n.name, "cause", cause, "err", err)
	}
	n.state, n.backoff = down, min(max(2*n.backoff, minBackoff), maxBackoff)
	// Up to a tenth later, so that several processes do not ping together.
	n.pingAt = now.Add(n.backoff + rand.N(n.backoff/10)) //nolint:gosec // jitter, no secret
}

// due returns when n is to be pinged; zero for never.
func (n *node) due() time.Time {
	silent := n.silentSince.Add(pingSilent)
	if n.state == down || n.silentSince.IsZero() || !n.pingAt.IsZero() && n.pingAt.Before(silent) {
		return n.pingAt
	}
	return silent
}

// failing reports whether n is to be pinged because it fails or is down.
func (n *node) failing(now time.Time) bool { return !n.pingAt.IsZero() && !n.pingAt.After(now) }

// plan sets the timer to when n is due.
func (n *node) plan() {
	n.timer.Stop()
	if due := n.due(); !due.IsZero() {
		n.timer.Reset(time.Until(due))
	}
}

// pinged records the outcome of a ping that began when n was as before, and
// reports whether n hangs. An error means that the node does not work.
func (n *node) pinged(before *node, began, now time.Time, answered bool, err error) (hangs bool) {
	if answered {
		n.heard(now)
	}
	failing := before.failing(began)
	if failing {
		n.pingedAt = began
	}
	switch {
	case before.state == down:
		switch {
		case n.state != down || !n.pingAt.Equal(before.pingAt): // an answer has brought it up meanwhile
		case err != nil:
			n.goDown(now, "", err)
		default:
			n.state = recovering
			n.failed = 0
			n.broken = false
			n.pingAt = time.Time{}
		}
		return !answered
	case n.state == down || failing && n.failed == 0: // requests have decided meanwhile
	case failing:
		n.pingAt = time.Time{}
		switch {
		case err == nil && n.broken:
			n.works()
		case err == nil: // its other answers decide
		case n.broken:
			n.goDown(now, kindBroken, err)
		default:
			n.goDown(now, kindStatus, err)
		}
	case answered && n.state == onTrial: // by a long search, which was not refused
		n.works()
	case !answered && n.silentSince.Equal(before.silentSince):
		n.fail(now, kindHung, err)
		return true
	}
	return false
}

// sick returns an error for the status of a node that cannot work.
func sick(status int) error {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("status %d", status)
	}
	return nil
}
