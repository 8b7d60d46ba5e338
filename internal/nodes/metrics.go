package nodes

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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

func newMetrics(registering promauto.Factory) *metrics {
	m := &metrics{
		failures: registering.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_node_failures_total",
			Help: "Failures of nodes by kind: connect, tls, hung (nothing is answered), broken (the connection broke off before an answer), status (502, 503 or 504).",
		}, []string{"node", "kind"}),
		retries: registering.NewCounterVec(prometheus.CounterOpts{
			Name: "akin_node_retries_total",
			Help: "Requests sent to another node, by reason: unsent (no connection to the first one came about), and of searches unanswered (it broke off) and hung (it does not answer).",
		}, []string{"reason"}),
	}
	for _, reason := range []string{retryUnsent, retryUnanswered, retryHung} {
		m.retries.WithLabelValues(reason)
	}
	return m
}
