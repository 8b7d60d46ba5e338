package report

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// BenchmarkTraffic is what counting and timing one request costs.
func BenchmarkTraffic(b *testing.B) {
	m := NewMetrics(prometheus.NewRegistry(), Values{})
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			m.End(m.Begin(), false, 200)
		}
	})
}
