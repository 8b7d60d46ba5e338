package server

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/rerank"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// The metrics of the caches and of the row store.
var (
	matrixMetrics  = newStoreMetrics("akin_matrix", "akin_row_store", "matrix", "a matrix")
	weightsMetrics = newStoreMetrics("akin_weights", "akin_weights_store", "weights", "term weights")
	forgotten      = prometheus.NewDesc("akin_rerank_forgotten_total",
		"How often all terms of documents and rows were forgotten, for the mode soft, because they had too many different terms.", nil, nil)
	cacheHits = prometheus.NewDesc("akin_cache_hits_total",
		"Look-ups that a cache answered.", []string{"cache"}, nil)
	cacheMisses = prometheus.NewDesc("akin_cache_misses_total",
		"Look-ups that a cache could not answer.", []string{"cache"}, nil)
	limitLeast = prometheus.NewDesc("akin_learned_limit",
		"The smallest limit that was learnt from refused searches and holds now, by what it is of.", []string{"kind"}, nil)
	limitIndices = prometheus.NewDesc("akin_learned_limit_indices",
		"Index expressions whose searches are kept under such a limit.", []string{"kind"}, nil)
	cacheBytes = prometheus.NewDesc("akin_cache_bytes",
		"Memory that a cache holds, about.", []string{"cache"}, nil)
	heldBytes = prometheus.NewDesc("akin_held_bytes",
		"Memory that is held for requests under way.", []string{"kind"}, nil)
	heldRefused = prometheus.NewDesc("akin_held_refused_total",
		"How often more memory was to be held for requests than may be.", []string{"kind"}, nil)
)

// storeMetrics are those of one row store.
type storeMetrics struct{ info, terms, healthy, failures, bad, breaker *prometheus.Desc }

// newStoreMetrics describes the metrics of a row store of matrices, or of what
// is kept like them. label is the name of the label for the name of one.
func newStoreMetrics(of, store, label, what string) storeMetrics {
	return storeMetrics{
		info: prometheus.NewDesc(of+"_info",
			"1 for the version of "+what+" that is served.", []string{label, "source", "version"}, nil),
		terms: prometheus.NewDesc(of+"_terms",
			"Terms that have a row in the served version.", []string{label}, nil),
		healthy: prometheus.NewDesc(of+"_source_healthy",
			"Whether the source of "+what+" answers and is sound.", []string{label}, nil),
		failures: prometheus.NewDesc(store+"_failures_total",
			"Calls to Redis that failed or were not made because of earlier failures.", nil, nil),
		bad: prometheus.NewDesc(store+"_bad_rows_total",
			"Answers of Redis that were no neighbor row.", nil, nil),
		breaker: prometheus.NewDesc(store+"_breaker",
			"1 for the state of the breaker before Redis.", []string{"state"}, nil),
	}
}

// collect sends what a store tells.
func (d *storeMetrics) collect(ch chan<- prometheus.Metric, s *rowstore.Stats) {
	for _, m := range s.Matrices {
		healthy := 1.0
		if m.Problem != "" {
			healthy = 0
		}
		ch <- prometheus.MustNewConstMetric(d.healthy, prometheus.GaugeValue, healthy, m.Name)
		ch <- prometheus.MustNewConstMetric(d.terms, prometheus.GaugeValue, float64(m.Terms), m.Name)
		if m.Version != "" {
			ch <- prometheus.MustNewConstMetric(d.info, prometheus.GaugeValue, 1, m.Name, m.Source, m.Version)
		}
	}
	if s.Breaker != "" {
		ch <- prometheus.MustNewConstMetric(d.breaker, prometheus.GaugeValue, 1, s.Breaker)
		ch <- prometheus.MustNewConstMetric(d.failures, prometheus.CounterValue, float64(s.Failures))
		ch <- prometheus.MustNewConstMetric(d.bad, prometheus.CounterValue, float64(s.BadRows))
	}
}

// shownMetrics are those of the app that is in use, which a reload replaces.
type shownMetrics struct {
	atomic.Pointer[prometheus.Registry]
}

// Describe sends nothing: the metrics of the next app may be others.
func (*shownMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the values.
func (s *shownMetrics) Collect(ch chan<- prometheus.Metric) { s.Load().Collect(ch) }

// A collector reads the counters of the caches and the row stores when metrics
// are asked for.
type collector struct {
	cluster *esclient.Cached
	store   *rowstore.Store  // nil where there is none
	weights *rowstore.Store  // nil where there is none
	rerank  *rerank.Reranker // nil where there is none
	limits  func() []expand.Limit
	memory  *budget.Budget
}

// Describe sends the descriptions.
func (*collector) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range []storeMetrics{matrixMetrics, weightsMetrics} {
		for _, d := range []*prometheus.Desc{s.info, s.terms, s.healthy, s.failures, s.bad, s.breaker} {
			ch <- d
		}
	}
	for _, d := range []*prometheus.Desc{forgotten, cacheHits, cacheMisses, cacheBytes, limitLeast, limitIndices, heldBytes, heldRefused} {
		ch <- d
	}
}

// Collect sends the values.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	cache := func(name string, hits, misses, bytes float64) {
		ch <- prometheus.MustNewConstMetric(cacheHits, prometheus.CounterValue, hits, name)
		ch <- prometheus.MustNewConstMetric(cacheMisses, prometheus.CounterValue, misses, name)
		ch <- prometheus.MustNewConstMetric(cacheBytes, prometheus.GaugeValue, bytes, name)
	}
	for _, kind := range budget.Kinds() {
		s := c.memory.Stats(kind)
		ch <- prometheus.MustNewConstMetric(heldBytes, prometheus.GaugeValue, float64(s.Held), string(kind))
		ch <- prometheus.MustNewConstMetric(heldRefused, prometheus.CounterValue, float64(s.Refused), string(kind))
	}
	if c.cluster != nil {
		s := c.cluster.Stats()
		cache("analysis", float64(s.Analysis.Hits), float64(s.Analysis.Misses), float64(s.Analysis.Bytes))
		cache("statistics", float64(s.Statistics.Hits), float64(s.Statistics.Misses), float64(s.Statistics.Bytes))
	}
	c.collectLimits(ch)
	if c.rerank != nil {
		s := c.rerank.Stats()
		cache("vectors", float64(s.Hits), float64(s.Misses), float64(s.Bytes))
		ch <- prometheus.MustNewConstMetric(forgotten, prometheus.CounterValue, float64(s.Forgotten))
	}
	for _, of := range []struct {
		store   *rowstore.Store
		cache   string
		metrics *storeMetrics
	}{{c.store, "rows", &matrixMetrics}, {c.weights, "weights", &weightsMetrics}} {
		if of.store == nil {
			continue
		}
		s := of.store.Stats()
		cache(of.cache, float64(s.CacheHits), float64(s.CacheMisses), float64(s.CacheBytes))
		of.metrics.collect(ch, &s)
	}
}

// collectLimits sends what was learnt of the cluster's limits, 0 for nothing.
func (c *collector) collectLimits(ch chan<- prometheus.Metric) {
	if c.limits == nil {
		return
	}
	least, indices := map[expand.LimitKind]int64{}, map[expand.LimitKind]int{}
	for _, limit := range c.limits() {
		if n, ok := least[limit.Kind]; !ok || limit.N < n {
			least[limit.Kind] = limit.N
		}
		indices[limit.Kind]++
	}
	for _, kind := range []expand.LimitKind{expand.LimitClauses, expand.LimitRescore, expand.LimitResults} {
		ch <- prometheus.MustNewConstMetric(limitLeast, prometheus.GaugeValue, float64(least[kind]), string(kind))
		ch <- prometheus.MustNewConstMetric(limitIndices, prometheus.GaugeValue, float64(indices[kind]), string(kind))
	}
}
