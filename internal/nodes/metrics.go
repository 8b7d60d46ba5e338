package nodes

import "github.com/prometheus/client_golang/prometheus"

// metrics are what the pool counts. The label node is the base URL.
type metrics struct {
	failures *prometheus.CounterVec
	retries  *prometheus.CounterVec
}

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

// register registers the metrics, with gauges of these nodes.
func (m *metrics) register(r prometheus.Registerer, nodes []*node) error {
	all := append(make([]prometheus.Collector, 0, 2+2*len(nodes)), m.failures, m.retries)
	for _, n := range nodes {
		label := prometheus.Labels{"node": n.name}
		all = append(all,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "akin_node_up", ConstLabels: label,
				Help: "1 while a node gets requests, 0 while it is down.",
			}, func() float64 {
				if isIn(n) {
					return 1
				}
				return 0
			}),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "akin_node_requests_in_flight", ConstLabels: label,
				Help: "Requests that a node has not answered yet.",
			}, func() float64 { return float64(n.waiting.Load()) }))
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}
