package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// performanceDoc shows the measures of all rankings on all collections.
const performanceDoc = "../docs/performance.md"

// qualityEngine is the engine on which all rankings are measured.
const qualityEngine = "opensearch2"

// qualityTable writes one measure of every ranking as Markdown: the direct
// search's values, and under them the gains of the rankings in hundredths, with
// their significance. The mean is that of the gains on the collections that
// defaults were chosen on. The suffix is that of the collections' names.
func qualityTable(stats rankStats, suffix string, m int) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| %s%s | ", measureNames[m], map[string]string{threeTermsOnly: ", three terms"}[suffix])
	for _, c := range tunedCollections {
		t.WriteString(c + " | ")
	}
	t.WriteString("mean |")
	for _, c := range heldOutCollections {
		t.WriteString(" *" + c + "* |")
	}
	t.WriteString("\n|" + strings.Repeat("---|", len(tunedCollections)+len(heldOutCollections)+2) + "\n")
	values := func(collections []string, ranking string) {
		for _, c := range collections {
			t.WriteString(stats.cell(rankKey{qualityEngine, c + suffix, ranking}, m))
		}
	}
	t.WriteString("| directly |")
	values(tunedCollections, direct)
	t.WriteString(" |")
	values(heldOutCollections, direct)
	t.WriteString("\n")
	for _, r := range rankings(&engine{engineKind: engineKind{name: qualityEngine, scripts: true}}) {
		fmt.Fprintf(&t, "| %s |", r.title)
		values(tunedCollections, r.name)
		mean, _ := stats.meanGain(qualityEngine, suffix, r.name, m)
		fmt.Fprintf(&t, " %+.2f |", mean)
		values(heldOutCollections, r.name)
		t.WriteString("\n")
	}
	return t.String()
}

// cell writes a measure for a table: of the direct search its value, of others
// the gain over that and its significance.
func (s rankStats) cell(k rankKey, m int) string {
	if k.ranking == direct {
		return fmt.Sprintf(" %.4f |", s[k].all()[m])
	}
	p := strings.TrimPrefix(fmt.Sprintf("%.3f", s[k].P.all()[m]), "0")
	return fmt.Sprintf(" %+.1f (%s) |", s.gain(k, m), strings.Replace(p, ".000", "<.001", 1))
}

func TestPerformanceDocShowsTheAcceptedMeasures(t *testing.T) {
	stats := acceptedStats(t, rankStatsFile)
	for _, suffix := range []string{"", threeTermsOnly} {
		for _, m := range []int{mapMeasure, ndcgMeasure} {
			checkDocShows(t, performanceDoc, rankStatsFile, qualityTable(stats, suffix, m))
		}
	}
}

// acceptedStats reads a file of measures.
func acceptedStats(t *testing.T, file string) rankStats {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := parseRankStats(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return stats
}

// checkDocShows compares a document with a table of the measures of a file.
func checkDocShows(t *testing.T, doc, file, table string) {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), table) {
		t.Errorf("%s lacks this table of %s:\n%s", doc, file, table)
	}
}
