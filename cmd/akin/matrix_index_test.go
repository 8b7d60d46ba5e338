package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestQueryChoosesTheDocuments(t *testing.T) {
	engine := demoEngine(t)
	const query = `{"match":{"body":"order"}}`
	matching := total(t, engine+"/"+demoIndices+"/_search", `{"query":`+query+`}`)
	m, stderr := built(t, fromDemo(t, "--query", query, "--min-df", "2")...)
	if m.Meta().Docs != uint64(matching) || matching == 0 {
		t.Errorf("learned from %d documents, %d match\n%s", m.Meta().Docs, matching, stderr)
	}
	if !strings.Contains(m.Meta().Source, query) {
		t.Errorf("the source is %q", m.Meta().Source)
	}
	failing := func(more ...string) []string {
		return append([]string{"matrix", "build", "--out", filepath.Join(t.TempDir(), "x")}, fromDemo(t, more...)...)
	}
	ends(t, exitFailure, failing("--query", `{"nonsense":{}}`), "nonsense")
	ends(t, exitFailure, failing("--max-memory", "64MiB", "--top", "10000", "--min-df", "1"), "--max-docs and --top are", "64MiB")
}

func TestRareTermsGetRowsWhereEntriesMayGoOneWay(t *testing.T) {
	for _, tt := range []struct {
		args []string
		rare bool
	}{{nil, true}, {[]string{"--min-df", "5"}, true}, {[]string{"--symmetric"}, false}} {
		m, stderr := built(t, fromDemo(t, tt.args...)...)
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
	checksum := func(args ...string) string {
		m, stderr := built(t, fromDemo(t, append(args, "--min-df", "2")...)...)
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
	if m, _ := built(t, fromDemo(t, "--max-docs", "100000")...); m.Meta().Docs != 645 {
		t.Errorf("a limit that is not reached: %d documents", m.Meta().Docs)
	}
}

func TestWordsAreTakenInLowerCase(t *testing.T) {
	words, _ := built(t, fromDemo(t, "--words")...)
	terms, _ := built(t, fromDemo(t)...)
	// The english analyzer drops "the" and makes "orders" into "order".
	for _, word := range []string{"the", "orders"} {
		if words.Row(word).IsZero() || !terms.Row(word).IsZero() {
			t.Errorf("%q: among the words %v, among the index terms %v", word, !words.Row(word).IsZero(), !terms.Row(word).IsZero())
		}
	}
	for word := range words.Terms() {
		check.That(t, word == strings.ToLower(word), "%q is among the words", word)
	}
}

func TestSpoolIsRemovedOnceTheMatrixIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	want, _ := built(t, fromDemo(t)...)
	// The reading succeeds and the learning does not: what was read stays.
	ends(t, exitFailure, append([]string{"matrix", "build", "--out", filepath.Join(t.TempDir(), "x"), "--resume", dir, "--min-df", "1000000"}, fromDemo(t)...))
	if !isThere(dir) {
		t.Fatal("the spool is gone")
	}
	got, said := built(t, fromDemo(t, "--resume", dir)...)
	if !strings.Contains(said, "1 of 1 slices have been read before") || isThere(dir) {
		t.Errorf("the spool is there: %v\n%s", isThere(dir), said)
	}
	if got.Checksum() != want.Checksum() {
		t.Error("the matrix is another one than without a spool")
	}
}
