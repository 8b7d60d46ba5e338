package serve

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/akin-search/akin/e2e/check"
)

// expressions adds those of alerts and panels, and the queries of variables, to
// found.
func expressions(found *[]string, in any) {
	switch v := in.(type) {
	case map[string]any:
		for key, value := range v {
			if text, is := value.(string); is && slices.Contains([]string{"expr", "query"}, key) && strings.Contains(text, "akin_") {
				*found = append(*found, text)
			}
			expressions(found, value)
		}
	case []any:
		for _, value := range v {
			expressions(found, value)
		}
	}
}

// The parser of Prometheus, which is no dependency of akin, reads the same
// expressions in .ci/deploy.
var (
	selector = regexp.MustCompile(`\b(akin_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

func TestDashboardAndAlertsAskForWhatTheProcessHas(t *testing.T) {
	found, values := gathered(t, startFully(t))
	asked := map[string]bool{}
	for _, path := range []string{"grafana/akin.json", "prometheus/alerts.yml"} {
		text := check.Got(os.ReadFile(filepath.Join("../../deploy", path)))(t)
		read := json.Unmarshal
		if strings.HasSuffix(path, ".yml") {
			read = yaml.Unmarshal
		}
		var content any
		check.OK(t, read(text, &content))
		var all []string
		expressions(&all, content)
		check.That(t, len(all) >= 9, "%s has %d expressions", path, len(all))
		for _, e := range all {
			known := []string{"instance", "job"}
			for _, s := range selector.FindAllStringSubmatch(e, -1) {
				name := s[1]
				if _, is := found[name]; !is { // of a histogram
					name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
					known = append(known, "le")
				}
				metric, is := found[name]
				check.That(t, is && (name != s[1]) == (metric.Type == "histogram"), "%s: the process has no %s: %s", path, s[1], e)
				asked[name] = true
				known = append(known, metric.Labels...)
				for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
					label, wanted := m[1], strings.Split(m[3], "|")
					check.That(t, label == "instance" || slices.Contains(metric.Labels, label), "%s: %s has no label %s: %s", path, name, label, e)
					for _, value := range wanted {
						if label != "instance" && !slices.Contains(values[name+" "+label], value) {
							t.Errorf("%s: %s has no series with %s=%q: %s", path, name, label, value, e)
						}
					}
				}
			}
			for _, g := range grouping.FindAllStringSubmatch(e, -1) {
				for label := range strings.SplitSeq(g[1], ", ") {
					check.That(t, slices.Contains(known, label), "%s: nothing has the label %s: %s", path, label, e)
				}
			}
		}
	}
	check.That(t, len(asked) >= 30, "only %d metrics are asked for: %v", len(asked), asked)
}
