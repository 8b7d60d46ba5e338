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
	// A node is down for minBackoff, twice as long after each failure, up to
	// maxBackoff.
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
	// maxSilence is how long a node with requests in flight, which may be long
	// ones, may answer nothing before it is pinged.
	maxSilence = time.Second
	// A node is down after minFailures in a row within at least minFailing: clients
	// can cause answers of 503, with searches in an index that has lost its shards,
	// but not only these for a second. After enoughFailures it is pinged before.
	minFailures    = 3
	minFailing     = time.Second
	enoughFailures = 10
)

// A state says what a node gets.
type state int

const (
	up         state = iota // it gets requests
	down                    // it gets none until it answers a ping
	recovering              // it has answered one: the next request tries it
	onTrial                 // that request is in flight, and no other is sent
)

// A node is one node of the cluster and what is known of its health. What
// becomes of requests and pings goes in; what it gets (state) and when it is to
// be pinged (due) come out. It does no I/O, and the pool holds a lock for it.
type node struct {
	base     *url.URL // without a trailing slash
	name     string
	log      *slog.Logger
	failures *prometheus.CounterVec

	state    state
	inFlight int // requests without an answer
	// cancels has those in flight that can be sent to another node.
	cancels map[*http.Request]context.CancelCauseFunc
	// silentSince is the time of the last answer, or of the first request after it
	// if none was in flight then; zero while nothing is to be answered.
	silentSince time.Time

	failed       int           // in a row
	failingSince time.Time     // the first of these
	broken       bool          // one of them was a connection that broke off
	backoff      time.Duration // how long it is down; 0 once it works
	pingAt       time.Time     // when it is pinged because it fails or is down; zero for never
	pingedAt     time.Time     // when such a ping began last

	changed chan struct{} // gets a value when due is before awaited
	awaited time.Time     // what the next ping waits for; zero for changed only
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

// sent notes a request to n. What cancels it is nil if it cannot be sent to
// another node.
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

// heard notes a sign of life.
func (n *node) heard(now time.Time) {
	n.silentSince = now
	if n.inFlight == 0 {
		n.silentSince = time.Time{}
	}
}

// works notes that n does its work.
func (n *node) works() {
	if n.state != up {
		n.log.Info("node is up again", "node", n.name)
	}
	n.state, n.failed, n.broken, n.backoff, n.pingAt = up, 0, false, 0, time.Time{}
}

// fail notes a failure, which says nothing new of a node that is down.
//
// Engines drop a connection for an unknown method, or a gzip body that is
// broken (seen with OpenSearch 2). That comes from a client and says nothing of
// the node: where connections broke off, only a ping that fails, too, puts it
// down.
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
		n.pingAt = n.pingedAt.Add(minFailing) // at once, unless that was done just now
	}
	n.plan()
}

// goDown puts n down, for twice as long as the last time.
func (n *node) goDown(now time.Time, cause string, err error) {
	if n.backoff == 0 {
		n.log.Warn("node is down", "node", n.name, "cause", cause, "err", err)
	}
	n.state, n.backoff = down, min(max(2*n.backoff, minBackoff), maxBackoff)
	// Up to a tenth later, so that several processes do not ping at once.
	n.pingAt = now.Add(n.backoff + rand.N(n.backoff/10)) //nolint:gosec // jitter, no secret
}

// due returns when n is to be pinged, zero for never.
func (n *node) due() time.Time {
	silent := n.silentSince.Add(maxSilence)
	if n.state == down || n.silentSince.IsZero() || !n.pingAt.IsZero() && n.pingAt.Before(silent) {
		return n.pingAt
	}
	return silent
}

// plan wakes whoever waits to ping n where that is due earlier than it was.
func (n *node) plan() {
	due := n.due()
	if due.IsZero() || !n.awaited.IsZero() && !due.Before(n.awaited) {
		return
	}
	n.awaited = due
	select {
	case n.changed <- struct{}{}:
	default: // it is woken already
	}
}

// pinged notes the outcome of a ping that began at a time when n was as before,
// and reports whether n hangs. An error says that the answer is none of a node
// that does its work.
func (n *node) pinged(before *node, began, now time.Time, answered bool, err error) (hangs bool) {
	if answered {
		n.heard(now)
	}
	failing := !before.pingAt.IsZero() && !before.pingAt.After(began)
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
			n.state, n.failed, n.broken, n.pingAt = recovering, 0, false, time.Time{}
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
	case answered && n.state == onTrial: // by a long search, which was not refused at least
		n.works()
	case !answered && n.silentSince.Equal(before.silentSince):
		n.fail(now, kindHung, err)
		return true
	}
	return false
}

// sick returns an error for a status of a node that cannot do its work.
func sick(status int) error {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("status %d", status)
	}
	return nil
}
