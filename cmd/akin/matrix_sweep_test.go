package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/tools/evaluate"
)

// A sweepSet has the judged queries of one index of the demo.
type sweepSet struct{ engine, queries, judgments, template string }

const sweptIndex = "knowledge"

func newSweepSet(t *testing.T) *sweepSet {
	t.Helper()
	queries, judgments := demoJudgments(t, sweptIndex)
	return &sweepSet{demoEngine(t), queries, judgments, write(t, "template.json", `{"query": {"multi_match": {"query": "{{query}}", "fields": ["title", "body"]}}}`)}
}

// args returns a command line that sweeps, with more at its end.
func (s *sweepSet) args(more ...string) []string {
	return append([]string{
		"matrix", "sweep", "--cluster", s.engine, "--index", sweptIndex, "--queries", s.queries, "--judgments", s.judgments, "--template", s.template,
	}, more...)
}

// few are flags of a small grid.
var few = []string{"--field", "body", "--neighbors", "30,200", "--min-similarity", "0.1", "--power", "1"}

// A matrix of a sweep is the one that the flags it is named by build.
func TestSweepMeasuresTheMatricesThatBuildMakes(t *testing.T) {
	t.Parallel()
	s := newSweepSet(t)
	vectors := []string{"--embeddings", "file:" + wordVectors(t)}
	var r evaluate.SweepResult
	check.OK(t, json.Unmarshal([]byte(mustAkin(t, append(s.args(slices.Concat(few, vectors)...), "--embedding-share", "0,0.7", "--json")...)), &r))
	var names []string
	for _, m := range r.Matrices {
		names = append(names, m.String())
		args := []string{"matrix", "build", "--cluster", s.engine, "--index", sweptIndex, "--field", "body", "--out", filepath.Join(t.TempDir(), "m.akin")}
		if m.Flags() != "--language-model none" {
			args = append(args, vectors...)
		}
		if m.Factor != "" {
			args = append(args, strings.Fields(m.Flags())...)
		}
		mustAkin(t, args...)
		info, err := os.Stat(args[9])
		check.OK(t, err)
		check.Equal(t, info.Size(), m.Bytes, m.String())
		if m.Factor != evaluate.FactorPower {
			continue
		}
		byEval := evalJSON(t, []string{"eval", "--cluster", s.engine, "--index", sweptIndex, "--queries", s.queries, "--judgments", s.judgments, "--template", s.template, "--arm", "direct", "--arm", "m=matrix:" + args[9] + ",mode=bm25", "--measures", evaluate.SweptMeasure})
		check.Equal(t, byEval.Arms[1].Measures[evaluate.SweptMeasure].Mean, m.NDCG.Mean)
		check.Equal(t, byEval.Arms[0].Measures[evaluate.SweptMeasure].Mean, r.Direct)
		check.Equal(t, *byEval.Arms[1].AddedTerms, m.AddedTerms)
	}
	check.Equal(t, []string{"the default", "neighbors 30", "min-similarity 0.1", "power 1", "embedding-share 0", "embedding-share 0.7"}, names)
}

func TestSweepTakesClusterIndexAndFieldsFromTheConfiguration(t *testing.T) {
	s := newSweepSet(t)
	t.Chdir(t.TempDir())
	config := fmt.Sprintf("cluster: {urls: [%q]}\nmatrices: [{name: docs, indices: [%s], fields: [body], file: docs.akin}]\n", s.engine, sweptIndex)
	check.OK(t, os.WriteFile(cli.UsualConfig, []byte(config), 0o600))
	args := []string{"matrix", "sweep", "--queries", s.queries, "--judgments", s.judgments, "--template", s.template, "--language-model", "none"}
	ends(t, 0, append(args, "--neighbors", "30", "--min-similarity", "0", "--power", "3"), "neighbors 30")
	ends(t, exitUsage, append(args, "--name", "other"), `no matrix "other"`)
}

// wordVectors writes vectors of the words of the demo, by their letters.
func wordVectors(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	said := mustAkin(t, "matrix", "export", "--out", "-", demoMatrix(t))
	seen := map[string]bool{}
	for line := range strings.Lines(said) {
		word, _, _ := strings.Cut(line, "\t")
		if seen[word] || strings.Contains(word, " ") {
			continue
		}
		seen[word] = true
		counts := make([]int, 26)
		for k, letter := range strings.ToLower(word) {
			if letter >= 'a' && letter <= 'z' {
				counts[letter-'a'] += 3 + k
			}
		}
		lines.WriteString(word)
		for _, n := range counts {
			lines.WriteString(" " + strconv.Itoa(n))
		}
		lines.WriteString("\n")
	}
	return write(t, "vectors.txt", lines.String())
}

func TestSweepPrintsATableAndWritesAPage(t *testing.T) {
	t.Parallel()
	s := newSweepSet(t)
	first, _, _ := strings.Cut(strings.Split(read(t, s.judgments), "\n")[1], "\t")
	s.judgments = write(t, "qrels.tsv", read(t, s.judgments)+first+"\tnowhere\t1\n")
	page := filepath.Join(t.TempDir(), "sweep.html")
	said := ends(t, 0, s.args(append(few, "--report", page)...), "4 matrices, each with ", " searches, and as many direct ones in turn", "direct search", "the default", "neighbors 30",
		"\nTake ", " judged queries are few", `1 judged documents are not in the index, and count as not found: "nowhere"`)
	check.That(t, strings.Index(said, "up to 4 matrices") < strings.Index(said, "reading documents"), "how much there is to do is said late: %s", said)
	contains(t, "the page", read(t, page), "<title>akin: a sweep of 4 matrices</title>", "data:image/svg")
}

// The documents are read once, and each matrix has each search once, after one
// to warm up.
func TestSweepAsksTheClusterAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	s := newSweepSet(t)
	asked := map[string]int{} // by path
	var mu sync.Mutex
	relay := relayTo(t, s.engine, func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[r.Method+" "+r.URL.Path]++
		return false
	})
	s.engine = relay
	count := func(neighbors string) (searches int) {
		clear(asked)
		mustAkin(t, s.args("--field", "body", "--neighbors", neighbors, "--min-similarity", "0", "--power", "3", "--language-model", "none")...)
		return asked["POST /"+sweptIndex+"/_search"]
	}
	queries, own := strings.Count(read(t, s.queries), "\n"), 10 // akin asks how the field scores
	more := count("10,30") - count("30")
	check.That(t, more >= 2*(queries+1) && more <= 2*(queries+1)+own, "%d searches for one more matrix and %d queries", more, queries)
}

func TestSweepSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newSweepSet(t)
	first, _, _ := strings.Cut(strings.Split(read(t, s.judgments), "\n")[1], "\t")
	unread := &sweepSet{answering(t, func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the cluster is asked for %s", r.URL.Path)
		http.Error(w, "{}", http.StatusInternalServerError)
	}), s.queries, s.judgments, s.template}
	for _, test := range []struct {
		set    *sweepSet
		args   []string
		want   string
		status int
	}{
		{unread, []string{"--field", "body", "--neighbors", "200", "--min-similarity", "0", "--power", "3"}, "there is only the default to try", exitUsage},
		{unread, []string{"--field", "body", "--min-similarity", "10%"}, "--min-similarity", exitUsage},
		{unread, []string{"--field", "body", "--min-similarity", "NaN", "--power", "0", "--neighbors", "0"}, "--power: 0 not in", exitUsage},
		{unread, []string{"--field", "body", "--min-similarity", "NaN"}, "--min-similarity: NaN not in [0, 1)", exitUsage},
		{unread, []string{"--field", "body", "--embedding-share", "0.5"}, "--embedding-share needs --embeddings", exitUsage},
		{unread, []string{"--field", "body", "--embedding-model", "x"}, "--embedding-model needs --embeddings", exitUsage},
		{unread, []string{"--field", ""}, "--field is empty", exitUsage},
		{unread, []string{"--field", "body", "--index", ""}, "give --cluster, --index and --field", exitUsage},
		{unread, []string{"--field", "body", "--words", "--exact-analysis"}, "--words does not go with --exact-analysis", exitUsage},
		{unread, []string{"--field", "body", "--max-memory", "3"}, "--max-memory", exitUsage},
		{unread, []string{"--field", "body", "--report", t.TempDir()}, "no regular file", exitUsage},
		{unread, []string{"--field", "body", "--template", ""}, "--template is empty", exitUsage},
		{unread, []string{"--field", "body", "--template", write(t, "few.json", `{"size": 5, "query": {"match": {"body": "{{query}}"}}}`)}, "nDCG@10 looks at 10 hits, and the search asks for 5", exitUsage},
		{unread, []string{"--field", "body", "--judgments", write(t, "others.tsv", "query-id\tcorpus-id\tscore\nz1\thelp-001\t1\n")}, "none of the judgments is of a query", exitFailure},
		{unread, []string{"--field", "body", "--judgments", write(t, "zero.tsv", "query-id\tcorpus-id\tscore\n"+first+"\tx\t0\n")}, "no judged document is relevant", exitUsage},
		{unread, []string{"--field", "body", "--judgments", write(t, "nan.tsv", "query-id\tcorpus-id\tscore\n"+first+"\tx\tNaN\n")}, "nan.tsv:2", exitFailure},
		{s, []string{"--field", "body", "--index", "nowhere"}, "nowhere", exitFailure},
		{s, []string{"--field", "nothing"}, "nothing", exitFailure},
	} {
		said := strings.Split(ends(t, test.status, test.set.args(test.args...), test.want), "\n")
		said[0] = strings.TrimPrefix(said[0], "akin: ")
		check.Equal(t, len(said), len(slices.Compact(slices.Clone(said))), test.args, "lines are said twice", said)
	}
	ends(t, exitUsage, []string{"matrix", "sweep"}, "give --cluster, --index and --field")
	ends(t, exitFailure, []string{
		"matrix", "sweep", "--cluster", unread.engine, "--index", "i", "--field", "f", "--template", s.template, "--judgments", s.judgments,
	}, "give --queries FILE with their texts")
}
