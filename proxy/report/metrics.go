// Package report reports what became of requests: in metrics (metrics.go;
// docs/metrics.md lists them), access log and traces (exchange.go, search.go),
// explanations of the last searches (explanations.go) and health (health.go).
// The access log is written in the background, so that no request waits for it.
package report

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/reason"
)

// Kinds of slow transfers, values of the label "transfer".
const (
	SlowBody     = "request_body"
	SlowResponse = "response"
)

// Metrics are the proxy's metrics. Series of every request are looked up once.
type Metrics struct {
	traffic // of all clients' requests

	// Outcomes of requests.
	requests, clauses *prometheus.CounterVec
	PassedThrough     prometheus.Counter
	ESQL              prometheus.Counter // queries that search for text
	AddedTerms, noRow prometheus.Counter
	stages            *prometheus.HistogramVec // the time in akin and in the cluster

	// Of the cluster.
	Errors, Unchecked     prometheus.Counter
	Rejected, Authorizing *prometheus.CounterVec

	// Of hits to be reranked, or to add terms from.
	Reranked, Feedback, FewHits, FollowUps *prometheus.CounterVec
	Reranks                                *prometheus.CounterVec // by what orders the hits
	searches                               *prometheus.CounterVec // by what added words do
	Found                                  *prometheus.CounterVec // searches by how much they find
	RerankTook                             prometheus.Observer

	// Of clients' connections and their problems.
	Connections                      *prometheus.GaugeVec
	ClosedIdle                       *prometheus.CounterVec
	LargeHeads, SlowBodies, SlowRead prometheus.Counter
	Unauthorized, Signatures         prometheus.Counter

	Trials *prometheus.CounterVec // of searches in trials, by trial and arm
	shadow shadows
}

// Values are the known values of labels. Their series exist from the start, so
// that an alert on their increase sees the first one.
type Values struct {
	// Causes are those of failing open. Reasons are those not to rewrite a search;
	// [NewMetrics] adds those of package reason.
	Causes, Reasons []string
	// Reranked, Feedback, FewHits and FollowUps are the results that are not causes.
	Reranked, Feedback, FewHits, FollowUps []string
	// Found are what searches find.
	Found []string
	// Originals are the results for originals of rejected searches, Authorizing
	// those of access checks.
	Originals, Authorizing []string
}

// NewMetrics registers the metrics. It panics if their names are taken.
func NewMetrics(registry prometheus.Registerer, known Values) *Metrics {
	r := registering{promauto.With(registry)}
	for _, why := range reason.All() {
		known.Reasons = append(known.Reasons, string(why))
	}
	m := &Metrics{
		Errors: r.counter("akin_upstream_errors_total", "Requests that no node of the cluster answered.").WithLabelValues(),
		Unchecked: r.counter("akin_unchecked_responses_total",
			"Responses of status 200 to rewritten searches that could not be checked for failed shards or items.").WithLabelValues(),
		Rejected: r.by("original", known.Originals, "akin_rejected_searches_total",
			"Rewritten searches that the cluster rejected; original says whether it accepted the original, or that it was not sent."),
		Authorizing: r.by("result", known.Authorizing, "akin_authorization_checks_total",
			"Searches without hits that were sent with a client's credentials to see whether it may search some indices."),
		Reranked: r.by("result", slices.Concat(known.Reranked, known.Causes), "akin_reranked_total",
			"Searches whose hits were to be reranked, by result. With any but reranked, no_hits and unreadable the hits keep the engine's order or, with embeddings, that by what did not fail."),
		Reranks: r.by("kind", []string{bySoft, byEmbeddings}, "akin_rerank_total",
			"Searches whose hits were to be reranked, by what orders them: soft (the soft cosine) or embeddings (vectors of a language model)."),
		Feedback: r.by("result", slices.Concat(known.Feedback, known.Causes), "akin_feedback_total",
			"Searches that were to get terms of their first hits (feedback), by result. With any but used they are expanded without feedback."),
		FewHits: r.by("result", known.FewHits, "akin_few_hits_total",
			"Searches that are expanded where they find few hits, by result. With any but expanded the client gets the answer to the first."),
		FollowUps: r.by("result", known.FollowUps, "akin_follow_ups_total",
			"Searches sent in the background, in the mode auto, to remember what their hits hold, by result."),
		searches: r.by("how", []string{expand.Ordered, expand.Widened, expand.Exact}, "akin_searches_total",
			"Rewritten searches whose answer the client got, by what the added words do: put hits in order, find more, or count as much as the text's."),
		Found: r.by("hits", known.Found, "akin_searches_found_total",
			"Searches, if they are collected, by the hits that the client got: none, few, related (only related words found any), enough, or unread."),
		RerankTook: r.times("akin_rerank_duration_seconds",
			"Time from the cluster's whole answer until the pages were in it: hits are put in order, and asked for.", 0.5e-3, 2).WithLabelValues(),
		Trials:  r.counter("akin_trial_searches_total", "Searches in a trial, by the arm that they got.", "trial", "arm"),
		traffic: r.traffic(), shadow: r.shadow(),
	}
	m.addSearches(r, &known)
	m.addClients(r)
	return m
}

func (m *Metrics) addSearches(r registering, known *Values) {
	m.requests = r.counter("akin_requests_total",
		"Requests by outcome; reason says why a search was not changed or what failed, effort what a rewritten one may cost.", "outcome", "reason", "effort")
	m.PassedThrough = m.requests.WithLabelValues(PassedThrough, "", "")
	m.ESQL = r.counter("akin_esql_searches_total", "ES|QL queries that search for text, which pass unchanged.").WithLabelValues()
	m.requests.WithLabelValues(Rewritten, "", "") // if only hits are reranked
	for _, cause := range known.Causes {
		m.requests.WithLabelValues(FailedOpen, cause, "")
	}
	for _, why := range known.Reasons {
		m.requests.WithLabelValues(Unchanged, why, "")
	}
	m.clauses = r.counter("akin_clauses_total",
		"Fields of text clauses in searches, by outcome; reason says why one was not expanded or was written in a simpler form.", "outcome", "reason")
	m.clauses.WithLabelValues(Rewritten, "")
	for _, why := range reason.All() {
		m.clauses.WithLabelValues(Unchanged, string(why))
		m.clauses.WithLabelValues(Rewritten, string(why))
	}
	m.AddedTerms = r.counter("akin_added_terms_total", "Terms added to searches.").WithLabelValues()
	m.noRow = r.counter("akin_searches_without_row_total",
		"Searches, or requests with several, that have a word of which the matrix has no row.").WithLabelValues()
	// From 50 µs, a search with warm caches, to 7.5 s.
	m.stages = r.times("akin_search_stage_duration_seconds",
		"Time a search spends in akin's own work (expand) and until the cluster's answer begins (upstream), by effort of a rewritten one.", 50e-6, 2.5, "stage", "effort")
	m.stages.WithLabelValues("expand", "")
	m.stages.WithLabelValues("upstream", "")
	for _, e := range expand.Efforts {
		m.requests.WithLabelValues(Rewritten, "", e.String())
		m.stages.WithLabelValues("expand", e.String())
		m.stages.WithLabelValues("upstream", e.String())
	}
}

func (m *Metrics) addClients(r registering) {
	m.Connections = r.NewGaugeVec(prometheus.GaugeOpts{Name: "akin_connections", Help: "Connections of clients that are open."}, []string{"port"})
	ports := []string{"proxy", "admin"}
	for _, port := range ports {
		m.Connections.WithLabelValues(port)
	}
	m.ClosedIdle = r.by("port", ports, "akin_idle_connections_closed_total",
		"Connections that were closed to make room for new ones, since all that are allowed were open: idle ones, and those that a client with more than its share kept waiting.")
	m.Unauthorized = r.counter("akin_unauthorized_requests_total", "Requests without the credentials of listen.auth.").WithLabelValues()
	m.Signatures = r.counter("akin_client_signatures_total",
		"Requests whose client had signed them for Amazon; akin put its own signature in the place of the client's.").WithLabelValues()
	m.LargeHeads = r.counter("akin_large_headers_total", "Requests that were refused since their heads are larger than 64 KiB.").WithLabelValues()
	slow := r.counter("akin_slow_clients_total",
		"Searches aborted because the client was too slow to send the body (answered with 408) or to read a buffered response.", "transfer")
	m.SlowBodies, m.SlowRead = slow.WithLabelValues(SlowBody), slow.WithLabelValues(SlowResponse)
}

// The searches that are compared, values of the label "search".
const (
	ShadowOriginal = "original"
	ShadowExpanded = "expanded"
)

// Outcomes of a search to be shadowed, values of the label "outcome".
const (
	ShadowCompared   = "compared"
	ShadowDropped    = "dropped"     // no slot or memory was free, or the body is too long
	ShadowClientGone = "client_gone" // the client did not read all of the original's answer
	ShadowUnchanged  = "unchanged"   // nothing was added
	ShadowFailed     = "failed"      // the expansion failed or took too long
	ShadowRejected   = "rejected"    // the cluster refused the original or the shadow, in whole or on some shards
	ShadowUnanswered = "unanswered"  // no node answered, or not in time
	ShadowUnreadable = "unreadable"  // an answer is too long or has no hits
)

// ShadowOutcomes are all of them.
var ShadowOutcomes = []string{ShadowCompared, ShadowDropped, ShadowClientGone, ShadowUnchanged, ShadowFailed, ShadowRejected, ShadowUnanswered, ShadowUnreadable}

// shadows compare expanded searches with the original ones.
type shadows struct {
	searches *prometheus.CounterVec // by outcome
	// By search: original or expanded.
	hits, empty *prometheus.CounterVec
	took        *prometheus.HistogramVec
	overlap     prometheus.Observer
}

func (m *shadows) count(s *Shadow) {
	m.searches.WithLabelValues(s.Outcome).Inc()
	if s.Outcome != ShadowCompared {
		return
	}
	for search, answer := range map[string]ShadowAnswer{ShadowOriginal: s.Original, ShadowExpanded: s.Expanded} {
		m.took.WithLabelValues(search).Observe(answer.Took.Seconds())
		m.hits.WithLabelValues(search).Add(float64(answer.Hits))
		if answer.Empty {
			m.empty.WithLabelValues(search).Inc()
		}
	}
	if s.Overlaps {
		m.overlap.Observe(s.Overlap)
	}
}

func (r registering) shadow() shadows {
	both := []string{ShadowOriginal, ShadowExpanded}
	took := r.times("akin_shadow_duration_seconds", "Time until the cluster's answer began.", 1e-3, 2, "search")
	for _, search := range both {
		took.WithLabelValues(search)
	}
	return shadows{
		searches: r.by("outcome", ShadowOutcomes, "akin_shadow_searches_total",
			"Searches chosen to be sent in their expanded form, too (shadow mode), by outcome; all other shadow metrics are of those compared."),
		hits:  r.by("search", both, "akin_shadow_hits_total", "Sum of the total hits that the cluster reported."),
		empty: r.by("search", both, "akin_shadow_empty_pages_total", "Answers without hits."),
		took:  took,
		overlap: r.NewHistogram(prometheus.HistogramOpts{
			Name: "akin_shadow_overlap_at_10", Help: "Share of the first ten hits that the original and the expanded search have in common.",
			Buckets: []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},
		}),
	}
}

// answered counts answers by the first digit of their status, at 0 those that
// broke off, and their time.
type answered struct {
	codes [6]prometheus.Counter
	took  prometheus.Observer
}

// traffic counts clients' requests and the answers.
type traffic struct {
	inFlight      prometheus.Gauge
	search, other answered
}

func (r registering) traffic() (t traffic) {
	t.inFlight = r.NewGauge(prometheus.GaugeOpts{
		Name: "akin_requests_in_flight", Help: "Requests of clients whose answer is not sent to its end.",
	})
	codes := r.counter("akin_responses_total",
		"Answers to clients by kind of request (search, other) and class of status (2xx); aborted ones broke off, as the client or the cluster went away.",
		"kind", "code")
	// From 250 µs to 37 s: a bulk request or a slow client takes long.
	took := r.times("akin_request_duration_seconds",
		"Time from the headers of a client's request until its answer was sent to its end, by kind of request.", 250e-6, 2.5, "kind")
	of := func(kind string) (a answered) {
		for class, code := range []string{"aborted", "1xx", "2xx", "3xx", "4xx", "5xx"} {
			a.codes[class] = codes.WithLabelValues(kind, code)
		}
		a.took = took.WithLabelValues(kind)
		return a
	}
	t.search, t.other = of("search"), of("other")
	return t
}

// Begin counts a new request and returns the time. One call of End must follow.
func (t *traffic) Begin() time.Time {
	t.inFlight.Inc()
	return time.Now()
}

// End counts the answer to a request that began then, status 0 if it broke off.
func (t *traffic) End(began time.Time, search bool, status int) {
	t.inFlight.Dec()
	a := &t.other
	if search {
		a = &t.search
	}
	a.codes[min(status/100, len(a.codes)-1)].Inc()
	a.took.Observe(time.Since(began).Seconds())
}

// A registering creates and registers metrics. It panics if a name is taken.
type registering struct{ promauto.Factory }

func (r registering) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return r.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// by returns a counter with one label and series for the given values.
func (r registering) by(label string, values []string, name, help string) *prometheus.CounterVec {
	c := r.counter(name, help, label)
	for _, value := range values {
		c.WithLabelValues(value)
	}
	return c
}

// times returns a histogram of 14 buckets, from first up by factor.
func (r registering) times(name, help string, first, factor float64, labels ...string) *prometheus.HistogramVec {
	return r.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, factor, 14)}, labels)
}
