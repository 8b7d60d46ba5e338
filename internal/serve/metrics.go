package serve

import (
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/embedding"
	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/searches"
	"github.com/akin-search/akin/simmatrix/store"
)

// A Build identifies an akin; what is unknown is empty.
type Build struct{ Version, Commit, Go string }

// String returns what is known, separated by commas.
func (b Build) String() string {
	parts := []string{b.Version}
	if b.Commit != "" {
		parts = append(parts, "commit "+b.Commit)
	}
	if b.Go != "" {
		parts = append(parts, b.Go)
	}
	return strings.Join(parts, ", ")
}

// shownMetrics are those of the current App, which a reload replaces.
type shownMetrics struct {
	atomic.Pointer[prometheus.Registry]
}

// Describe sends nothing: the next App may have other metrics.
func (*shownMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the values.
func (s *shownMetrics) Collect(ch chan<- prometheus.Metric) { s.Load().Collect(ch) }

// A collector reads the counters of caches and row stores on each scrape.
type collector struct {
	cluster *esclient.Cached
	store   *store.Store // nil for none, like the next two
	weights *store.Store
	rerank  *soft.Reranker
	// embeddings is nil without a language model.
	embeddings *embedding.Reranker
	searches   *searches.Collector // nil if none are collected
	limits     func() []expand.Limit
	memory     *limits.Budget
}

// Describe sends nothing: the metrics depend on the configuration.
func (*collector) Describe(chan<- *prometheus.Desc) {}

// sender sends metrics to a channel. labels alternate names and values.
type sender chan<- prometheus.Metric

func (s sender) gauge(name, help string, value float64, labels ...string) {
	s.send(prometheus.GaugeValue, name, help, value, labels)
}

func (s sender) counter(name, help string, value float64, labels ...string) {
	s.send(prometheus.CounterValue, name, help, value, labels)
}

func (s sender) send(kind prometheus.ValueType, name, help string, value float64, labels []string) {
	var names, values []string
	for k := 0; k < len(labels); k += 2 {
		names, values = append(names, labels[k]), append(values, labels[k+1])
	}
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
}

func (s sender) cache(name string, hits, misses, bytes uint64) {
	s.counter("akin_cache_hits_total", "Look-ups that a cache answered.", float64(hits), "cache", name)
	s.counter("akin_cache_misses_total", "Look-ups that a cache could not answer.", float64(misses), "cache", name)
	s.gauge("akin_cache_bytes", "Memory that a cache uses, approximately.", float64(bytes), "cache", name)
}

// Collect sends the values.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	to := sender(ch)
	for _, kind := range limits.Kinds() {
		s := c.memory.Stats(kind)
		to.gauge("akin_request_memory_bytes", "Memory that requests in flight use.", float64(s.Held), "kind", string(kind))
		to.counter("akin_request_memory_rejections_total", "How often requests asked for more memory than memory.in_flight allows.", float64(s.Refused), "kind", string(kind))
	}
	s := c.cluster.Stats()
	to.cache("analysis", s.Analysis.Hits, s.Analysis.Misses, s.Analysis.Bytes)
	to.cache("statistics", s.Statistics.Hits, s.Statistics.Misses, s.Statistics.Bytes)
	if c.limits != nil {
		to.limits(c.limits())
	}
	if c.searches != nil {
		to.counter("akin_searches_store_failures_total", "Times that texts of searches could not be read from the file or Redis that keeps them, or written there.", float64(c.searches.Failures()))
	}
	if c.rerank != nil {
		s := c.rerank.Stats()
		to.cache("vectors", s.Hits, s.Misses, s.Bytes)
		to.counter("akin_rerank_cache_resets_total",
			"How often the cache of the mode soft was emptied because it had too many different terms.", float64(s.Forgotten))
	}
	if c.embeddings != nil {
		s := c.embeddings.Stats()
		to.cache("embeddings", s.Hits, s.Misses, s.Bytes)
		to.gauge("akin_embeddings_documents", "Documents whose vectors of a language model are in memory.", float64(s.Documents))
		to.gauge("akin_embeddings_waiting_documents", "Documents that searches found and whose vectors are to be made.", float64(s.Waiting))
	}
	if c.store != nil {
		to.store(c.store.Stats(), "rows", "akin_matrix", "akin_row_store", "matrix", "a matrix")
	}
	if c.weights != nil { // the metrics' names tell them apart from matrices of the same name
		to.store(c.weights.Stats(), "weights", "akin_weights", "akin_weights_store", "weights", "term weights")
	}
}

// limits sends the learned limits of the cluster, 0 for none.
func (s sender) limits(all []expand.Limit) {
	least, indices := map[expand.LimitKind]int64{}, map[expand.LimitKind]int{}
	for _, limit := range all {
		if n, ok := least[limit.Kind]; !ok || limit.N < n {
			least[limit.Kind] = limit.N
		}
		indices[limit.Kind]++
	}
	for _, kind := range []expand.LimitKind{expand.LimitClauses, expand.LimitRescore, expand.LimitResults} {
		s.gauge("akin_learned_limit", "The smallest limit of the cluster that is in force, learned from searches that it rejected, by kind of limit.",
			float64(least[kind]), "kind", string(kind))
		s.gauge("akin_learned_limit_indices", "Index expressions whose searches are kept under a learned limit.", float64(indices[kind]), "kind", string(kind))
	}
}

// store sends the metrics of a row store. of and from are prefixes of the names
// of its own metrics and of its source's; label is for a matrix's name.
func (s sender) store(stats store.Stats, cache, of, from, label, what string) {
	s.cache(cache, stats.Cache.Hits, stats.Cache.Misses, stats.Cache.Bytes)
	for _, m := range stats.Matrices {
		s.gauge(of+"_source_healthy", "Whether the source of "+what+" answers and is sound.", one(m.Problem == ""), label, m.Name)
		s.gauge(of+"_terms", "Terms that have a row in the served version.", float64(m.Terms), label, m.Name)
		if m.Version != "" {
			s.gauge(of+"_created_timestamp_seconds", "When the served version was pushed to Redis, or its file written, as Unix time.",
				float64(m.Written.Unix()), label, m.Name)
			s.gauge(of+"_info", "1 for the version of "+what+" that is served.", 1, label, m.Name, "source", m.Source, "version", m.Version)
		}
	}
	if stats.Breaker != "" {
		for _, state := range []string{"closed", "half-open", "open"} {
			s.gauge(from+"_circuit_breaker_state", "1 for the state that the circuit breaker before Redis is in, 0 for the others.",
				one(state == stats.Breaker), "state", state)
		}
		s.counter(from+"_failures_total", "Calls to Redis that failed or were not made because of earlier failures.", float64(stats.Failures))
		s.counter(from+"_bad_rows_total", "Answers of Redis that were not a valid row of neighbors.", float64(stats.BadRows))
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
