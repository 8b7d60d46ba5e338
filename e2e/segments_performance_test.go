package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

const (
	// segmentsDocs is how many documents the searches for segments are measured on,
	// unless AKIN_BENCH_DOCS says otherwise, and segmentsEach how many segments
	// each has: one generated text.
	segmentsDocs, segmentsEach = 20_000, 5
)

// BenchmarkSegments compares what searches cost that score segments, too, with
// the same searches sent directly, in turn within one run and with warm caches,
// and prints a table. Run it with -benchtime 1x.
func BenchmarkSegments(b *testing.B) {
	docs := segmentsDocs
	if n, err := strconv.Atoi(os.Getenv("AKIN_BENCH_DOCS")); err == nil {
		docs = n
	}
	e := productionEngine(b, qualityEngine)
	e.makeIndex(b, formsIndex, strings.Replace(strings.ReplaceAll(segmentedDefinition, `"type":"text"`, `"type":"text","analyzer":"english"`),
		`{"number_of_shards"`, `{"refresh_interval":"-1","number_of_shards"`, 1))
	g := newTextGenerator(docs * segmentsEach)
	var batch []document
	for n := range docs {
		var texts [segmentsEach]string
		for k := range texts {
			texts[k] = g.text()
		}
		batch = append(batch, paragraphs(strconv.Itoa(n), texts[:]...))
		if len(batch) == 1000 || n == docs-1 {
			e.index(b, formsIndex, batch)
			batch = batch[:0]
		}
	}
	settle(b, e)
	profiles := section{"whole": section{}, "passages": section{"segments": segmentsOf(section{"inner_hits": 1})}}
	for name, settings := range map[string]section{
		"add": {}, "replace": {"combine": "replace"}, "avg": {"aggregate": "avg"}, "first": {"aggregate": "first-heavy"},
	} {
		profiles[name] = section{"segments": segmentsOf(settings)}
	}
	profiles["none"] = section{"segments": segmentsOf(nil), "max_added_terms": 0}
	profiles["query"] = section{"segments": segmentsOf(nil), "phase": "query"}
	profiles["linear"] = section{"segments": segmentsOf(nil), "scoring": "linear"}
	a := setupWide(b, e, section{"profiles": profiles, "matrices": matrices("forms", formsMatrix(b, e))})
	entrants := []entrant{
		{name: "directly", at: e.cluster},
		{name: "whole texts", profile: "whole"},
		{name: "segments, no term added", profile: "none"},
		{name: "`max`, `add`", profile: "add"},
		{name: "the same in phase query", profile: "query"},
		{name: "the same, linear", profile: "linear"},
		{name: "`avg`", profile: "avg"},
		{name: "`first-heavy`", profile: "first"},
		{name: "`replace`", profile: "replace"},
		{name: "with the best passage", profile: "passages"},
	}
	useProfiles(entrants, a)
	for b.Loop() {
		for _, length := range []int{3, 8} {
			texts := g.queries(b, formsQueries, length)
			added := make([]float64, len(entrants))
			for i, c := range entrants {
				for _, text := range texts {
					if c.profile != "" {
						for _, clause := range a.explain(b, formsIndex+"?akin_profile="+c.profile, formsBody(text)).Clauses {
							added[i] += float64(len(clause.Added)) / float64(len(texts))
						}
					}
				}
			}
			fmt.Fprintf(os.Stdout, "\n%d documents with %d segments each\n\n%s", docs, segmentsEach, formsTable(fmt.Sprintf("%d words", length), entrants, added, race(b, e, a, entrants, texts, formsTurns(docs), formsBody)))
		}
	}
}
