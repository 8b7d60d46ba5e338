package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// performanceDoc shows what all rankings gain.
const performanceDoc = "../docs/performance.md"

// qualityEngine is the engine on which all rankings are measured.
const qualityEngine = "opensearch2"

// gainCells writes the gains of a ranking in hundredths, MAP / nDCG@10, as the
// last cells of its row in the document: the means of the collections that
// defaults were chosen on, with whole queries and with three terms, and the
// held-out collections, where significant gains have a star.
func gainCells(stats rankStats, ranking string) string {
	var t strings.Builder
	for _, suffix := range []string{"", threeTermsOnly} {
		precision, _ := stats.meanGain(qualityEngine, suffix, ranking, mapMeasure)
		gain, _ := stats.meanGain(qualityEngine, suffix, ranking, ndcgMeasure)
		fmt.Fprintf(&t, " %+.1f / %+.1f |", precision, gain)
	}
	for _, c := range heldOutCollections {
		k := rankKey{qualityEngine, c, ranking}
		fmt.Fprintf(&t, " %s / %s |", stats.starred(k, mapMeasure), stats.starred(k, ndcgMeasure))
	}
	return t.String()
}

// starred writes a gain, with a star where it is significant.
func (s rankStats) starred(k rankKey, m int) string {
	star := ""
	if s[k].P.all()[m] < .05 {
		star = "*"
	}
	return fmt.Sprintf("%+.1f%s", s.gain(k, m), star)
}

func TestPerformanceDocShowsTheAcceptedMeasures(t *testing.T) {
	stats := acceptedStats(t, rankStatsFile)
	text, err := os.ReadFile(performanceDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rankings(&engine{engineKind: engineKind{name: qualityEngine, scripts: true}}) {
		gains := gainCells(stats, r.name)
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(r.title) + ` \|.*` + regexp.QuoteMeta(gains) + `$`)
		if !row.Match(text) {
			t.Errorf("%s lacks a row %q that ends with these gains of %s:%s", performanceDoc, r.title, rankStatsFile, gains)
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

// checkDocShows compares a document with a table, or a sentence, of the measures
// of a file.
func checkDocShows(t *testing.T, doc, file, table string) {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), table) && !strings.Contains(flat(string(text)), table) {
		t.Errorf("%s lacks this of %s:\n%s", doc, file, table)
	}
}
