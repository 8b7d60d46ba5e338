package nodes

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Kinds of failures, values of the label "kind".
const (
	kindConnect = "connect" // no connection
	kindTLS     = "tls"     // no TLS on the connection
	kindHung    = "hung"    // nothing is answered, not even a ping
	kindBroken  = "broken"  // the connection broke off before an answer
	kindStatus  = "status"  // 502, 503 or 504
)

// Why a request is sent to another node, values of the label "reason".
const (
	retryUnsent     = "unsent"
	retryUnanswered = "unanswered"
	retryHung       = "hung"
)

// metrics are what the pool counts. The label node is the base URL.
type metrics struct{ failures, retries *prometheus.CounterVec }

func newMetrics() *metrics {
	return &metrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_node_failures_total",
			Help: "Failures of nodes by kind: connect, tls, hung (nothing is answered), broken (the connection broke off before an answer), status (502, 503 or 504).",
		}, []string{"node", "kind"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_node_retries_total",
			Help: "Requests sent to another node, by reason: unsent (no connection to the first one came about), and of searches unanswered (it broke off) and hung (it does not answer).",
		}, []string{"reason"}),
	}
}

// register registers the counters.
func (m *metrics) register(r prometheus.Registerer) error {
	for _, reason := range []string{retryUnsent, retryUnanswered, retryHung} {
		m.retries.WithLabelValues(reason)
	}
	return errors.Join(r.Register(m.failures), r.Register(m.retries))
}

// registerNode registers gauges of a node: whether it is up, and how many
// requests are in flight there.
func (m *metrics) registerNode(r prometheus.Registerer, name string, now func() (up bool, inFlight int)) error {
	for _, kind := range []string{kindConnect, kindTLS, kindHung, kindBroken, kindStatus} {
		m.failures.WithLabelValues(name, kind)
	}
	gauge := func(metric, help string, value func() float64) error {
		return r.Register(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: metric, Help: help, ConstLabels: prometheus.Labels{"node": name}}, value))
	}
	return errors.Join(
		gauge("akin_node_up", "1 while a node gets requests, 0 while it is down.", func() float64 {
			if up, _ := now(); up {
				return 1
			}
			return 0
		}),
		gauge("akin_node_requests_in_flight", "Requests that a node has not answered yet.", func() float64 {
			_, inFlight := now()
			return float64(inFlight)
		}))
}
