package main

import (
	"fmt"
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
		"make demo\n", "The first run downloads", "compiles", "`make test`", "Maven", "**held out**", "engine's time", "operator: and", "**Not for you if**")
}

// readmeShowsASearch looks for a search of the demo in README.
func readmeShowsASearch(t *testing.T, out string) {
	t.Helper()
	readme := userTexts(t)["README.md"]
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
