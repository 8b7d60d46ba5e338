package report

import "github.com/prometheus/client_golang/prometheus"

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

// by returns a counter with a label that has at least these values.
func (r *registering) by(label string, values []string, name, help string) *prometheus.CounterVec {
	c := r.counter(name, help, label)
	for _, value := range values {
		c.WithLabelValues(value)
	}
	return c
}

// times returns a histogram of 14 buckets, each factor times the one before.
func (r *registering) times(name, help string, first, factor float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, factor, 14),
	}, labels)
	r.errs = append(r.errs, r.Register(h))
	return h
}
