package serve

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/simmatrix"
)

// A described metric is what the page and the process say of one.
type described struct {
	Type   string
	Labels []string // sorted
}

// startFully wires an akin that has all there is: matrices and weights from
// files and from a Redis that does not answer, traces, and a trial.
func startFully(t *testing.T) *App {
	t.Helper()
	cluster := startNode(t, demo.NewEngine())
	var weights strings.Builder
	if err := simmatrix.Encode(&weights, matrixOf(t, simmatrix.TermRow{Term: "car", DocFreq: 1})); err != nil {
		t.Fatal(err)
	}
	all := []string{"*"}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", cluster)
	a, _ := startApp(t, cluster, func(cfg *configs.Config) {
		cfg.Log.Access = true
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
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("names of metrics: %v, %v", problems, err)
	}
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

// The page has every metric of a process that has everything switched on, and
// no other: also before the first request.
func TestThePageOfMetricsHasThoseOfTheProcess(t *testing.T) {
	found, values := gathered(t, startFully(t))
	for _, want := range [][2]string{
		{"akin_build_info version", "v1"},
		{"akin_cache_bytes cache", "rows"},
		{"akin_cache_bytes cache", "weights"},
		{"akin_matrix_terms matrix", "main"},
		{"akin_weights_terms weights", "main"}, // which may have the same names
	} {
		if v := values[want[0]]; !slices.Contains(v, want[1]) {
			t.Errorf("%s is %q, want %s", want[0], v, want[1])
		}
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), typesByName) {
		t.Errorf("docs/metrics.md does not say %q", typesByName)
	}
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
		if len(strings.TrimSpace(cells[3])) < 10 {
			t.Errorf("no meaning: %s", line)
		}
	}
	if diff := cmp.Diff(found, documented); diff != "" {
		t.Errorf("the process and docs/metrics.md differ (-process +page):\n%s", diff)
	}
}
