package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/internal/demo"
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
			fmt.Fprintf(&grades, "%s\t%s\t%v\n", q.ID, id, grade)
		}
	}
	return write(t, "queries.jsonl", texts.String()), write(t, "qrels.tsv", grades.String())
}

// tuneArgs are those of a small run on the demo.
func tuneArgs(t *testing.T, url string) (args []string, out string) {
	t.Helper()
	matrix := filepath.Join(t.TempDir(), "knowledge.akin")
	if _, stderr, status := akin(t, "matrix", "build", "--from-index", url, "--index", "knowledge", "--field", "body", "--out", matrix); status != 0 {
		t.Fatal(stderr)
	}
	queries, judgments := demoJudgments(t, "knowledge")
	out = filepath.Join(t.TempDir(), "tuned.yml")
	return []string{
		"tune", "--cluster", url, "--index", "knowledge", "--field", "title", "--field", "body", "--matrix", matrix, "--queries", queries,
		"--judgments", judgments, "--template", write(t, "search.json", `{"query":{"multi_match":{"query":"{{query}}","fields":["title^2","body"]}}}`),
		"--out", out, "--settings", "16", "--confidence", "0.05",
	}, out
}

// The confidence is so low that something is recommended.
func TestTuneWritesAProfileThatServes(t *testing.T) {
	args, out := tuneArgs(t, demoEngine(t))
	stdout, stderr, status := akin(t, args...)
	if status != 0 || strings.Contains(stderr, "warning") {
		t.Fatalf("%s\n%s", stdout, stderr)
	}
	for _, want := range []string{"direct search", "the defaults", "queries it was chosen on", "queries held out", "\n5     ", "Recommended: The "} {
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
		t.Errorf("another result: %v\n%v\n%v", err, first, second)
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
		"no template":       {append(args, "--template", ""), "needs a template", exitUsage},
		"no judgments":      {append(args, "--judgments", write(t, "empty.tsv", "")), "empty.tsv", exitUsage},
		"no such index":     {append(args, "--index", "nowhere"), "nowhere", exitFailure},
		"no such field":     {append(args, "--field", "nothing"), "nothing", exitFailure},
		"nobody listens":    {append(args, "--cluster", "http://127.0.0.1:1"), "127.0.0.1:1", exitFailure},
		"over the matrix":   {append(args, "--out", args[10]), "knowledge.akin would be written over", exitUsage},
		"a folder, no file": {append(args, "--out", t.TempDir()), "no regular file", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			if _, stderr, status := akin(t, tt.args...); status != tt.status || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, want %d with %q: %s", status, tt.status, tt.want, stderr)
			}
		})
	}
}

// relayTo returns the URL of a relay to a cluster, which asks before what
// status to answer a request with instead, 0 for none.
func relayTo(t *testing.T, cluster string, before func(r *http.Request) int) string {
	t.Helper()
	target, err := url.Parse(cluster)
	if err != nil {
		t.Fatal(err)
	}
	relay := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := before(r); status != 0 {
			http.Error(w, `{"error":{"type":"node_closed_exception","reason":"the node is going away"},"status":500}`, status)
			return
		}
		// The server must not close the body under the transport, which would break
		// the answer now and then: akin would ask once more.
		_ = http.NewResponseController(w).EnableFullDuplex()
		relay.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// The cluster goes away while its documents are read.
func TestTuneEndsWhereTheClusterGoesAway(t *testing.T) {
	engine := demoEngine(t)
	args, out := tuneArgs(t, engine)
	var vectors atomic.Int32
	relay := relayTo(t, engine, func(r *http.Request) int {
		if r.URL.Path == "/_mtermvectors" && vectors.Add(1) > 1 {
			return http.StatusInternalServerError
		}
		return 0
	})
	if _, stderr, status := akin(t, append(args, "--cluster", relay)...); status != exitFailure || !strings.Contains(stderr, "going away") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a profile was written")
	}
}

// However many settings are tried, the cluster is asked the same: for the
// documents once, and for the terms of each query once.
func TestTuneAsksTheClusterOnceForAllSettings(t *testing.T) {
	engine := demoEngine(t)
	args, _ := tuneArgs(t, engine)
	asked := map[string]int{} // by path
	var mu sync.Mutex
	relay := relayTo(t, engine, func(r *http.Request) int {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		return 0
	})
	var before map[string]int
	for _, settings := range []string{"2", "12"} {
		clear(asked)
		if stdout, stderr, status := akin(t, append(args, "--cluster", relay, "--settings", settings)...); status != 0 {
			t.Fatalf("%s\n%s", stdout, stderr)
		}
		queries := asked["/knowledge/_analyze"]
		if n := len(demo.Queries()); queries == 0 || queries > 3*n || asked["/_mtermvectors"] == 0 {
			t.Errorf("%d queries: %v", n, asked)
		}
		if diff := cmp.Diff(before, asked); before != nil && diff != "" {
			t.Errorf("%s settings: %s", settings, diff)
		}
		before = maps.Clone(asked)
	}
}

// A run that is interrupted goes on from the scores that it has, and comes to
// the same result; scores of other documents are none of its own.
func TestTuneGoesOnWhereItWasInterrupted(t *testing.T) {
	args, _ := tuneArgs(t, demoEngine(t))
	state := filepath.Join(t.TempDir(), "tune.state")
	whole, stderr, status := akin(t, append(args, "--json", "--resume", state)...)
	if status != 0 {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 6 { // direct search and the settings
		t.Fatalf("%d lines: %s", len(lines), text)
	}
	first, killed := strings.Join(lines[:3], ""), lines[3][:len(lines[3])/2]
	for name, tt := range map[string]struct {
		kept string
		same bool
	}{
		"killed": {first + killed, true},
		// What is known is not computed again.
		"a score that is known":    {regexp.MustCompile(`"score":[\d.e-]+`).ReplaceAllString(first, `"score":0.125`), false},
		"scores of something else": {strings.ReplaceAll(first, `{"key":"`, `{"key":"x`), true},
	} {
		if err := os.WriteFile(state, []byte(tt.kept), 0o600); err != nil {
			t.Fatal(err)
		}
		if again, stderr, status := akin(t, append(args, "--json", "--resume", state)...); status != 0 || (again == whole) != tt.same {
			t.Errorf("%s: status %d, the same: %t\n%s%s", name, status, again == whole, stderr, again)
		}
	}
}

// What the embedded engine cannot rank is an error before a document is read.
func TestTuneSaysAtOnceWhatItCannotRank(t *testing.T) {
	engine := demoEngine(t)
	args, _ := tuneArgs(t, engine)
	relay := relayTo(t, engine, func(*http.Request) int {
		t.Error("the cluster was asked")
		return http.StatusInternalServerError
	})
	for template, want := range map[string]string{
		`{"query":{"multi_match":{"query":"{{query}}","fields":["title","body"],"type":"cross_fields"}}}`:              "type [cross_fields]",
		`{"query":{"combined_fields":{"query":"{{query}}","fields":["title","body"]}}}`:                                "unknown query [combined_fields]",
		`{"query":{"match_phrase":{"body":"{{query}}"}}}`:                                                              "unknown query [match_phrase]",
		`{"query":{"match":{"body":{"query":"{{query}}","fuzziness":"AUTO"}}}}`:                                        "[match] query does not support [fuzziness]",
		`{"query":{"match":{"body":{"query":"{{query}}","analyzer":"standard"}}}}`:                                     "[match] query does not support [analyzer]",
		`{"query":{"nested":{"path":"a","query":{"match":{"a.b":"{{query}}"}}}}}`:                                      "unknown query [nested]",
		`{"query":{"function_score":{"query":{"match":{"body":"{{query}}"}},"field_value_factor":{"field":"likes"}}}}`: "[field_value_factor]",
		`{"query":{"query_string":{"query":"{{query}} AND car","fields":["body"]}}}`:                                   "operators in a query string",
		`{"query":{"match":{"abstract":"{{query}}"}}}`:                                                                 "field [abstract]",
		`{"query":{"match":{"body":"{{query}}"}},"sort":["date"]}`:                                                     "sort by [date]",
		`{"query":{"match":{"body":"{{query}}"}},"aggs":{"a":{"terms":{"field":"tag"}}}}`:                              "[aggs]",
	} {
		_, stderr, status := akin(t, append(args, "--cluster", relay, "--template", write(t, "search.json", template))...)
		if status != exitUsage || !strings.Contains(stderr, "tune ranks without the cluster, and cannot run") || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, want %q in %s", template, status, want, stderr)
		}
	}
}

// What akin tune takes for 200 settings on the collection cran, the documents
// read once, in settings for each ten minutes on the processors that it has.
func BenchmarkTuneSettings(b *testing.B) {
	server := httptest.NewServer(demo.NewEngine())
	b.Cleanup(server.Close)
	loadCranfield(b, server.URL, "cran")
	dir := b.TempDir()
	matrix := filepath.Join(dir, "cran.akin")
	if _, stderr, status := akin(b, "matrix", "build", "--from-index", server.URL, "--index", "cran", "--field", "body", "--out", matrix); status != 0 {
		b.Fatal(stderr)
	}
	const settings = 200
	for b.Loop() {
		stdout, stderr, status := akin(b, "tune", "--cluster", server.URL, "--index", "cran", "--field", "body", "--matrix", matrix,
			"--template", write(b, "search.json", `{"query":{"match":{"body":"{{query}}"}}}`), "--queries", cranfieldFile(b, "queries.jsonl"),
			"--judgments", cranfieldFile(b, "qrels.tsv"), "--settings", strconv.Itoa(settings), "--out", filepath.Join(dir, "tuned.yml"))
		if status != 0 {
			b.Fatalf("%s\n%s", stdout, stderr)
		}
		b.Log(stdout)
	}
	b.ReportMetric(settings*float64(b.N)*600/b.Elapsed().Seconds(), "settings/10min")
}
