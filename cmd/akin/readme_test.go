package main

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

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
	contains(t, "the first 64 lines", screen,
		"from your own index", "totals, facets and counts grow", "`matching: same`", "`failing open`", "](docs/playground.png)",
		"make demo\n", "The first run downloads", "compiles", "`make test`", "Maven", "| collection |", "**held out:**", "| price: ", "**Not for you if**")
}

// TestREADMEShowsTheMeasuredGains compares its table with the figures that the
// tests on real servers write.
func TestREADMEShowsTheMeasuredGains(t *testing.T) {
	measured := map[string]string{} // the text of each arm, by engine, collection and arm
	var section string
	for line := range strings.Lines(read(t, filepath.Join(root, "e2e", "testdata", "rank_stats.txt"))) {
		arm, figures, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, " ") {
			measured[section+" "+arm] = figures
		} else {
			section = strings.TrimSpace(line)
		}
	}
	figure := func(key, measure string) (value, p float64, gain string) {
		m := regexp.MustCompile(regexp.QuoteMeta(measure) + `: ([\d.]+)(?: \((\S+ %), p ([\d.]+))?`).FindStringSubmatch(measured[key])
		check.Must(t, m != nil, "no %s of %s", measure, key)
		_, _ = fmt.Sscan(m[1], &value) // digits and a point
		_, _ = fmt.Sscan(m[3], &p)
		return value, p, m[2]
	}
	var shown []string
	for line := range strings.Lines(userTexts(t)["README.md"]) {
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), " |"), " | ")
		if len(cells) != 7 || !strings.Contains(line, "→") {
			continue
		}
		marked, heldOut := strings.CutPrefix(cells[0], "| **held out:** ")
		collection := strings.Fields(strings.TrimPrefix(marked, "| "))[0]
		shown = append(shown, collection)
		if heldOut != strings.HasPrefix(collection, "semeval_ql") || heldOut && len(shown) > 2 {
			t.Errorf("the collections that had no part in choosing the defaults are to be marked, and to stand first: %s", line)
		}
		for i, column := range []struct{ queries, measure string }{{"", "MAP"}, {"", "nDCG@10"}, {"", "recall@100"}, {"-three", "MAP"}} {
			before, _, _ := figure("opensearch2 "+collection+column.queries+" direct", column.measure)
			after, p, gain := figure("opensearch2 "+collection+column.queries+" rescore", column.measure)
			cell, significant := strings.CutSuffix(cells[1+i], "*")
			var from, to float64
			var by string
			if _, err := fmt.Sscanf(cell, "%f → %f (%s", &from, &to, &by); err != nil {
				t.Errorf("%q: %v", cell, err)
			}
			const half = 0.00051 // of the last digit that is shown
			if math.Abs(from-before) > half || math.Abs(to-after) > half || by+" %" != gain || significant != (p < .05) {
				t.Errorf("%s: %q, measured %.4f → %.4f (%s), p %.4f", collection, cells[1+i], before, after, gain, p)
			}
		}
	}
	var all []string // docs/matrices.md has product search and the collections in one index
	for key := range measured {
		if parts := strings.Fields(key); parts[0] == "opensearch2" && parts[2] == "rescore" && !strings.HasSuffix(parts[1], "-three") &&
			parts[1] != "crowdflower" && !strings.HasPrefix(parts[1], "mixed-") {
			all = append(all, parts[1])
		}
	}
	if slices.Sort(all); !slices.Equal(slices.Sorted(slices.Values(shown)), all) {
		t.Errorf("README shows %v, measured are %v", shown, all)
	}
}

func TestREADMEShowsASearchOfTheDemo(t *testing.T) {
	t.Parallel()
	out, readme := startDemo(t).String(), userTexts(t)["README.md"]
	servers := regexp.MustCompile(`curl -s '(http://[\d.:]+)/catalogue/_search`).FindAllStringSubmatch(out, -1)
	check.Must(t, len(servers) == 3, "the demo prints %q", servers)
	const query = `{"query":{"multi_match":{"query":"nappies for a newborn","fields":["title","body"]}}}`
	direct, same := find(t, servers[0][1]+"/catalogue/_search", query), find(t, servers[1][1]+"/catalogue/_search?akin_profile=same", query)
	var table strings.Builder
	fmt.Fprintf(&table, "| | without akin, %d hits | with akin, %d hits |\n|---|---|---|\n", direct.Hits.Total.Value, same.Hits.Total.Value)
	for i := range 3 {
		fmt.Fprintf(&table, "| %d | %s | %s |\n", i+1, direct.Hits.Hits[i].Source.Title, same.Hits.Hits[i].Source.Title)
	}
	if !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(readme, "| **", "| "), "** |", " |"), table.String()) {
		t.Errorf("README does not show\n%s", &table)
	}
	contains(t, "README", readme, fmt.Sprintf("here to %d hits", total(t, servers[1][1]+"/catalogue/_search", query)))
}
