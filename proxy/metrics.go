package proxy

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy/explain"
	"github.com/akin-search/akin/proxy/shadow"
)

// outcomePassedThrough is the outcome of requests that are no searches; package
// explain has the others. One of several searches counts as failed_open, too,
// for each that failed.
const outcomePassedThrough = "passed_through"

// What was too slow, values of the label "transfer".
const (
	slowBody     = "request_body"
	slowResponse = "response"
)

// metrics are what the proxy counts. Counters of every request are looked up
// once.
type metrics struct {
	searchMetrics
	upstreamMetrics
	rerankMetrics
	clientMetrics
	trialMetrics

	shadow shadow.Metrics
}

// searchMetrics tell what became of requests.
type searchMetrics struct {
	requests                 *prometheus.CounterVec
	passedThrough, rewritten prometheus.Counter
	addedTerms               prometheus.Counter
	clause                   *prometheus.CounterVec
	noRow                    prometheus.Counter
	expand, upstream         prometheus.Observer // the time in akin and in the cluster
}

// upstreamMetrics tell what the cluster did.
type upstreamMetrics struct {
	errors, unchecked     prometheus.Counter
	rejected, authorizing *prometheus.CounterVec
}

// rerankMetrics tell of the hits that were to be reranked.
type rerankMetrics struct {
	rerank     *prometheus.CounterVec
	feedback   *prometheus.CounterVec
	rerankTook prometheus.Observer
}

// clientMetrics tell of clients' connections and what is wrong with them.
type clientMetrics struct {
	connections          *prometheus.GaugeVec
	closedIdle           *prometheus.CounterVec
	largeHeads           prometheus.Counter
	slowBodies, slowRead prometheus.Counter
}

// trialMetrics tell of searches in trials.
type trialMetrics struct{ arms, interleaved, impressions *prometheus.CounterVec }

// trial counts a search that gets an arm of a trial.
func (m *trialMetrics) trial(p *part, arm int) { m.arms.WithLabelValues(p.Name, p.Arms[arm]).Inc() }

// A registering makes metrics and registers them.
type registering struct {
	prometheus.Registerer

	errs []error
}

func (r *registering) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.errs = append(r.errs, r.Register(c))
	return c
}

func (r *registering) trials() trialMetrics {
	return trialMetrics{
		arms: r.counter("akin_trial_searches_total",
			"Searches in a trial that got one of its arms, also those that could not be interleaved.", "trial", "arm"),
		interleaved: r.counter("akin_trial_interleaved_total",
			"Searches that were to be interleaved, by result: interleaved, or why they got the answer of one arm, or of none.", "trial", "result"),
		impressions: r.counter("akin_impressions_total", "Interleaved pages for the log, by whether they were written, dropped, or failed.", "result"),
	}
}

// times returns a histogram of 14 buckets, each factor times the one before.
func (r *registering) times(name, help string, first, factor float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, factor, 14),
	}, labels)
	r.errs = append(r.errs, r.Register(h))
	return h
}

// newMetrics registers the metrics. causes are those of failing open.
func newMetrics(registry prometheus.Registerer, causes []string) (*metrics, error) {
	r := &registering{Registerer: registry}
	requests := r.counter("akin_requests_total", "Requests by outcome; reason says why a search was not changed or what failed.", "outcome", "reason")
	// From 50 µs, a search with warm caches, to 7.5 s.
	stages := r.times("akin_search_stage_duration_seconds",
		"Time a search spends in akin's own work (expand) and until the cluster's answer begins (upstream).", 50e-6, 2.5, "stage")
	slow := r.counter("akin_slow_clients_total",
		"Searches aborted because the client was too slow to send the body (answered with 408) or to read a buffered response.", "transfer")
	overlap := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "akin_shadow_overlap_at_10", Help: "Share of the first ten hits that the original and the expanded search have in common.",
		Buckets: []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},
	})
	m := &metrics{
		searchMetrics: searchMetrics{
			requests:      requests,
			passedThrough: requests.WithLabelValues(outcomePassedThrough, ""),
			rewritten:     requests.WithLabelValues(explain.Rewritten, ""),
			addedTerms:    r.counter("akin_added_terms_total", "Terms added to searches.").WithLabelValues(),
			clause: r.counter("akin_clauses_total",
				"Fields of text clauses in searches, by outcome; reason says why one was not expanded or was written in a simpler form.", "outcome", "reason"),
			noRow: r.counter("akin_searches_without_row_total",
				"Searches, or requests with several, that have a word of which the matrix has no row.").WithLabelValues(),
			expand: stages.WithLabelValues("expand"), upstream: stages.WithLabelValues("upstream"),
		},
		upstreamMetrics: upstreamMetrics{
			errors: r.counter("akin_upstream_errors_total", "Requests that no node of the cluster answered.").WithLabelValues(),
			unchecked: r.counter("akin_unchecked_responses_total",
				"Responses of status 200 to rewritten searches that could not be checked for failed shards or items.").WithLabelValues(),
			rejected: r.counter("akin_rejected_searches_total",
				"Rewritten searches that the cluster rejected; original says whether it accepted the original, or that it was not sent.", "original"),
			authorizing: r.counter("akin_authorization_checks_total",
				"Searches without hits that were sent with a client's credentials to see whether it may search some indices.", "result"),
		},
		rerankMetrics: rerankMetrics{
			rerank: r.counter("akin_reranked_total",
				"Searches whose hits were to be reranked, by result. With any but reranked, no_hits and unreadable the hits keep the engine's order.", "result"),
			feedback: r.counter("akin_feedback_total",
				"Searches that were to get terms of their first hits (feedback), by result. With any but used they are expanded without feedback.", "result"),
			rerankTook: r.times("akin_rerank_duration_seconds",
				"Time from the cluster's whole answer until its hits, those of all searches in it, were in order.", 0.5e-3, 2).WithLabelValues(),
		},
		clientMetrics: clientMetrics{
			connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "akin_connections", Help: "Connections of clients that are open."}, []string{"port"}),
			closedIdle: r.counter("akin_idle_connections_closed_total",
				"Connections that were closed to make room for new ones, since all that are allowed were open: idle ones, and those that a client with more than its share kept waiting.", "port"),
			largeHeads: r.counter("akin_large_headers_total",
				"Requests that were refused since their headers, or their first line, are larger than listen.max_header.").WithLabelValues(),
			slowBodies: slow.WithLabelValues(slowBody), slowRead: slow.WithLabelValues(slowResponse),
		},
		trialMetrics: r.trials(),
		shadow: shadow.Metrics{
			Searches: r.counter("akin_shadow_searches_total",
				"Searches chosen to be sent in their expanded form, too (shadow mode), by outcome; all other shadow metrics are of those compared.", "outcome"),
			Hits:    r.counter("akin_shadow_hits_total", "Sum of the total hits that the cluster reported.", "search"),
			Empty:   r.counter("akin_shadow_empty_pages_total", "Answers without hits.", "search"),
			Took:    r.times("akin_shadow_duration_seconds", "Time until the cluster's answer began.", 1e-3, 2, "search"),
			Overlap: overlap,
		},
	}
	m.startSeries(causes)
	return m, errors.Join(append(r.errs, r.Register(overlap), r.Register(m.connections))...)
}

// startSeries makes the series of failing open, so that an alert on their
// increase sees the first one.
func (m *metrics) startSeries(causes []string) {
	for _, cause := range append(causes, causePanic) {
		m.requests.WithLabelValues(explain.FailedOpen, cause)
		m.rerank.WithLabelValues(cause)
		m.feedback.WithLabelValues(cause)
	}
	for _, result := range []string{rerankedHits, rerankNothing, rerankUnnamed, rerankUnreadable} {
		m.rerank.WithLabelValues(result)
	}
	for _, result := range []string{feedbackUsed, feedbackNoHits, feedbackRefused, feedbackAnswer, feedbackPartial, feedbackNoTerms, feedbackBusy, feedbackTooMany} {
		m.feedback.WithLabelValues(result)
	}
	m.rejected.WithLabelValues(originalAccepted)
	m.rejected.WithLabelValues(originalRejected)
	for _, outcome := range shadow.Outcomes {
		m.shadow.Searches.WithLabelValues(outcome)
	}
}

func (m *metrics) unchanged(reason string) {
	m.requests.WithLabelValues(explain.Unchanged, reason).Inc()
}

func (m *metrics) failedOpen(cause string) {
	m.requests.WithLabelValues(explain.FailedOpen, cause).Inc()
}

// clauses counts what was done with each field of each clause, and searches
// with words that are not in the matrix.
func (m *metrics) clauses(res *expand.Result) {
	for i := range res.Clauses {
		outcome := explain.Unchanged
		if res.Clauses[i].Form != "" {
			outcome = explain.Rewritten
		}
		m.clause.WithLabelValues(outcome, string(res.Clauses[i].Reason)).Inc()
	}
	if slices.ContainsFunc(res.Clauses, func(c expand.Explanation) bool { return len(c.NoRow) > 0 }) {
		m.noRow.Inc()
	}
}
