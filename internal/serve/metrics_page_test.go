package serve

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/simmatrix"
)

// A described metric is what the page and the process say of one.
type described struct {
	Type   string
	Labels []string // sorted
}

// startFully wires an akin that has all there is: matrices and weights from
// files and from a Redis that does not answer, a language model that does not
// either, traces, and a trial.
func startFully(t *testing.T) *App {
	t.Helper()
	cluster := startNode(t, demo.NewEngine())
	var weights strings.Builder
	check.OK(t, simmatrix.Encode(&weights, matrixOf(t, simmatrix.TermRow{Term: "car", DocFreq: 1})))
	all := []string{"*"}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", cluster)
	a, _ := startApp(t, cluster, func(cfg *configs.Config) {
		cfg.Log.Access = true
		cfg.Searches.Collect = true
		cfg.Embeddings.URL, cfg.Embeddings.Model, cfg.Embeddings.Fields = "http://127.0.0.1:1/v1/embeddings", "m", []string{"body"}
		cfg.Redis.URL = configs.NewSecret("redis://127.0.0.1:1")
		cfg.Matrices = append(cfg.Matrices, configs.Matrix{Name: "remote", Indices: all, Fields: all})
		cfg.Weights = []configs.Matrix{{Name: "main", Indices: all, Fields: all, File: written(t, "weights.akin", weights.String())}, {Name: "remote", Indices: all, Fields: all}}
		cfg.Profiles = map[string]configs.Profile{"b": {Enabled: true, Profile: cfg.Expansion.Profile}}
		cfg.Expansion.Trials = []configs.Trial{{Name: "t", Indices: all, Arms: []string{"off", "b"}, Share: 0.1}}
	})
	newReloader("", a, nil, nil, t.Output()) // which has metrics of its own
	return a
}

// gathered returns akin's own metrics of a process, with the values of each
// label. The others are those of the Go library.
func gathered(t *testing.T, a *App) (found map[string]described, values map[string][]string) {
	t.Helper()
	families, err := a.process.registry.Gather()
	check.OK(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	check.That(t, err == nil && len(problems) == 0, "names of metrics: %v, %v", problems, err)
	found, values = map[string]described{}, map[string][]string{}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "akin_") {
			continue
		}
		d := described{Type: strings.ToLower(f.GetType().String()), Labels: []string{}}
		for _, series := range f.GetMetric() {
			for _, l := range series.GetLabel() {
				if !slices.Contains(d.Labels, l.GetName()) {
					d.Labels = append(d.Labels, l.GetName())
				}
				values[f.GetName()+" "+l.GetName()] = append(values[f.GetName()+" "+l.GetName()], l.GetValue())
			}
		}
		slices.Sort(d.Labels)
		found[f.GetName()] = d
	}
	return found, values
}

// typesByName is how the page tells the type of a metric.
const typesByName = "Names that end in `_total` are counters, in `_duration_seconds` and `_overlap_at_10` histograms; the others are gauges."

// typeByName is the type that a reader of the page takes from a name.
func typeByName(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_duration_seconds"), strings.HasSuffix(name, "_overlap_at_10"):
		return "histogram"
	}
	return "gauge"
}

func TestThePageOfMetricsHasThoseOfTheProcess(t *testing.T) {
	found, values := gathered(t, startFully(t))
	for _, want := range [][2]string{
		{"akin_build_info version", "v1"},
		{"akin_cache_bytes cache", "rows"},
		{"akin_cache_bytes cache", "weights"},
		{"akin_matrix_terms matrix", "main"},
		{"akin_weights_terms weights", "main"}, // which may have the same names
	} {
		v := values[want[0]]
		check.That(t, slices.Contains(v, want[1]), "%s is %q, want %s", want[0], v, want[1])
	}
	page := check.Got(os.ReadFile("../../docs/metrics.md"))(t)
	check.That(t, strings.Contains(string(page), typesByName), "docs/metrics.md does not say %q", typesByName)
	documented := map[string]described{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`akin_") {
			continue
		}
		name := strings.Trim(cells[1], " `")
		d := described{Type: typeByName(name), Labels: []string{}}
		for label := range strings.SplitSeq(cells[2], ",") {
			if label = strings.Trim(label, " `"); label != "" {
				d.Labels = append(d.Labels, label)
			}
		}
		slices.Sort(d.Labels)
		documented[name] = d
		check.That(t, len(strings.TrimSpace(cells[3])) >= 10, "no meaning: %s", line)
	}
	check.Equal(t, found, documented, "the process (want) and docs/metrics.md (got) differ")
}
