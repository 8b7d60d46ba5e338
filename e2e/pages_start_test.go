package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/internal/demo"
)

// pageIndex is the index that pages call docs.
const pageIndex = "docs"

// indexDemoTexts makes the index that the pages speak of. Tests that run at the
// same time share it.
func indexDemoTexts(t *testing.T, e *engine) {
	t.Helper()
	var docs []document
	for _, index := range demo.Indices() {
		for _, d := range demo.Docs(index) {
			docs = append(docs, document{d.ID, section{"title": d.Title, "body": d.Body}})
		}
	}
	e.shareIndex(t, pageIndex, func() {
		e.remakeIndex(t, pageIndex, oneShard(`"title":{"type":"text","analyzer":"english"},"body":{"type":"text","analyzer":"english"}`))
		e.index(t, pageIndex, docs)
	})
}

// TestStartPageRuns does what docs/start.md says.
func TestStartPageRuns(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	indexDemoTexts(t, e)
	p := openPage(t, "start.md", e)
	p.usePort(t, "127.0.0.1:9280")
	p.usePort(t, "127.0.0.1:9281")
	answers := map[string]string{} // by what is new in the script
	for _, script := range p.blocks("sh") {
		if strings.Contains(script, "akin serve") {
			config := readFile(t, filepath.Join(p.dir, "akin.yml"))
			for _, line := range []string{"name: english", "file: english.akin"} {
				if !strings.Contains(config, line) {
					t.Errorf("akin init does not write %s:\n%s", line, config)
				}
			}
			patient := strings.Replace(config, "\nexpansion:\n", "\nexpansion:\n  budget: "+widePatience+"\n", 1)
			a := launch(t, p.write(t, "akin.yml", "shutdown: {delay: 0s}\n"+strings.NewReplacer(p.addresses...).Replace(patient)))
			a.awaitReady(t)
			a.awaitMetric(t, 1, "akin_matrix_info", `="english"`)
			continue
		}
		answer := p.run(t, script)
		for _, what := range []string{"akin init", "matrix show", "akin check", "akin expand", "readyz", "_search", "_akin/expand"} {
			if strings.Contains(script, what) {
				answers[what] = answer
			}
		}
	}
	for what, want := range map[string]string{
		"akin init": "akin matrix build", "matrix show": "  hire  ", "akin check": "ok", "akin expand": "car: ", "readyz": `"status":"ok"`, "_akin/expand": `"rewritten":true`,
	} {
		if !strings.Contains(answers[what], want) {
			t.Errorf("%s prints no %s:\n%s", what, want, answers[what])
		}
	}
	var totals []int
	decoder := json.NewDecoder(strings.NewReader(answers["_search"]))
	for range 2 {
		var answer found
		if err := decoder.Decode(&answer); err != nil {
			t.Fatalf("%v: %s", err, answers["_search"])
		}
		totals = append(totals, answer.Hits.Total.Value)
	}
	if totals[1] <= totals[0] {
		t.Errorf("%d hits without akin, and %d with it", totals[0], totals[1])
	}
}

// TestScoresByHandAreThoseOfTheEngine runs the commands of docs/scoring.md, and
// compares the scores in its last table with those of a real engine.
func TestScoresByHandAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	e := oneEngine(t)
	if !e.scripts { // without which scores are others
		return
	}
	p := openPage(t, "scoring.md", e)
	t.Cleanup(func() { e.dropIndex("by-hand") })
	e.dropIndex("by-hand")
	var pairs strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^    (\w+\t\w+\t[0-9.]+\n)`).FindAllStringSubmatch(p.text, -1) {
		pairs.WriteString(m[1])
	}
	p.write(t, "pairs.tsv", pairs.String())
	for _, script := range p.blocks("sh") {
		p.run(t, script)
	}
	a := setup(t, e, section{"profiles": section{"linear": section{"scoring": "linear"}}, "matrices": matrices("pairs", p.dir+"/pairs.akin")})
	_, table, found := strings.Cut(p.text, "| document | without akin | linear | saturated |\n")
	if !found {
		t.Fatal("the page has no table of scores")
	}
	factor := 1.0
	if e.name == "opensearch3" {
		factor = 2.2 // k1 + 1, which its BM25 lacks, as the page says
	}
	rows := regexp.MustCompile(`(?m)^\| (\d) \| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \|$`).FindAllStringSubmatch(table, -1)
	for column, parameters := range []string{"akin=off", "akin_profile=linear", "akin=explain"} {
		want, got := map[string]string{}, map[string]string{}
		for _, row := range rows {
			if score := row[2+column]; score != "0.0000" {
				want[row[1]] = score
			}
		}
		for id, score := range a.find(t, "by-hand?"+parameters, `{"query":{"match":{"body":"car hire"}}}`).scores() {
			got[id] = fmt.Sprintf("%.4f", score*factor)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-page +engine):\n%s", parameters, diff)
		}
	}
}
