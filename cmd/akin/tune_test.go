package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/demo"
)

// demoJudgments writes the judged queries of an index of the demo, and returns
// the files.
func demoJudgments(t *testing.T, index string) (queries, judgments string) {
	t.Helper()
	var texts, grades strings.Builder
	grades.WriteString("query-id\tcorpus-id\tscore\n")
	for _, q := range demo.Queries() {
		if q.Index != index {
			continue
		}
		line, err := json.Marshal(map[string]string{"_id": q.ID, "text": q.Text})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&texts, "%s\n", line)
		for id, grade := range q.Judgments {
			fmt.Fprintf(&grades, "%s\t%s\t%d\n", q.ID, id, grade)
		}
	}
	return write(t, "queries.jsonl", texts.String()), write(t, "qrels.tsv", grades.String())
}

// tuneArgs are those of a small run on the demo.
func tuneArgs(t *testing.T, url string) (args []string, out string) {
	t.Helper()
	matrix := filepath.Join(t.TempDir(), "knowledge.akin")
	if _, stderr, status := akin(t, "matrix", "build", "--from-index", url, "--index", "knowledge", "--field", "body", "--dim", "20", "--out", matrix); status != 0 {
		t.Fatal(stderr)
	}
	queries, judgments := demoJudgments(t, "knowledge")
	out = filepath.Join(t.TempDir(), "tuned.yml")
	return []string{
		"tune", "--cluster", url, "--index", "knowledge", "--field", "title", "--field", "body", "--matrix", matrix, "--queries", queries,
		"--judgments", judgments, "--template", write(t, "search.json", `{"query":{"multi_match":{"query":"{{query}}","fields":["title^2","body"]}}}`),
		"--out", out, "--settings", "8", "--folds", "2", "--confidence", "0.05",
	}, out
}

// The confidence is so low that something is recommended.
func TestTuneWritesAProfileThatServes(t *testing.T) {
	args, out := tuneArgs(t, demoEngine(t))
	stdout, stderr, status := akin(t, args...)
	if status != 0 || strings.Contains(stderr, "warning") {
		t.Fatalf("%s\n%s", stdout, stderr)
	}
	for _, want := range []string{"direct search", "the defaults", "queries it was chosen on", "queries held out", "\n2     ", "Recommended: The "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	c, err := configs.Load(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := c.Profiles["tuned"]; !ok || len(c.Matrices) != 1 || p.Matrices[0] != c.Matrices[0].Name {
		t.Fatalf("%+v", c.Profiles)
	}
	if _, err := os.Stat(c.Matrices[0].File); err != nil {
		t.Error(err)
	}
	again, _, _ := akin(t, append(args, "--json")...)
	var first, second map[string]any
	if err := json.Unmarshal([]byte(again), &first); err != nil {
		t.Fatalf("%v\n%s", err, again)
	}
	again, _, _ = akin(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(again), &second); err != nil || fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("another result with the same seed: %v\n%v\n%v", err, first, second)
	}
}

func TestTuneRecommendsNothingWithoutConfidence(t *testing.T) {
	args, out := tuneArgs(t, demoEngine(t))
	stdout, stderr, status := akin(t, append(args, "--confidence", "0.9999999")...)
	if status != 0 || !strings.Contains(stdout, "Recommended: Nothing") {
		t.Errorf("%s\n%s", stdout, stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a profile was written")
	}
}

func TestTuneNamesRelevantDocumentsThatAreNotThere(t *testing.T) {
	args, _ := tuneArgs(t, demoEngine(t))
	judgments := args[14]
	grades, err := os.ReadFile(judgments)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Split(string(grades), "\n")[1]
	more := string(grades) + strings.Split(line, "\t")[0] + "\tgone\t2\n"
	if _, stderr, status := akin(t, append(args, "--judgments", write(t, "more.tsv", more))...); status != 0 || !strings.Contains(stderr, "warning: 1 relevant documents are not in knowledge, and count as not found: gone") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestTuneSaysWhatIsWrong(t *testing.T) {
	engine := demoEngine(t)
	args, _ := tuneArgs(t, engine)
	for name, tt := range map[string]struct {
		args   []string
		want   string
		status int
	}{
		"nothing":           {[]string{"tune"}, "cluster: want http", exitUsage},
		"no index":          {append(args, "--index", ""), "give --index", exitUsage},
		"one fold":          {append(args, "--folds", "1"), "folds: 1 not in [2, 100]", exitUsage},
		"too many folds":    {append(args, "--folds", "50"), "judged queries are too few for 50 folds", exitUsage},
		"no template":       {append(args, "--template", ""), "needs a template", exitUsage},
		"no judgments":      {append(args, "--judgments", write(t, "empty.tsv", "")), "empty.tsv", exitUsage},
		"no such index":     {append(args, "--index", "nowhere"), "nowhere", exitFailure},
		"no such field":     {append(args, "--field", "nothing"), "nothing", exitFailure},
		"the same matrix":   {append(args, "--matrix", args[10]), "--matrix", exitUsage},
		"nobody listens":    {append(args, "--cluster", "http://127.0.0.1:1"), "127.0.0.1:1", exitFailure},
		"over the matrix":   {append(args, "--out", strings.TrimSuffix(args[10], ".akin")+".yml"), "knowledge.akin would be written over", exitUsage},
		"as the matrix":     {append(args, "--out", filepath.Join(t.TempDir(), "tuned.akin")), "name it .yml", exitUsage},
		"a folder, no file": {append(args, "--out", t.TempDir()), "no regular file", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			if _, stderr, status := akin(t, tt.args...); status != tt.status || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, want %d with %q: %s", status, tt.status, tt.want, stderr)
			}
		})
	}
}

// The cluster goes away while its documents are read.
func TestTuneEndsWhereTheClusterGoesAway(t *testing.T) {
	engine := demoEngine(t)
	args, out := tuneArgs(t, engine)
	target, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	var vectors atomic.Int32
	relay := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_mtermvectors" && vectors.Add(1) > 1 {
			http.Error(w, `{"error":{"type":"node_closed_exception","reason":"the node is going away"},"status":500}`, http.StatusInternalServerError)
			return
		}
		relay.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	if _, stderr, status := akin(t, append(args, "--cluster", server.URL)...); status != exitFailure || !strings.Contains(stderr, "going away") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a profile was written")
	}
}
