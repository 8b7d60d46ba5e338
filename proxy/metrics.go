package proxy

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcomes of a request, values of the label "outcome". Each request that is
// forwarded has one.
const (
	outcomePassed     = "passed"      // not a search: not looked at
	outcomeRewritten  = "rewritten"   // a search that was sent with added terms
	outcomeUnchanged  = "unchanged"   // a search left alone, for the reason given
	outcomeFailedOpen = "failed_open" // a search sent as it came, since something failed
)

// metrics are what the proxy counts and times. The counters that every request
// touches are looked up once.
type metrics struct {
	requests   *prometheus.CounterVec
	passed     prometheus.Counter
	rewritten  prometheus.Counter
	addedTerms prometheus.Counter
	refused    *prometheus.CounterVec
	unanswered prometheus.Counter
	expand     prometheus.Observer
	upstream   prometheus.Observer
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "akin_requests_total",
		Help: "Requests by outcome; reason says why a search was left alone or what failed.",
	}, []string{"outcome", "reason"})
	stages := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "akin_search_stage_duration_seconds",
		Help: "Time a search spends in akin's own work (expand) and until the cluster's answer begins (upstream).",
		// 50 µs, a search with warm caches, to 7.5 s in steps of 2.5 times.
		Buckets: prometheus.ExponentialBuckets(50e-6, 2.5, 14),
	}, []string{"stage"})
	m := &metrics{
		requests:  requests,
		passed:    requests.WithLabelValues(outcomePassed, ""),
		rewritten: requests.WithLabelValues(outcomeRewritten, ""),
		addedTerms: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "akin_added_terms_total",
			Help: "Terms added to searches.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_refused_searches_total",
			Help: "Rewritten searches that the cluster answered with an error, so that the original was sent; original says what became of that.",
		}, []string{"original"}),
		unanswered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "akin_unanswered_requests_total",
			Help: "Requests that no node of the cluster answered.",
		}),
		expand:   stages.WithLabelValues("expand"),
		upstream: stages.WithLabelValues("upstream"),
	}
	return m, errors.Join(
		registry.Register(requests),
		registry.Register(stages),
		registry.Register(m.addedTerms),
		registry.Register(m.refused),
		registry.Register(m.unanswered),
	)
}

func (m *metrics) unchanged(reason string) {
	m.requests.WithLabelValues(outcomeUnchanged, reason).Inc()
}

func (m *metrics) failedOpen(cause string) {
	m.requests.WithLabelValues(outcomeFailedOpen, cause).Inc()
}

func (m *metrics) refusedSearch(originalTaken bool) {
	original := "refused"
	if originalTaken {
		original = "taken"
	}
	m.refused.WithLabelValues(original).Inc()
}
