package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// BenchmarkExpressions compares what searches with one recognized expression
// cost with the same searches without it, in each effort, and prints tables of
// ratios to these. Run it with -benchtime 1x.
func BenchmarkExpressions(b *testing.B) {
	const docs = 200_000
	e := productionEngine(b, qualityEngine)
	texts := loadForms(b, e, formsDefinition, docs, 2*formsQueries)
	var synonyms strings.Builder
	synonyms.WriteString("# akin: exact\n")
	known := map[int][]string{}
	for _, words := range []int{3, 8} {
		known[words] = texts[words][:formsQueries]
		for k, text := range known[words] { // two words of the text, and two of another
			own, other := strings.Fields(text), strings.Fields(texts[words][formsQueries+k])
			fmt.Fprintf(&synonyms, "%s %s => %s %s\n", own[0], own[1], other[0], other[1])
		}
	}
	thesaurus := filepath.Join(b.TempDir(), "synonyms.akin") // sources differ in name
	if err := os.Rename(build(b, append([]string{"--from-thesaurus", writeFile(b, "synonyms.txt", synonyms.String())}, e.of(formsIndex, "body")...)...), thesaurus); err != nil {
		b.Fatal(err)
	}
	config := section{"profiles": section{}, "matrices": []section{{
		"name": "forms", "indices": []string{formsIndex}, "fields": []string{"body"},
		"file": build(b, "--from-matrices", formsMatrix(b, e)+","+thesaurus),
	}}}
	var entrants [][]entrant
	for _, effort := range []struct{ name, form, phase string }{{"low", "linear", "query"}, {"normal", "saturated", "rescore"}, {"high", "saturated", "rescore"}} {
		profiles, _ := config["profiles"].(section)
		profiles[effort.name], profiles[effort.name+"_without"] = section{"effort": effort.name}, section{"effort": effort.name, "expressions": false}
		entrants = append(entrants, []entrant{
			{name: "effort " + effort.name + ", without the expression", profile: effort.name + "_without", form: effort.form, phase: effort.phase},
			{name: "with it", profile: effort.name, form: effort.form, phase: effort.phase},
		})
	}
	a := setupWide(b, e, config)
	for b.Loop() {
		for _, words := range []int{3, 8} {
			for _, of := range entrants {
				of = slices.Clone(of)
				useProfiles(of, a)
				fmt.Fprintf(os.Stdout, "\n%s", formsTable(fmt.Sprintf("%d words, %d documents", words, docs), of,
					addedTerms(b, a, of, known[words], formsBody), race(b, e, a, of, known[words], formsTurns(docs), formsBody)))
			}
		}
	}
}
