package proxy

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/akin-search/akin/proxy/answer"
)

const (
	// maxRefusals begin a pause: so many refused rewritten searches in a row, or
	// so many clients without an answer within maxPause.
	maxRefusals = 3
	// A pause lasts minPause at first and doubles each time, up to maxPause.
	minPause = time.Second
	maxPause = time.Minute
)

// A pause is a time in which no search is rewritten, because the cluster
// refuses rewritten ones in general (429, 503). One pause covers all clients,
// profiles and statuses, and it outlives a server that is replaced.
//
// After each pause one search is rewritten as a trial. If the cluster accepts
// it, the pause is over. If it accepts only the original, the next is twice as
// long.
type pause struct {
	gauge prometheus.Gauge
	// on says that there is a pause; refusals counts refusals in a row. Most
	// searches need only these, and take no lock.
	on       atomic.Bool
	refusals atomic.Int32

	mu           sync.Mutex
	began, until time.Time
	ended        time.Time // end of the last pause
	taken        time.Time // when the cluster last refused a rewritten search and accepted its original
	lost         int       // clients without an answer since lostSince
	lostSince    time.Time
	span         time.Duration // of this pause or the last one
	tickets      uint64        // given to trials so far
	trial        uint64        // the ticket of the trial in flight, 0 for none
	unchanged    int           // searches sent unchanged in this pause
}

func newPause(registry prometheus.Registerer) *pause {
	return &pause{gauge: promauto.With(registry).NewGauge(prometheus.GaugeOpts{
		Name: "akin_rewriting_paused",
		Help: "1 while no search is rewritten, because the cluster refused several rewritten ones with 429, 503 or the like, and accepted the originals.",
	})}
}

// enter reports whether a search is to be sent unchanged. A trial gets a
// ticket, other searches 0.
func (p *pause) enter() (ticket uint64, paused bool) {
	if !p.on.Load() {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case !p.on.Load(): // it has just ended
		return 0, false
	case now.Before(p.until):
		p.unchanged++
		return 0, true
	}
	p.until = now.Add(p.span) // if the trial takes longer, another one follows
	p.tickets++
	p.trial = p.tickets
	return p.trial, false
}

// leave records that a search has ended. If it was a trial without a result,
// e.g. because nothing was added, the next search is the trial.
func (p *pause) leave(ticket uint64) {
	if ticket == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trial == ticket {
		p.trial, p.until = 0, time.Now()
	}
}

// accepted records that the cluster accepted a rewritten search. Only a trial
// ends a pause: others were sent before it began.
func (p *pause) accepted(ctx context.Context, log *slog.Logger, ticket uint64) {
	if ticket == 0 {
		if p.refusals.Load() != 0 {
			p.refusals.Store(0)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trial != ticket {
		return
	}
	p.trial, p.ended = 0, time.Now()
	p.refusals.Store(0)
	p.on.Store(false)
	p.gauge.Set(0)
	log.InfoContext(ctx, "rewriting goes on", "duration", p.ended.Sub(p.began).Round(time.Millisecond), "searches_sent_as_they_came", p.unchanged)
}

// refused records that the cluster refused a rewritten search as a whole, and
// what became of the original: originalAccepted, originalRejected or
// originalNotSent. If it refused both, nothing is learned: one client's bad
// search must not turn off expansion for others. If the original was not sent,
// the refusal counts only if the cluster accepted one instead of a refused
// search within maxPause.
func (p *pause) refused(ctx context.Context, log *slog.Logger, ticket uint64, r *answer.Failure, original string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	isTrial := p.on.Load() && ticket != 0 && p.trial == ticket
	switch {
	case original == originalAccepted:
		p.taken = now
	case original == originalRejected && isTrial: // the next search is the trial
		p.trial, p.until = 0, now
		return
	case original == originalRejected, now.Sub(p.taken) >= maxPause:
		return
	}
	switch again := now.Sub(p.ended) < maxPause; {
	case isTrial:
		p.trial, p.span = 0, min(2*p.span, maxPause)
	case p.on.Load(): // sent before the pause
		return
	case !p.enough(now, original == originalNotSent, again):
		return
	case again: // the last pause was too short
		p.span = min(2*p.span, maxPause)
		p.began = now
		p.unchanged = 0
	default:
		p.span = minPause
		p.began = now
		p.unchanged = 0
	}
	p.until = now.Add(p.span)
	if p.on.Swap(true) {
		log.InfoContext(ctx, "rewriting stays paused", "status", r.Status, "original", original, "next_trial_in", p.span)
		return
	}
	p.gauge.Set(1)
	log.WarnContext(ctx, "rewriting is paused: the cluster refuses rewritten searches, and all are sent as they came",
		"status", r.Status, "original", original, "next_trial_in", p.span)
}

// enough counts a refusal and reports whether it begins a pause: after
// maxRefusals in a row, or when as many clients got no answer within maxPause,
// whatever was accepted between. Within maxPause after a pause one such client
// will do.
func (p *pause) enough(now time.Time, lost, again bool) bool {
	inARow := p.refusals.Add(1)
	if lost {
		if now.Sub(p.lostSince) >= maxPause {
			p.lost, p.lostSince = 0, now
		}
		p.lost++
	}
	if inARow >= maxRefusals || p.lost >= maxRefusals || lost && again {
		p.lost = 0
		return true
	}
	return false
}
