package report

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// A registering makes metrics and registers them. It panics where a name is
// taken.
type registering struct{ promauto.Factory }

func (r registering) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return r.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// by returns a counter with a label that has at least these values.
func (r registering) by(label string, values []string, name, help string) *prometheus.CounterVec {
	c := r.counter(name, help, label)
	for _, value := range values {
		c.WithLabelValues(value)
	}
	return c
}

// times returns a histogram of 14 buckets, each factor times the one before.
func (r registering) times(name, help string, first, factor float64, labels ...string) *prometheus.HistogramVec {
	return r.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, factor, 14)}, labels)
}
