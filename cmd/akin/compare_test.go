package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/demo"
	"github.com/akin-search/akin/tools/evaluate"
)

// compareArgs returns a command line that compares the cluster with a matrix.
func (s *demoSet) compareArgs(log string, more ...string) []string {
	return append([]string{
		"compare", "--cluster", s.engine, "--index", demoIndices, "--template", s.template, "--log", log, "--title", "title",
		"--arm", "direct", "--arm", "new=matrix:" + s.matrix,
	}, more...)
}

// demoLog is a log of the demo's queries.
func demoLog(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	for _, q := range demo.Queries()[:judgedQueries] {
		lines.WriteString(q.Text + "\n")
	}
	return write(t, "log.txt", lines.String())
}

func TestCompareSaysWhatChangesAndWritesPairsThatEvalReads(t *testing.T) {
	s := newDemoSet(t)
	pairs := filepath.Join(t.TempDir(), "pairs.csv")
	said := ends(t, 0, s.compareArgs(demoLog(t), "--judge", pairs),
		"30 queries, 30 searches", "overlap@10", "new against direct", "searches that had no hits and get some")
	table := read(t, pairs)
	n := strings.Count(table, "\n") - 1 // but for its head
	check.That(t, n >= 100 && n <= 200 && strings.Contains(said, fmt.Sprintf("%d pairs to be judged are in %s", n, pairs)), "%d lines\n%s", n, said)
	graded := write(t, "graded.csv", strings.Replace(table, ",\n", ",2\n", 3))
	r := evalJSON(t, []string{"eval", "--cluster", s.engine, "--index", demoIndices, "--template", s.template, "--judgments", graded, "--arm", "direct"})
	check.That(t, r.LeftOut.Ungraded == n-3 && len(r.Queries) != 0, "%d queries, left out: %+v", len(r.Queries), r.LeftOut)
}

func TestCompareCountsLinesAndQueriesThatCannotBeUsed(t *testing.T) {
	s := newDemoSet(t)
	s.template = write(t, "template.json", `{"query": {"query_string": {"query": "{{query}}", "default_field": "body"}}}`)
	log := write(t, "log.jsonl", `{"query": "couch", "count": 4}`+"\n"+`{"query": "", "count": 2}`+"\n"+`{"query": "(couch", "id": "broken"}`+"\n")
	stdout, stderr, status := akin(t, s.compareArgs(log, "--json")...)
	check.Must(t, status == 0 && strings.Contains(stderr, "1 lines are left out:\n"+log+`:2: no "query"`), "status %d\n%s", status, stderr)
	var c evaluate.Comparison
	check.OK(t, json.Unmarshal([]byte(stdout), &c))
	check.That(t, c.Queries == 1 && c.Searches == 4 && len(c.Refused) == 1 && c.Refused[0] == "broken", "%+v", c)
	ends(t, exitFailure, s.compareArgs(write(t, "log.txt", "(couch")), "the cluster refuses all queries\narm ")
	for _, empty := range []string{"", "\n \n"} {
		ends(t, exitFailure, s.compareArgs(write(t, "empty.txt", empty)), "empty.txt: ")
	}
}
