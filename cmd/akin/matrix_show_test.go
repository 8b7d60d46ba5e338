package main

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
)

// matrixFile writes a matrix and returns the path.
func matrixFile(t *testing.T, meta simmatrix.Meta, rows ...simmatrix.TermRow) string {
	t.Helper()
	m, err := simmatrix.New(meta, rows)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.akin")
	if err := cli.Write(t.Context(), path, func(w io.Writer) error { return simmatrix.Encode(w, m) }); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestShowTellsWhatEntriesComeFrom(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{Origins: []string{"vectors", "thesaurus", "overrides"}},
		simmatrix.TermRow{Term: "car", DocFreq: 12, Neighbors: []simmatrix.Neighbor{
			{Term: "automobile", Similarity: 1, Origins: 4},
			{Term: "van", Similarity: 0.5, Origins: 3},
		}},
		simmatrix.TermRow{Term: "automobile", DocFreq: 3},
		simmatrix.TermRow{Term: "van"},
	)
	stdout, stderr, status := akin(t, "matrix", "show", file, "car")
	want := []string{
		"car 2 neighbors in " + file + " df 12",
		"automobile 1.0000 df 3 overrides",
		"van 0.5000 df 0 vectors, thesaurus",
	}
	if diff := cmp.Diff(want, squeezed(stdout)); status != 0 || diff != "" {
		t.Errorf("status %d\n%s%s", status, stderr, diff)
	}
}

// squeezed returns lines with one blank where a table has several.
func squeezed(table string) []string {
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestShowTellsOfTermsThatAreNotThere(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "car"}, simmatrix.TermRow{Term: "esc\x1b[31m", Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 1}}})
	stdout, _, status := akin(t, "matrix", "show", file, "Carr", "Lorry", "lorry", "esc\x1b[31m")
	want := []string{
		"Carr not in " + file + "; did you mean car?",
		"Lorry not in " + file,
		"lorry not in " + file,
		`"esc\x1b[31m" 1 neighbors in ` + file + " df 0",
		"car 1.0000 df 0",
	}
	if diff := cmp.Diff(want, squeezed(stdout)); status != 0 || diff != "" {
		t.Errorf("status %d\n%s", status, diff)
	}
}

func TestShowPrintsTermsAsPeopleWriteThem(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{Origins: []string{"docs", "overrides"}},
		simmatrix.TermRow{Term: "ga", Form: "gas", DocFreq: 12, Neighbors: []simmatrix.Neighbor{
			{Term: "oil", Similarity: 1, Origins: 3}, {Term: "petrol", Similarity: 0.5, Origins: 1}, {Term: "zeppelin", Similarity: 0.25, Origins: 1},
		}},
		simmatrix.TermRow{Term: "oil", DocFreq: 3, Form: "oils"},
		simmatrix.TermRow{Term: "petrol"},
		simmatrix.TermRow{Term: "zeppelin", Form: "zeppelins"},
	)
	show := []string{"matrix", "show", file, "--top", "2", "ga", "petrol", "none"}
	stdout, stderr, status := akin(t, show...)
	want := []string{
		"gas (ga) 3 neighbors in " + file + " df 12",
		"oils (oil) 1.0000 df 3 docs, overrides",
		"petrol 0.5000 df 0 docs",
		"petrol 0 neighbors in " + file + " df 0",
		"none not in " + file,
	}
	if diff := cmp.Diff(want, squeezed(stdout)); status != 0 || diff != "" {
		t.Errorf("status %d\n%s%s", status, stderr, diff)
	}
	stdout, stderr, status = akin(t, append(show, "--json")...)
	wantJSON := `{"matrix":"` + file + `","terms":[` +
		`{"term":"ga","word":"gas","doc_freq":12,"neighbors":[` +
		`{"term":"oil","word":"oils","doc_freq":3,"similarity":1,"origins":["docs","overrides"]},` +
		`{"term":"petrol","doc_freq":0,"similarity":0.5000076,"origins":["docs"]}]},` +
		`{"term":"petrol","doc_freq":0,"neighbors":[]},{"term":"none","doc_freq":0,"neighbors":null}]}`
	if diff := cmp.Diff(wantJSON, compact(t, stdout)); status != 0 || diff != "" {
		t.Errorf("--json: status %d\n%s%s", status, stderr, diff)
	}
	if stdout, _, _ := akin(t, "matrix", "check", file); !strings.Contains(stdout, "3 terms that people write in another form") {
		t.Errorf("check does not count them:\n%s", stdout)
	}
}

func TestShowRefusesEmptyTermsAndCounts(t *testing.T) {
	for name, args := range map[string][]string{
		"empty term":      {"x", "car", ""},
		"empty in redis":  {"--redis", "redis://127.0.0.1:1", "x@active", ""},
		"negative number": {"x", "--top", "-1", "car"},
	} {
		if _, stderr, status := akin(t, append([]string{"matrix", "show"}, args...)...); status != exitUsage {
			t.Errorf("%s: status %d\n%s", name, status, stderr)
		}
	}
}

func TestShowLooksWordsUpAsPeopleWriteThem(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{},
		simmatrix.TermRow{Term: "kidnei", Form: "kidney", DocFreq: 5, Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 0.5}}},
		simmatrix.TermRow{Term: "renal", DocFreq: 3},
		simmatrix.TermRow{Term: "ga", Form: "gas", DocFreq: 2},
		simmatrix.TermRow{Term: "gaa", Form: "ga", DocFreq: 1},
	)
	url := redisServer(t)
	mustAkin(t, "matrix", "push", "--redis", url, "--name", "words", "--activate", file)
	for name, from := range map[string][]string{"file": {file}, "Redis": {"--redis", url, "words@active"}} {
		show := append([]string{"matrix", "show"}, from...)
		stdout, stderr, status := akin(t, append(show, "kidney", "Kidney", "kidnei", "ga", "kidnay")...)
		var got []string
		for _, line := range squeezed(stdout) {
			before, after, _ := strings.Cut(line, " in ")
			_, note, _ := strings.Cut(after, " ")
			got = append(got, strings.TrimSpace(before+" | "+note))
		}
		kidney := []string{"kidney (kidnei) 1 neighbors | df 5", "renal 0.5000 df 3 |"}
		want := slices.Concat(kidney, kidney, kidney, []string{"ga (gaa) 0 neighbors | df 1 (ga is a term, too: gas (ga))", "kidnay not | did you mean kidney?"})
		if diff := cmp.Diff(want, got); status != 0 || diff != "" {
			t.Errorf("%s: status %d\n%s%s", name, status, stderr, diff)
		}
		stdout, _, _ = akin(t, append(show, "--json", "kidney", "kidnay")...)
		_, terms, _ := strings.Cut(compact(t, stdout), `"terms":`)
		wantJSON := `[{"term":"kidnei","word":"kidney","doc_freq":5,"asked":"kidney","neighbors":[{"term":"renal","doc_freq":3,"similarity":0.5000076}]},` +
			`{"term":"kidnay","doc_freq":0,"nearest":"kidney","neighbors":null}]}`
		if diff := cmp.Diff(wantJSON, terms); diff != "" {
			t.Errorf("%s: --json\n%s", name, diff)
		}
	}
}

func TestOverridesOfACommandNameWordsAsPeopleWriteThem(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{},
		simmatrix.TermRow{Term: "kidnei", Form: "kidney", Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 0.5}}}, simmatrix.TermRow{Term: "renal"},
		simmatrix.TermRow{Term: "ga", Form: "gas"},
	)
	rules := write(t, "o.txt", "ban kidney renal\nset gas -> renal 0.8\nset kidnay gas 0.1\n")
	m, told := built(t, "--from-matrices", file, "--overrides", rules)
	if m.Row("kidnei").Len() != 0 || m.Row("ga").Len() != 2 || !m.Row("gas").IsZero() {
		t.Errorf("rows: kidnei %d, ga %d", m.Row("kidnei").Len(), m.Row("ga").Len())
	}
	if !strings.Contains(told, "the matrix lacks kidnay; did you mean kidney?") {
		t.Errorf("told:\n%s", told)
	}
}
