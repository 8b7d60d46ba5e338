package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/rerank"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

// The metrics of the caches and of the row store.
var (
	matrixInfo = prometheus.NewDesc("akin_matrix_info",
		"1 for the version of a matrix that is served.", []string{"matrix", "source", "version"}, nil)
	matrixTerms = prometheus.NewDesc("akin_matrix_terms",
		"Terms that have a row in the served version.", []string{"matrix"}, nil)
	matrixHealthy = prometheus.NewDesc("akin_matrix_source_healthy",
		"Whether the source of a matrix answers and is sound.", []string{"matrix"}, nil)
	rowFailures = prometheus.NewDesc("akin_row_store_failures_total",
		"Calls to Redis that failed or were not made because of earlier failures.", nil, nil)
	rowBad = prometheus.NewDesc("akin_row_store_bad_rows_total",
		"Answers of Redis that were no neighbor row.", nil, nil)
	rowBreaker = prometheus.NewDesc("akin_row_store_breaker",
		"1 for the state of the breaker before Redis.", []string{"state"}, nil)
	cacheHits = prometheus.NewDesc("akin_cache_hits_total",
		"Look-ups that a cache answered.", []string{"cache"}, nil)
	cacheMisses = prometheus.NewDesc("akin_cache_misses_total",
		"Look-ups that a cache could not answer.", []string{"cache"}, nil)
	cacheBytes = prometheus.NewDesc("akin_cache_bytes",
		"Memory that a cache holds, about.", []string{"cache"}, nil)
)

// A collector reads the counters of the caches and the row store when metrics
// are asked for.
type collector struct {
	cluster *esclient.Cached
	store   *rowstore.Store  // nil where there is none
	rerank  *rerank.Reranker // nil where there is none
}

// Describe sends the descriptions.
func (*collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		matrixInfo, matrixTerms, matrixHealthy, rowFailures, rowBad, rowBreaker, cacheHits, cacheMisses, cacheBytes,
	} {
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
	if c.cluster != nil {
		s := c.cluster.Stats()
		cache("analysis", float64(s.Analysis.Hits), float64(s.Analysis.Misses), float64(s.Analysis.Bytes))
		cache("statistics", float64(s.Statistics.Hits), float64(s.Statistics.Misses), float64(s.Statistics.Bytes))
	}
	if c.rerank != nil {
		s := c.rerank.Stats()
		cache("vectors", float64(s.Hits), float64(s.Misses), float64(s.Bytes))
	}
	if c.store == nil {
		return
	}
	s := c.store.Stats()
	cache("rows", float64(s.CacheHits), float64(s.CacheMisses), float64(s.CacheBytes))
	for _, m := range s.Matrices {
		healthy := 1.0
		if m.Problem != "" {
			healthy = 0
		}
		ch <- prometheus.MustNewConstMetric(matrixHealthy, prometheus.GaugeValue, healthy, m.Name)
		ch <- prometheus.MustNewConstMetric(matrixTerms, prometheus.GaugeValue, float64(m.Terms), m.Name)
		if m.Version != "" {
			ch <- prometheus.MustNewConstMetric(matrixInfo, prometheus.GaugeValue, 1, m.Name, m.Source, m.Version)
		}
	}
	if s.Breaker != "" {
		ch <- prometheus.MustNewConstMetric(rowBreaker, prometheus.GaugeValue, 1, s.Breaker)
		ch <- prometheus.MustNewConstMetric(rowFailures, prometheus.CounterValue, float64(s.Failures))
		ch <- prometheus.MustNewConstMetric(rowBad, prometheus.CounterValue, float64(s.BadRows))
	}
}
