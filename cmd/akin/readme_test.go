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

// TestREADMELinksEveryPage looks for a link to each page of docs, and to papers.
func TestREADMELinksEveryPage(t *testing.T) {
	texts := userTexts(t)
	for name := range texts {
		page := "docs/" + name
		if name == filepath.Base(papers) {
			page = papers
		}
		if !slices.Contains([]string{"README.md", "CONTRIBUTING.md"}, name) && !strings.Contains(texts["README.md"], "]("+page+")") {
			t.Errorf("README does not link %s: its table is where readers look for a page", page)
		}
	}
}

// TestFirstScreenOfREADME looks for what a reader should know before anything
// else.
func TestFirstScreenOfREADME(t *testing.T) {
	screen := strings.Join(strings.Split(userTexts(t)["README.md"], "\n")[:64], "\n")
	for _, want := range []string{
		"from your own index", "totals, facets and counts grow", "`matching: same`", "`failing open`", "](docs/playground.png)",
		"make demo\n", "The first run downloads", "compiles", "`make test`", "Maven", "| collection |", "**held out:**", "**What it costs:**", "**Not for you if**",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not in the first 64 lines", want)
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
	var shown []string
	for line := range strings.Lines(userTexts(t)["README.md"]) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !strings.Contains(line, "→") {
			continue
		}
		marked, heldOut := strings.CutPrefix(cells[0], "| **held out:** ")
		collection := strings.Fields(strings.TrimPrefix(marked, "| "))[0]
		shown = append(shown, collection)
		if heldOut != strings.HasPrefix(collection, "semeval_ql") || heldOut && len(shown) > 2 {
			t.Errorf("the collections that had no part in choosing the defaults are to be marked, and to stand first: %s", line)
		}
		for i, measure := range []string{"MAP", "nDCG@10", "recall@100"} {
			before, _ := figure("opensearch2 "+collection+" direct", measure)
			after, gain := figure("opensearch2 "+collection+" rescore", measure)
			var from, to float64
			var by string
			if _, err := fmt.Sscanf(cells[1+i], "%f → %f (%s", &from, &to, &by); err != nil {
				t.Errorf("%q: %v", cells[1+i], err)
			}
			const half = 0.00051 // of the last digit that is shown
			if math.Abs(from-before) > half || math.Abs(to-after) > half || by+" %" != gain {
				t.Errorf("%s: %q, measured %.4f → %.4f (%s)", collection, cells[1+i], before, after, gain)
			}
		}
	}
	var all []string
	for key := range measured {
		if parts := strings.Fields(key); parts[0] == "opensearch2" && parts[2] == "rescore" && !strings.HasSuffix(parts[1], "-three") {
			all = append(all, parts[1])
		}
	}
	if slices.Sort(all); !slices.Equal(slices.Sorted(slices.Values(shown)), all) {
		t.Errorf("README shows %v, measured are %v", shown, all)
	}
	_, whole := figure("opensearch2 semeval_ql-three rescore", "MAP")
	_, titles := figure("opensearch2 semeval_ql-titles-three rescore", "MAP")
	if want := "three rarest words gain more: " + whole + " of MAP on semeval_ql and " + titles + " on semeval_ql-titles"; !strings.Contains(userTexts(t)["README.md"], want) {
		t.Errorf("README does not say %q", want)
	}
}
