package proxy

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
)

// Outcomes of a request, values of the label "outcome". Each request that is
// forwarded has one; one that holds several searches counts as failed_open,
// too, for each of them that failed.
const (
	outcomePassed     = "passed"      // not a search: not looked at
	outcomeRewritten  = "rewritten"   // a search that was sent with added terms
	outcomeUnchanged  = "unchanged"   // a search left alone, for the reason given
	outcomeFailedOpen = "failed_open" // a search sent as it came, since something failed
)

// What was too slow, values of the label "what".
const (
	cutBody   = "body"
	cutAnswer = "answer"
)

// metrics are what the proxy counts and times. The counters that every request
// touches are looked up once.
type metrics struct {
	requests   *prometheus.CounterVec
	passed     prometheus.Counter
	rewritten  prometheus.Counter
	addedTerms prometheus.Counter
	clause     *prometheus.CounterVec
	refused    *prometheus.CounterVec
	unanswered prometheus.Counter
	access     *prometheus.CounterVec
	expand     prometheus.Observer
	upstream   prometheus.Observer
	frontMetrics
	heldMetrics
	rerankMetrics
	shadowMetrics
}

// frontMetrics tell of clients' connections and of requests that are refused.
type frontMetrics struct {
	connections *prometheus.GaugeVec
	closedIdle  *prometheus.CounterVec
	largeHeads  prometheus.Counter
}

func newFrontMetrics() frontMetrics {
	port := []string{"port"} // proxy or admin
	return frontMetrics{
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "akin_connections",
			Help: "Connections of clients that are open.",
		}, port),
		closedIdle: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_idle_connections_closed_total",
			Help: "Idle connections that were closed to make room for new ones, since all that are allowed were open.",
		}, port),
		largeHeads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "akin_large_headers_total",
			Help: "Requests that were refused since their headers, or their first line, are larger than listen.max_header.",
		}),
	}
}

// heldMetrics tell of what was to be held and could not be, or not for so long.
type heldMetrics struct {
	unchecked prometheus.Counter
	cutOff    *prometheus.CounterVec
}

func newHeldMetrics() heldMetrics {
	return heldMetrics{
		unchecked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "akin_unchecked_answers_total",
			Help: "Answers to rewritten searches, successes by their status, that could not be looked at for failures inside.",
		}),
		cutOff: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_cut_off_total",
			Help: "Searches cut off because the client was too slow: to send the body, which is answered with 408, or to take an answer that is held for it.",
		}, []string{"what"}),
	}
}

// shadowMetrics tell how expanded searches differ from the original ones that
// clients got the answers of.
type shadowMetrics struct {
	shadowSearches *prometheus.CounterVec
	shadowHits     *prometheus.CounterVec
	shadowEmpty    *prometheus.CounterVec
	shadowTook     *prometheus.HistogramVec
	overlap        prometheus.Histogram
}

func (m *frontMetrics) registerFront(registry prometheus.Registerer) error {
	return errors.Join(registry.Register(m.connections), registry.Register(m.closedIdle), registry.Register(m.largeHeads))
}

// newMetrics registers the metrics. causes are those of failing open.
func newMetrics(registry prometheus.Registerer, causes []string) (*metrics, error) {
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
		clause: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_clauses_total",
			Help: "Fields of clauses of the searches that were looked at; reason says why one was left alone or written in a simpler way.",
		}, []string{"outcome", "reason"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_refused_searches_total",
			Help: "Rewritten searches that the cluster answered with an error; original says what became of the original search, or that it was not sent since it would have fared the same.",
		}, []string{"original"}),
		unanswered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "akin_unanswered_requests_total",
			Help: "Requests that no node of the cluster answered.",
		}),
		access: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_access_questions_total",
			Help: "Questions to the cluster whether a client may search some indices, asked with the client's credentials, by what came of them.",
		}, []string{"verdict"}),
		expand:        stages.WithLabelValues("expand"),
		upstream:      stages.WithLabelValues("upstream"),
		frontMetrics:  newFrontMetrics(),
		heldMetrics:   newHeldMetrics(),
		rerankMetrics: newRerankMetrics(),
		shadowMetrics: newShadowMetrics(),
	}
	m.startSeries(causes)
	return m, m.register(registry, stages)
}

func (m *metrics) register(registry prometheus.Registerer, stages *prometheus.HistogramVec) error {
	return errors.Join(
		registry.Register(m.requests),
		registry.Register(stages),
		registry.Register(m.addedTerms),
		registry.Register(m.clause),
		registry.Register(m.refused),
		registry.Register(m.unanswered),
		registry.Register(m.unchecked),
		m.registerFront(registry),
		registry.Register(m.access),
		registry.Register(m.cutOff),
		registry.Register(m.rerank), registry.Register(m.rerankTook),
		registry.Register(m.shadowSearches),
		registry.Register(m.shadowHits),
		registry.Register(m.shadowEmpty),
		registry.Register(m.shadowTook),
		registry.Register(m.overlap),
	)
}

// startSeries makes the series of each way of failing open, so that an alert on
// their increase sees the first one.
func (m *metrics) startSeries(causes []string) {
	for _, cause := range append(causes, causePanic) {
		m.requests.WithLabelValues(outcomeFailedOpen, cause)
		m.rerank.WithLabelValues(cause)
	}
	for _, result := range []string{rerankedHits, rerankNothing, rerankUnnamed, rerankUnreadable} {
		m.rerank.WithLabelValues(result)
	}
	for _, taken := range []bool{false, true} {
		m.refused.WithLabelValues(takenOrRefused(taken))
	}
	for _, outcome := range []string{
		shadowCompared, shadowDropped, shadowCutOff, shadowLeftAlone, shadowFailed, shadowRefused, shadowUnanswered, shadowUnreadable,
	} {
		m.shadowSearches.WithLabelValues(outcome)
	}
}

// rerankMetrics tell of the hits that were to be ordered anew.
type rerankMetrics struct {
	rerank     *prometheus.CounterVec
	rerankTook prometheus.Histogram
}

func newRerankMetrics() rerankMetrics {
	return rerankMetrics{
		rerank: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_reranked_total",
			Help: "Searches whose hits were to be ordered anew, by what became of that; all results but reranked and unreadable mean the engine's order.",
		}, []string{"result"}),
		rerankTook: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "akin_rerank_duration_seconds",
			Help: "Time from the cluster's whole answer until its hits, those of all searches in it, were in order.",
			// 0.5 ms to 4 s in steps of 2 times.
			Buckets: prometheus.ExponentialBuckets(0.5e-3, 2, 14),
		}),
	}
}

// reranked notes what became of the hits of each search of a request, "" for
// those that stayed as they were, and how long that took for all.
func (m *rerankMetrics) reranked(results []string, took time.Duration) {
	for _, result := range results {
		if result != "" {
			m.rerank.WithLabelValues(result).Inc()
		}
	}
	m.rerankTook.Observe(took.Seconds())
}

func newShadowMetrics() shadowMetrics {
	which := []string{"search"} // original or expanded
	return shadowMetrics{
		shadowSearches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_shadow_searches_total",
			Help: "Searches chosen for a shadow run of their expanded form, by what became of that; all other shadow metrics are of the compared ones.",
		}, []string{"outcome"}),
		shadowHits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_shadow_hits_total",
			Help: "Sum of the total hits that the cluster stated.",
		}, which),
		shadowEmpty: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_shadow_empty_pages_total",
			Help: "Answers without a hit in them.",
		}, which),
		shadowTook: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "akin_shadow_duration_seconds",
			Help: "Time until the cluster's answer began.",
			// 1 ms to 8 s in steps of 2 times.
			Buckets: prometheus.ExponentialBuckets(1e-3, 2, 14),
		}, which),
		overlap: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "akin_shadow_overlap_at_10",
			Help:    "Share of the first ten hits that the original and the expanded search have in common.",
			Buckets: []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},
		}),
	}
}

// compared notes how two answers differ.
func (m *shadowMetrics) compared(original, expanded hitList, originalTook, expandedTook time.Duration) {
	for _, a := range []struct {
		name string
		hits hitList
		took time.Duration
	}{{"original", original, originalTook}, {"expanded", expanded, expandedTook}} {
		m.shadowTook.WithLabelValues(a.name).Observe(a.took.Seconds())
		m.shadowHits.WithLabelValues(a.name).Add(float64(a.hits.total))
		if len(a.hits.first) == 0 {
			m.shadowEmpty.WithLabelValues(a.name).Inc()
		}
	}
	if share, ok := overlap(original, expanded); ok {
		m.overlap.Observe(share)
	}
}

func (m *metrics) unchanged(reason string) {
	m.requests.WithLabelValues(outcomeUnchanged, reason).Inc()
}

// clauses counts what was done with each field of each clause.
func (m *metrics) clauses(res *expand.Result) {
	for i := range res.Clauses {
		c := &res.Clauses[i]
		outcome := outcomeUnchanged
		if c.Form != "" {
			outcome = outcomeRewritten
		}
		m.clause.WithLabelValues(outcome, string(c.Reason)).Inc()
	}
}

func (m *metrics) failedOpen(cause string) {
	m.requests.WithLabelValues(outcomeFailedOpen, cause).Inc()
}

func (m *metrics) refusedSearch(originalTaken bool) {
	m.refused.WithLabelValues(takenOrRefused(originalTaken)).Inc()
}

func takenOrRefused(taken bool) string {
	if taken {
		return "taken"
	}
	return "refused"
}
