package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
)

// buildFromIndex runs "matrix build --from-index" over the titles and bodies of
// the demo corpus and returns the matrix and what the command said.
func buildFromIndex(t *testing.T, engine string, args ...string) (*simmatrix.Matrix, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.akin")
	all := append([]string{"matrix", "build", "--from-index", engine, "--index", demoIndices, "--field", "title,body", "--out", out}, args...)
	_, stderr, status := akin(t, all...)
	if status != 0 {
		t.Fatalf("build %q: status %d\n%s", args, status, stderr)
	}
	m, err := cli.ReadMatrix(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	return m, stderr
}

func TestMistakesInTheFlagsOfAnIndexAreFoundBeforeTheWork(t *testing.T) {
	file := write(t, "file", "")
	for name, tt := range map[string]struct{ args, want []string }{
		"no field":                  {[]string{"--index", "x"}, []string{"--field"}},
		"a query that is no JSON":   {[]string{"--query", "{"}, []string{"query", "JSON"}},
		"a query with a name twice": {[]string{"--query", `{"term":{"a":1},"term":{"a":2}}`}, []string{"twice"}},
		"no query":                  {[]string{"--query", `[]`}, []string{"want an object"}},
		"a negative number":         {[]string{"--max-docs", "-1"}, []string{"--max-docs"}},
		"two kinds of terms":        {[]string{"--words", "--exact-analysis"}, []string{"--words"}},
		"a size without a unit":     {[]string{"--max-memory", "3000"}, []string{"--max-memory", "GB"}},
		"too small a size":          {[]string{"--max-memory", "1MB"}, []string{"--max-memory", "64MiB"}},
		"a spool that is a file":    {[]string{"--resume", file}, []string{"--resume", "no folder"}},
		"a spool without a parent":  {[]string{"--resume", "/no/such/folder/x"}, []string{"--resume", "/no/such/folder"}},
		"a power of nothing":        {[]string{"--power", "-1"}, []string{"power"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"matrix", "build", "--from-index", "http://127.0.0.1:1", "--out", filepath.Join(t.TempDir(), "x")}
			if !slices.Contains(tt.args, "--index") {
				args = append(args, "--index", "x", "--field", "y")
			}
			_, stderr, status := akin(t, append(args, tt.args...)...)
			if status != exitUsage {
				t.Errorf("status %d, want %d", status, exitUsage)
			}
			for _, want := range tt.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in\n%s", want, stderr)
				}
			}
		})
	}
}

func TestQueryChoosesTheDocuments(t *testing.T) {
	engine := demoEngine(t)
	const query = `{"match":{"body":"order"}}`
	matching := total(t, engine+"/"+demoIndices+"/_search", `{"query":`+query+`}`)
	m, stderr := buildFromIndex(t, engine, "--query", query, "--min-df", "2")
	if m.Meta().Docs != uint64(matching) || matching == 0 {
		t.Errorf("learned from %d documents, %d match\n%s", m.Meta().Docs, matching, stderr)
	}
	if !strings.Contains(m.Meta().Source, query) {
		t.Errorf("the source is %q", m.Meta().Source)
	}
	_, stderr, status := akin(t, "matrix", "build", "--from-index", engine, "--index", demoIndices, "--field", "body",
		"--query", `{"nonsense":{}}`, "--out", filepath.Join(t.TempDir(), "x"))
	if status != exitFailure || !strings.Contains(stderr, "nonsense") {
		t.Errorf("a query that the engine refuses: status %d\n%s", status, stderr)
	}
}

func TestRareTermsGetRowsWhereEntriesMayGoOneWay(t *testing.T) {
	engine := demoEngine(t)
	for _, tt := range []struct {
		args []string
		rare bool
	}{{nil, true}, {[]string{"--min-df", "5"}, true}, {[]string{"--symmetric"}, false}} {
		m, stderr := buildFromIndex(t, engine, tt.args...)
		least := uint32(math.MaxUint32)
		for _, row := range m.Rows() {
			least = min(least, row.DocFreq())
		}
		if _, said := m.Meta().Params["rare_terms"]; said != tt.rare || (least < 3) != tt.rare {
			t.Errorf("%q: the rarest term is in %d documents, the header %v\n%s", tt.args, least, m.Meta().Params, stderr)
		}
	}
}

func TestDocumentLimitIsARandomChoice(t *testing.T) {
	engine := demoEngine(t)
	checksum := func(args ...string) string {
		m, stderr := buildFromIndex(t, engine, append(args, "--min-df", "2")...)
		want := uint64(150)
		if len(args) == 0 {
			want = 645
		}
		if m.Meta().Docs != want {
			t.Errorf("%q: learned from %d documents, want %d\n%s", args, m.Meta().Docs, want, stderr)
		}
		return m.Checksum()
	}
	all, first := checksum(), checksum("--max-docs", "150")
	if first == all || first != checksum("--max-docs", "150") {
		t.Error("the choice is none, or another one the second time")
	}
	if m, _ := buildFromIndex(t, engine, "--max-docs", "100000"); m.Meta().Docs != 645 {
		t.Errorf("a limit that is not reached: %d documents", m.Meta().Docs)
	}
}

func TestWordsAreTakenInLowerCase(t *testing.T) {
	engine := demoEngine(t)
	words, _ := buildFromIndex(t, engine, "--words")
	terms, _ := buildFromIndex(t, engine)
	// The english analyzer drops "the" and makes "orders" into "order".
	for _, word := range []string{"the", "orders"} {
		if words.Row(word).IsZero() || !terms.Row(word).IsZero() {
			t.Errorf("%q: among the words %v, among the index terms %v", word, !words.Row(word).IsZero(), !terms.Row(word).IsZero())
		}
	}
	for word := range words.Terms() {
		if word != strings.ToLower(word) {
			t.Errorf("%q is among the words", word)
		}
	}
}

func TestTooLittleMemorySaysWhatToChange(t *testing.T) {
	_, stderr, status := akin(t, "matrix", "build", "--from-index", demoEngine(t), "--index", demoIndices, "--field", "title,body",
		"--out", filepath.Join(t.TempDir(), "x"), "--max-memory", "64MiB", "--top", "10000", "--min-df", "1")
	if status != exitFailure || !strings.Contains(stderr, "--max-docs and --top are") || !strings.Contains(stderr, "64MiB") {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

func TestSpoolIsRemovedOnceTheMatrixIsWritten(t *testing.T) {
	engine := demoEngine(t)
	dir := filepath.Join(t.TempDir(), "spool")
	there := func() bool { _, err := os.Stat(dir); return err == nil }
	want, _ := buildFromIndex(t, engine)
	// The reading succeeds and the learning does not: what was read stays.
	_, stderr, status := akin(t, "matrix", "build", "--from-index", engine, "--index", demoIndices, "--field", "title,body",
		"--out", filepath.Join(t.TempDir(), "x"), "--resume", dir, "--min-df", "1000000")
	if status != exitFailure || !there() {
		t.Fatalf("status %d, the spool is there: %v\n%s", status, there(), stderr)
	}
	got, stderr := buildFromIndex(t, engine, "--resume", dir)
	if !strings.Contains(stderr, "1 of 1 slices have been read before") || there() {
		t.Errorf("the spool is there: %v\n%s", there(), stderr)
	}
	if got.Checksum() != want.Checksum() {
		t.Error("the matrix is another one than without a spool")
	}
}
