package e2e

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPairsThatDifferAreJudgedAndEvaluated takes a log of queries through akin
// compare, plays the judge, and has akin eval read what was judged.
func TestPairsThatDifferAreJudgedAndEvaluated(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		template := writeFile(t, "search.json", `{"query":{"match":{"body":"{{query}}"}}}`)
		log := writeFile(t, "log.txt", "car\nboat\ncar\nnothing\n{{query}}\n")
		pairs := filepath.Join(t.TempDir(), "pairs.csv")
		arms := []string{
			"--cluster", e.url, "--index", relatedIndex, "--template", template, "--title", "title",
			"--arm", "direct", "--arm", "akin=matrix:" + relatedFile(t, vectorsA),
		}
		var c struct {
			Searches int
			Overlap  float64 `json:"overlap_at_10"`
			Arms     []struct {
				WithoutHits int `json:"without_hits"`
				FailedOpen  int `json:"failed_open"`
			}
		}
		out := mustAkin(t, slices.Concat([]string{"compare", "--json", "--log", log, "--judge", pairs}, arms)...)
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatal(err)
		}
		if c.Searches != 5 || c.Overlap <= 0 || c.Overlap >= 1 || c.Arms[1].FailedOpen > 0 || c.Arms[0].WithoutHits != 2 {
			t.Errorf("%+v", c)
		}
		fillInGrades(t, pairs)
		var result struct {
			Queries []struct{ ID string }
			Arms    []struct {
				Measures map[string]struct{ Mean float64 }
			}
		}
		out = mustAkin(t, slices.Concat([]string{"eval", "--json", "--judgments", pairs}, arms)...)
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatal(err)
		}
		direct, expanded := result.Arms[0].Measures["nDCG@10"].Mean, result.Arms[1].Measures["nDCG@10"].Mean
		if len(result.Queries) != 2 || direct >= expanded {
			t.Errorf("queries %v, nDCG@10 %.3f directly and %.3f with akin, in\n%s", result.Queries, direct, expanded, out)
		}
	})
}

// fillInGrades gives a grade for each pair: 1 for the words that are related by
// matrix A and 0 for others, all but for one pair.
func fillInGrades(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(rows) < 3 {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, row := range rows[1 : len(rows)-1] {
		if row[4] != "" || row[3] != strings.ReplaceAll(row[2], "-", " ") {
			t.Errorf("row %q", row)
		}
		row[4] = "0"
		if strings.Contains(row[2], map[string]string{"car": "automobile", "boat": "ship"}[row[1]]) {
			row[4] = "1"
		}
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
