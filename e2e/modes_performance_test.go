package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// modesIndex is an index for all modes: that of the others with what docs/modes.md
// asks for.
const modesIndex = `{"settings":{"number_of_shards":1,"number_of_replicas":0,
		"index.similarity.akin_linear.type":"scripted",
		"index.similarity.akin_linear.script.source":"return query.boost * doc.freq;"},
	"mappings":{"properties":{
		"akin_norm":{"properties":{"body":{"type":"float","index":false}}},
		"akin_norm_weights":{"properties":{"body":{"type":"keyword"}}},
		"akin_soft_norm":{"properties":{"body":{"type":"float","index":false}}},
		"akin_soft_norm_matrix":{"properties":{"body":{"type":"keyword"}}},
		"body":{"type":"text","analyzer":"english","fields":{"akin":{"type":"text","analyzer":"english",
			"similarity":"akin_linear","norms":false,"index_options":"freqs"}}}}}}`

// BenchmarkModes compares what searches cost in each mode with the same searches
// sent directly, in turn within one run and with warm caches, and prints a table.
// It does everything once: run it with -benchtime 1x.
func BenchmarkModes(b *testing.B) {
	e := productionEngine(b, qualityEngine)
	texts := loadForms(b, e, modesIndex, formsDocs, formsQueries)
	short := formsMatrix(b, e, "--top", "30")
	weights := storeFormsNorms(b, e, short)
	a := setupWide(b, e, section{
		"profiles": section{
			"fewest": section{"scoring": "linear", "max_added_terms": 8, "matrices": []string{"forms"}},
			"bm25":   section{"matrices": []string{"forms"}},
			"soft":   section{"mode": "soft", "soft_weight": 1, "matrices": []string{"forms"}},
			"blend":  section{"mode": "soft", "matrices": []string{"forms"}},
			"hard":   section{"mode": "hard", "matrices": []string{"short"}},
			"beside": section{"mode": "softcosine", "soft_weight": 0.15, "matrices": []string{"short"}},
			"exact":  section{"mode": "softcosine", "soft_weight": 1, "matrices": []string{"short"}},
		},
		"matrices": matrices("forms", formsMatrix(b, e), "short", short),
		"weights":  matrices("weights", weights),
		"caches":   section{"size": "640MiB"},
	})
	entrants := []entrant{
		{name: "directly", at: e.cluster},
		{name: "bm25, linear, which finds the hits of soft", profile: "fewest", form: "linear", phase: "query"},
		{name: "bm25", profile: "bm25", form: "saturated", phase: "rescore"},
		{name: "soft", profile: "soft", form: "linear", phase: "rerank"},
		{name: "soft, blended", profile: "blend", form: "linear", phase: "rerank"},
		{name: "hard, rows of 30", profile: "hard", form: "hard", phase: "query"},
		{name: "softcosine", profile: "beside", form: "saturated + softcosine", phase: "rescore"},
		{name: "softcosine alone, rows of 30", profile: "exact", form: "softcosine", phase: "query"},
		{name: "what soft writes, sent directly", at: e.cluster, bodies: map[string]string{}},
	}
	useProfiles(entrants, a)
	for b.Loop() {
		for _, length := range []int{3, 8} {
			known := texts[length][:formsQueries]
			added := addedTerms(b, a, entrants, known, formsBody)
			for _, text := range known {
				sent := a.explain(b, formsIndex+"?akin_profile=soft", formsBody(text))
				entrants[len(entrants)-1].bodies[text] = string(sent.Body)
			}
			took := race(b, e, a, entrants, known, formsTurns(formsDocs), formsBody)
			fmt.Fprintf(os.Stdout, "\n%s", formsTable(fmt.Sprintf("%d words", length), entrants, added, took))
			fmt.Fprintf(os.Stdout, "\np50 of soft on top of the form that finds its hits, of which 15 ms are the aim: %.2f ms\n",
				(quantile(took[3].took, .5)-quantile(took[1].took, .5))*1e3)
		}
	}
}

// storeFormsNorms freezes weights and stores both norms of all documents. It
// returns the file of the weights.
func storeFormsNorms(b *testing.B, e *engine, matrix string) string {
	b.Helper()
	file, target := newPath(b, "weights.akin"), e.of(formsIndex, "body")
	mustAkin(b, append([]string{"index", "norms", "snapshot", "--out", file}, target...)...)
	start := time.Now()
	mustAkin(b, append([]string{"index", "norms", "backfill", "--weights", file, "--matrix", matrix}, target...)...)
	fmt.Fprintf(os.Stdout, "\nakin index norms backfill: %.0f documents a second\n", formsDocs/time.Since(start).Seconds())
	settle(b, e)
	return file
}
