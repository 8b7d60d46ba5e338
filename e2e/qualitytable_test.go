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
// search's values, and under them the gains of the rankings in hundredths. The
// mean is that of the gains on the collections that defaults were chosen on.
func qualityTable(stats rankStats, m int) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| %s | ", measureNames[m])
	for _, c := range tunedCollections {
		t.WriteString(c + " | ")
	}
	t.WriteString("mean |")
	for _, c := range heldOutCollections {
		t.WriteString(" *" + c + "* |")
	}
	t.WriteString("\n|" + strings.Repeat("---|", len(tunedCollections)+len(heldOutCollections)+2) + "\n")
	value := func(collection, ranking string) float64 {
		return stats[rankKey{qualityEngine, collection, ranking}].all()[m]
	}
	t.WriteString("| directly |")
	for _, c := range tunedCollections {
		fmt.Fprintf(&t, " %.4f |", value(c, direct))
	}
	t.WriteString(" |")
	for _, c := range heldOutCollections {
		fmt.Fprintf(&t, " %.4f |", value(c, direct))
	}
	t.WriteString("\n")
	for _, r := range rankings(&engine{engineKind: engineKind{name: qualityEngine, scripts: true}}) {
		name := r.form
		if r.form == "saturated" {
			name += ", phase " + r.in
		}
		fmt.Fprintf(&t, "| %s |", name)
		mean := 0.0
		for _, c := range tunedCollections {
			gain := gainOver(value(c, r.name), value(c, direct))
			mean += gain / float64(len(tunedCollections))
			fmt.Fprintf(&t, " %+.1f |", gain)
		}
		fmt.Fprintf(&t, " %+.2f |", mean)
		for _, c := range heldOutCollections {
			fmt.Fprintf(&t, " %+.1f |", gainOver(value(c, r.name), value(c, direct)))
		}
		t.WriteString("\n")
	}
	return t.String()
}

func TestPerformanceDocShowsTheAcceptedMeasures(t *testing.T) {
	text, err := os.ReadFile(rankStatsFile)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := parseRankStats(string(text))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(performanceDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []int{mapMeasure, ndcgMeasure} {
		if table := qualityTable(stats, m); !strings.Contains(string(doc), table) {
			t.Errorf("%s lacks this table of %s:\n%s", performanceDoc, rankStatsFile, table)
		}
	}
}
