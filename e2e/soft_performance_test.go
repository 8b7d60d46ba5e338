package e2e

import (
	"fmt"
	"os"
	"testing"
)

// softOnTop is what the mode soft may take longer than the form
// that finds its hits, in seconds.
const softOnTop = 15e-3

// BenchmarkSoft compares what searches cost in the mode soft with the same
// searches in the mode bm25 by the linear form, in turn within one run and
// with warm caches, and prints a table. It does everything once: run it with
// -benchtime 1x.
func BenchmarkSoft(b *testing.B) {
	e := productionEngine(b)
	texts := loadForms(b, e)
	a := startAkin(b, section{
		"cluster": section{"urls": []string{e.url}},
		// A search that runs out of time would go out as it came.
		"expansion": section{"budget": "10s", "rerank_budget": "10s"},
		"profiles": section{
			"linear": section{"scoring": "linear"},
			"fewest": section{"scoring": "linear", "max_added_terms": 8},
			"soft":   section{"mode": "soft"},
		},
		"matrices": []section{{
			"name": "forms", "indices": []string{formsIndex}, "fields": []string{"body"}, "file": formsMatrix(b, e),
		}},
		"caches": section{"vectors": "256MiB"},
	})
	a.awaitMatrix(b, "forms")
	entrants := []entrant{
		{name: "directly", at: e.cluster},
		{name: "linear", profile: "linear", form: "linear", phase: "query"},
		{name: "linear, 8 terms", profile: "fewest", form: "linear", phase: "query"},
		{name: "soft", profile: "soft", form: "linear", phase: "rerank"},
		{name: "what that writes, sent directly", at: e.cluster, bodies: map[string]string{}},
	}
	for i, c := range entrants {
		if c.profile != "" {
			entrants[i].at, entrants[i].parameters = a.cluster, "&akin_profile="+c.profile
		}
	}
	for b.Loop() {
		for _, length := range []int{3, 8} {
			known := texts[length][:formsQueries]
			added := addedTerms(b, a, entrants, known)
			for _, text := range known {
				sent := a.explain(b, formsIndex+"?akin_profile=soft", formsBody(text))
				entrants[len(entrants)-1].bodies[text] = string(sent.Body)
			}
			before := a.metric(b, rerankedMetric, rerankedResult)
			took := race(b, a, entrants, known)
			if n := int(a.metric(b, rerankedMetric, rerankedResult) - before); n != len(known)*(formsWarmups+formsTurns) {
				b.Errorf("%d searches were ordered anew, want all", n)
			}
			fmt.Fprintf(os.Stdout, "\n%s", formsTable(length, entrants, added, took))
			onTop := quantile(took[3], .5) - quantile(took[1], .5)
			fmt.Fprintf(os.Stdout, "\np50 of soft on top of linear: %.2f ms\n", onTop*1e3)
			if onTop > softOnTop {
				b.Errorf("soft takes %.1f ms on top", onTop*1e3)
			}
		}
	}
}
