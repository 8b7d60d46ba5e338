package serve

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/akin-search/akin/expand/soft"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// Matrices and weights may have the same names: they are told apart by the
// names of the metrics.
func TestMetricsOfMatricesAndWeights(t *testing.T) {
	m, err := simmatrix.New(simmatrix.Meta{Source: "test", Docs: 3}, []simmatrix.TermRow{{Term: "car", DocFreq: 1}})
	if err != nil {
		t.Fatal(err)
	}
	store := func() *store.Store {
		s, err := store.Open(t.Context(), store.Options{
			Bindings: []store.Binding{{Name: "m", Indices: []string{"*"}, Fields: []string{"*"}}},
			Files:    map[string]store.Loader{"m": store.InMemory(m)}, CacheBytes: 1 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	r := soft.New(soft.Options{})
	defer r.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{cluster: newCluster(t), store: store(), weights: store(), rerank: r, memory: limits.New(1)})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	got := map[string]bool{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			parts := []string{f.GetName()}
			for _, l := range metric.GetLabel() {
				if l.GetName() != "version" {
					parts = append(parts, l.GetName()+"="+l.GetValue())
				}
			}
			got[strings.Join(parts, " ")] = true
		}
	}
	for _, want := range []string{
		"akin_matrix_source_healthy matrix=m", "akin_weights_source_healthy weights=m", "akin_matrix_terms matrix=m", "akin_weights_terms weights=m",
		"akin_matrix_created_timestamp_seconds matrix=m", "akin_weights_created_timestamp_seconds weights=m",
		"akin_cache_bytes cache=rows", "akin_cache_bytes cache=weights", "akin_rerank_cache_resets_total",
	} {
		if !got[want] {
			t.Errorf("no %s in %v", want, got)
		}
	}
}
