package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

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
	stdout, stderr, status := akin(t, s.compareArgs(demoLog(t), "--judge", pairs)...)
	if status != 0 {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	for _, want := range []string{"30 queries, 30 searches", "overlap@10", "new against direct", "searches that had no hits and get some"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	table := read(t, pairs)
	n := strings.Count(table, "\n") - 1 // but for its head
	if n < 100 || n > 200 || !strings.Contains(stderr, fmt.Sprintf("%d pairs to be judged are in %s", n, pairs)) {
		t.Errorf("%d lines\n%s", n, stderr)
	}
	graded := write(t, "graded.csv", strings.Replace(table, ",\n", ",2\n", 3))
	r := evalJSON(t, []string{"eval", "--cluster", s.engine, "--index", demoIndices, "--template", s.template, "--judgments", graded, "--arm", "direct"})
	if r.LeftOut.Ungraded != n-3 || len(r.Queries) == 0 {
		t.Errorf("%d queries, left out: %+v", len(r.Queries), r.LeftOut)
	}
}

func TestCompareCountsLinesAndQueriesThatCannotBeUsed(t *testing.T) {
	s := newDemoSet(t)
	s.template = write(t, "template.json", `{"query": {"query_string": {"query": "{{query}}", "default_field": "body"}}}`)
	log := write(t, "log.jsonl", `{"query": "couch", "count": 4}`+"\n"+`{"query": "", "count": 2}`+"\n"+`{"query": "(couch", "id": "broken"}`+"\n")
	stdout, stderr, status := akin(t, s.compareArgs(log, "--json")...)
	if status != 0 || !strings.Contains(stderr, "1 lines are left out:\n"+log+`:2: no "query"`) {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	var c evaluate.Comparison
	if err := json.Unmarshal([]byte(stdout), &c); err != nil {
		t.Fatal(err)
	}
	if c.Queries != 1 || c.Searches != 4 || len(c.Refused) != 1 || c.Refused[0] != "broken" {
		t.Errorf("%+v", c)
	}
	_, stderr, status = akin(t, s.compareArgs(write(t, "log.txt", "(couch"))...)
	if status != exitFailure || !strings.Contains(stderr, "the cluster refuses all queries\narm ") {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

func TestCompareGoesOnAfterTheClusterWentAway(t *testing.T) {
	s := newDemoSet(t)
	engine, err := url.Parse(s.engine)
	if err != nil {
		t.Fatal(err)
	}
	var searches atomic.Int64
	shaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_search") && searches.Add(1) > 20 {
			http.Error(w, `{"error": {"type": "no node"}, "status": 503}`, http.StatusServiceUnavailable)
			return
		}
		httputil.NewSingleHostReverseProxy(engine).ServeHTTP(w, r)
	}))
	t.Cleanup(shaky.Close)
	s.engine = shaky.URL
	args := s.compareArgs(demoLog(t), "--resume", filepath.Join(t.TempDir(), "state"))
	stdout, stderr, status := akin(t, args...)
	if status != exitFailure || stdout != "" || !strings.Contains(stderr, "the same command goes on from there") {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	searches.Store(-1 << 30)
	if stdout, stderr, status = akin(t, args...); status != 0 || !strings.Contains(stdout, "30 queries, 30 searches") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

func TestCompareReportsWhatIsWrongWithItsFlags(t *testing.T) {
	log := write(t, "log.txt", "couch\n")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no log":     {nil, "give --log FILE"},
		"one arm":    {[]string{"--log", log}, "give two arms"},
		"three arms": {[]string{"--log", log, "--arm", "a=direct", "--arm", "b=direct", "--arm", "c=direct"}, "give two arms"},
		"no text":    {[]string{"--log", log, "--arm", "a=direct", "--arm", "b=direct", "--judge", "pairs.csv"}, "--title FIELD"},
	} {
		if _, stderr, status := akin(t, append([]string{"compare"}, tt.args...)...); status != exitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: status %d, want %q in\n%s", name, status, tt.want, stderr)
		}
	}
	for _, empty := range []string{"", "\n \n"} {
		_, stderr, status := akin(t, "compare", "--log", write(t, "empty.txt", empty), "--arm", "a=direct", "--arm", "b=direct")
		if status != exitFailure || !strings.Contains(stderr, "empty.txt: ") {
			t.Errorf("an empty log: status %d\n%s", status, stderr)
		}
	}
}
