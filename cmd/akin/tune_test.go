package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
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
		fmt.Fprintf(&texts, "{\"_id\": %q, \"text\": %q}\n", q.ID, q.Text)
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
	mustAkin(t, "matrix", "build", "--cluster", url, "--index", "knowledge", "--field", "body", "--out", matrix)
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
	t.Parallel()
	args, out := tuneArgs(t, demoEngine(t))
	if said := ends(t, 0, args, "direct search", "the defaults", "queries it was chosen on", "queries held out", "expanded", " of ", "\n5     ", "Recommended: The ", "On the cluster, all queries: "); strings.Contains(said, "warning") {
		t.Error(said)
	}
	c, err := configs.Load(t.Context(), out)
	check.OK(t, err)
	if p, ok := c.Profiles["tuned"]; !ok || len(c.Matrices) != 1 || p.Matrices[0] != c.Matrices[0].Name || !isThere(c.Matrices[0].File) {
		t.Fatalf("%+v", c.Profiles)
	}
	first := mustAkin(t, append(args, "--json")...)
	times := regexp.MustCompile(`"(direct_)?ms": .*`)
	second := mustAkin(t, append(args, "--json")...)
	if times.ReplaceAllString(first, "") != times.ReplaceAllString(second, "") || !json.Valid([]byte(first)) {
		t.Errorf("another result:\n%s\n%s", first, second)
	}
}

func TestTuneTriesSettingsOnAPartWithTheNumbersOfTheWhole(t *testing.T) {
	t.Parallel()
	args, _ := tuneArgs(t, demoEngine(t))
	args = append(args, "--index", demoIndices, "--settings", "4", "--template", write(t, "s.json", `{"size":10,"query":{"match":{"body":"{{query}}"}}}`))
	said := ends(t, 0, append(args, "--max-docs", "500"), "settings are tried on ", "one of ", "is in the sample of the others", "scores in the part differ")
	check.That(t, !strings.Contains(said, "warning"), "%s", said)
	ends(t, exitFailure, append(args, "--max-docs", "20"), "--max-docs 20: the judged documents and the first hits are ")
}

// Documents have no positions in the engine that settings are tried on, so a
// phrase, which stands for a word here, would be refused there.
func TestTuneTriesSettingsWithoutPhrases(t *testing.T) {
	t.Parallel()
	url := demoEngine(t)
	args, _ := tuneArgs(t, url)
	matrix := filepath.Join(t.TempDir(), "phrases.akin")
	var entries strings.Builder
	entries.WriteString("# akin: exact\n")
	for _, q := range demo.Queries() {
		entries.WriteString(strings.Fields(q.Text)[0] + ", travel document\n")
	}
	mustAkin(t, "matrix", "build", "--cluster", url, "--index", "knowledge", "--field", "body", "--from-thesaurus", write(t, "entries.txt", entries.String()), "--out", matrix)
	said := ends(t, 0, append(args, "--matrix", matrix, "--settings", "4", "--confidence", "0.999999"))
	check.That(t, !strings.Contains(said, "failing open"), "%s", said)
}

func TestASampleStandsForAllDocuments(t *testing.T) {
	const total = 10_000
	whole := map[string]bool{}
	for k := range 100 {
		whole[fmt.Sprint("doc", k)] = true
	}
	p := check.Got(newTunePart(whole, 1000, total))(t)
	kept, stand := 0, 0
	for k := range total {
		if n := p.standsFor(fmt.Sprint("doc", k)); n > 0 {
			kept, stand = kept+1, stand+n
		}
	}
	check.That(t, kept > 800 && kept < 1200 && stand > 8500 && stand < 11500, "%d documents stand for %d", kept, stand)
	check.Equal(t, 1, p.standsFor("doc7"), "a first hit")
	check.Equal(t, 1, (*tunePart)(nil).standsFor("any"), "without a part")
}

func TestTuneSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	args, out := tuneArgs(t, demoEngine(t))
	grades := read(t, args[14])
	query, _, _ := strings.Cut(strings.Split(grades, "\n")[1], "\t")
	var vectors atomic.Int32
	refusing := relayTo(t, demoEngine(t), func(w http.ResponseWriter, r *http.Request) bool { // while its documents are read
		refused := r.URL.Path == "/_mtermvectors" && vectors.Add(1) > 1
		if refused {
			http.Error(w, `{"error":{"type":"security_exception","reason":"this may not be read"},"status":403}`, http.StatusForbidden)
		}
		return refused
	})
	for _, tt := range []struct {
		args   []string
		want   string
		status int
	}{
		{[]string{"--index", ""}, "give --index", exitUsage},
		{[]string{"--template", ""}, "needs a template", exitUsage},
		{[]string{"--judgments", write(t, "empty.tsv", "")}, "empty.tsv", exitUsage},
		{[]string{"--index", "nowhere"}, "nowhere", exitFailure},
		{[]string{"--field", "nothing"}, "nothing", exitFailure},
		{[]string{"--cluster", "http://127.0.0.1:1"}, "127.0.0.1:1", exitFailure},
		{[]string{"--cluster", refusing}, "may not be read", exitFailure},
		{[]string{"--out", args[10]}, "knowledge.akin would be written over", exitUsage},
		{[]string{"--out", t.TempDir()}, "no regular file", exitUsage},
	} {
		ends(t, tt.status, append(args, tt.args...), tt.want)
	}
	if isThere(out) {
		t.Error("a profile was written")
	}
	ends(t, 0, append(args, "--judgments", write(t, "more.tsv", grades+query+"\tgone\t2\n")), "warning: 1 relevant documents are not in knowledge, and count as not found: gone")
}

// However many settings are tried, the cluster is asked the same: for the
// documents once, and for the terms of each query once. Nothing is recommended,
// which the cluster would confirm.
func TestTuneAsksTheClusterOnceForAllSettings(t *testing.T) {
	engine := demoEngine(t)
	args, _ := tuneArgs(t, engine)
	asked := map[string]int{} // by path
	var mu sync.Mutex
	relay := relayTo(t, engine, func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		return false
	})
	var before map[string]int
	for _, settings := range []string{"2", "12"} {
		clear(asked)
		mustAkin(t, append(args, "--cluster", relay, "--settings", settings, "--confidence", "0.999999")...)
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

func TestTuneGoesOnWhereItWasInterrupted(t *testing.T) {
	t.Parallel()
	args, _ := tuneArgs(t, demoEngine(t))
	state := filepath.Join(t.TempDir(), "tune.state")
	args = append(args, "--confidence", "0.999999") // nothing is recommended, which would take some time
	whole := mustAkin(t, append(args, "--json", "--resume", state)...)
	text := read(t, state)
	lines := strings.SplitAfter(strings.TrimSpace(text), "\n")
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
		check.OK(t, os.WriteFile(state, []byte(tt.kept), 0o600))
		if again := mustAkin(t, append(args, "--json", "--resume", state)...); (again == whole) != tt.same {
			t.Errorf("%s: the same: %t\n%s", name, again == whole, again)
		}
	}
}

func TestTuneSaysAtOnceWhatItCannotRank(t *testing.T) {
	args, _ := tuneArgs(t, demoEngine(t))
	relay := answering(t, func(http.ResponseWriter, *http.Request) { t.Error("the cluster was asked") })
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
		ends(t, exitUsage, append(args, "--cluster", relay, "--template", write(t, "search.json", template)), "tune ranks without the cluster, and cannot run", want)
	}
}
