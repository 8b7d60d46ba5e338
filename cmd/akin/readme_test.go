package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestREADMELinksEveryPage looks for a link to each page of docs.
func TestREADMELinksEveryPage(t *testing.T) {
	texts := userTexts(t)
	for name := range texts {
		if !slices.Contains([]string{"README.md", "CONTRIBUTING.md"}, name) && !strings.Contains(texts["README.md"], "](docs/"+name+")") {
			t.Errorf("README does not link docs/%s: its table is where readers look for a page", name)
		}
	}
}

// TestFirstScreenOfREADME looks for what a reader should know before anything
// else.
func TestFirstScreenOfREADME(t *testing.T) {
	screen := strings.Join(strings.Split(userTexts(t)["README.md"], "\n")[:60], "\n")
	for _, want := range []string{
		"from your own index", "totals, facets and counts grow", "`matching: same`", "`failing open`", "](docs/playground.png)",
		"make demo\n", "The first run downloads", "compiles", "`make test`", "Maven", "| collection |",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not in the first 60 lines", want)
		}
	}
}

// TestREADMEShowsTheMeasuredGains compares its table with the figures that the
// tests on real servers write.
func TestREADMEShowsTheMeasuredGains(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "e2e", "testdata", "rank_stats.txt"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]string{} // the text of each arm, by engine, collection and arm
	var section string
	for line := range strings.Lines(string(data)) {
		arm, figures, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, " ") {
			measured[section+" "+arm] = figures
		} else {
			section = strings.TrimSpace(line)
		}
	}
	figure := func(key, measure string) (value float64, gain string) {
		m := regexp.MustCompile(regexp.QuoteMeta(measure) + `: ([\d.]+)(?: \((\S+ %))?`).FindStringSubmatch(measured[key])
		if m == nil {
			t.Fatalf("no %s of %s", measure, key)
		}
		_, _ = fmt.Sscan(m[1], &value) // digits and a point
		return value, m[2]
	}
	arms := map[string]string{
		"OpenSearch 2, saturated in a rescore": "opensearch2 %s rescore", "the same with feedback": "opensearch2 %s feedback",
		"Elasticsearch 8, grouped": "elasticsearch8 %s grouped",
	}
	var collection string
	rows := 0
	for line := range strings.Lines(userTexts(t)["README.md"]) {
		cells := strings.Split(line, " | ")
		if len(cells) != 5 || !strings.Contains(line, "→") {
			continue
		}
		rows++
		if name := strings.Fields(cells[0]); len(name) > 1 {
			collection = name[1]
		}
		key := fmt.Sprintf(arms[strings.TrimSpace(cells[1])], collection)
		engine, _, _ := strings.Cut(key, " ")
		for i, measure := range []string{"MAP", "nDCG@10", "recall@100"} {
			before, _ := figure(engine+" "+collection+" direct", measure)
			after, gain := figure(key, measure)
			var shown [2]float64
			var shownGain string
			if _, err := fmt.Sscanf(cells[2+i], "%f → %f (%s", &shown[0], &shown[1], &shownGain); err != nil {
				t.Errorf("%q: %v", cells[2+i], err)
			}
			const half = 0.00051 // of the last digit that is shown
			if math.Abs(shown[0]-before) > half || math.Abs(shown[1]-after) > half || shownGain+" %" != gain {
				t.Errorf("%s, %s: %q, measured %.4f → %.4f (%s)", key, measure, cells[2+i], before, after, gain)
			}
		}
	}
	if rows != 6 {
		t.Errorf("%d rows found", rows)
	}
}
