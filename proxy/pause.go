package proxy

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/akin-search/akin/proxy/answer"
)

const (
	// maxRefusals begin a pause: so many refused rewritten searches in a row, or
	// so many within maxPause whose clients got no other answer.
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

	mu           sync.Mutex
	on           bool
	began, until time.Time     // of this pause or the last one
	span         time.Duration // until the next trial
	refusals     int           // in a row
	taken        time.Time     // when the cluster last refused a rewritten search and accepted its original
	lost         int           // searches without an answer since lostSince
	lostSince    time.Time
	tickets      uint64 // given to trials so far
	trial        uint64 // the ticket of the trial in flight, 0 for none
	unchanged    int    // searches sent unchanged in this pause
}

func newPause(registry prometheus.Registerer) *pause {
	return &pause{gauge: promauto.With(registry).NewGauge(prometheus.GaugeOpts{
		Name: "akin_rewriting_paused",
		Help: "1 while no search is rewritten, because the cluster refused several rewritten ones with 429, 503 or the like, and accepted the originals.",
	})}
}

// holds reports whether there is a pause.
func (p *pause) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on
}

// enter reports whether a search is to be sent unchanged. A trial gets a
// ticket, other searches 0.
func (p *pause) enter() (ticket uint64, paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case !p.on:
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if ticket != 0 && p.trial == ticket {
		p.trial = 0
		p.until = time.Now()
	}
}

// accepted records that the cluster accepted a rewritten search. Only a trial
// ends a pause: others were sent before it began.
func (p *pause) accepted(ctx context.Context, log *slog.Logger, ticket uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ticket {
	case 0:
		p.refusals = 0
	case p.trial:
		p.refusals = 0
		p.trial = 0
		p.until = time.Now()
		p.on = false
		p.gauge.Set(0)
		log.InfoContext(ctx, "rewriting goes on", "duration", p.until.Sub(p.began).Round(time.Millisecond), "searches_sent_as_they_came", p.unchanged)
	}
}

// refused records that the cluster refused a rewritten search as a whole, and
// what became of the original: originalAccepted, originalRejected or
// originalNotSent. If it refused both, nothing is learned: one client's bad
// search must not turn off expansion for others. If the original was not sent,
// the refusal counts only if the cluster accepted one instead of a refused
// search within maxPause.
func (p *pause) refused(ctx context.Context, log *slog.Logger, ticket uint64, r *answer.Failure, original string) {
	if original == originalRejected {
		p.leave(ticket)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if original == originalAccepted {
		p.taken = now
	}
	again := now.Sub(p.until) < maxPause
	isTrial := ticket != 0 && p.trial == ticket
	switch {
	case now.Sub(p.taken) >= maxPause:
		return
	case isTrial:
		p.trial = 0
	case p.on, !p.enough(now, original == originalNotSent, again): // sent before the pause, or too few
		return
	}
	if isTrial || again { // the last span was too short
		p.span = min(2*p.span, maxPause)
	} else {
		p.span = minPause
	}
	p.until = now.Add(p.span)
	if isTrial {
		log.InfoContext(ctx, "rewriting stays paused", "status", r.Status, "original", original, "next_trial_in", p.span)
		return
	}
	p.on = true
	p.began = now
	p.unchanged = 0
	p.gauge.Set(1)
	log.WarnContext(ctx, "rewriting is paused: the cluster refuses rewritten searches, and all are sent as they came",
		"status", r.Status, "original", original, "next_trial_in", p.span)
}

// enough counts a refusal and reports whether it begins a pause: after
// maxRefusals in a row, or when as many searches got no answer within maxPause,
// whatever was accepted between. Within maxPause after a pause one such search
// will do.
func (p *pause) enough(now time.Time, lost, again bool) bool {
	p.refusals++
	if lost {
		if now.Sub(p.lostSince) >= maxPause {
			p.lost = 0
			p.lostSince = now
		}
		p.lost++
	}
	if p.refusals >= maxRefusals || p.lost >= maxRefusals || lost && again {
		p.lost = 0
		return true
	}
	return false
}
