package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestShowTellsWhatEntriesComeFrom(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{Origins: []string{"vectors", "thesaurus", "overrides"}},
		simmatrix.TermRow{Term: "car", DocFreq: 12, Neighbors: []simmatrix.Neighbor{
			{Term: "automobile", Similarity: 1, Origins: 4},
			{Term: "van", Similarity: 0.5, Origins: 3},
		}},
		simmatrix.TermRow{Term: "automobile", DocFreq: 3},
		simmatrix.TermRow{Term: "van"},
	)
	shows(t, []string{file, "car"}, []string{
		"car 2 neighbors in " + file + " df 12",
		"automobile 1.0000 df 3 overrides",
		"van 0.5000 df 0 vectors, thesaurus",
	})
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
	check.OK(t, json.Compact(&out, []byte(text)))
	return out.String()
}

// shows compares what matrix show prints with lines, without the blanks of a
// table.
func shows(t *testing.T, args, want []string) {
	t.Helper()
	check.Equal(t, want, squeezed(mustAkin(t, append([]string{"matrix", "show"}, args...)...)))
}

func TestShowTellsOfTermsThatAreNotThere(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "car"}, simmatrix.TermRow{Term: "esc\x1b[31m", Neighbors: []simmatrix.Neighbor{{Term: "car", Similarity: 1}}})
	shows(t, []string{file, "Carr", "Lorry", "lorry", "esc\x1b[31m"}, []string{
		"Carr not in " + file + "; did you mean car?",
		"Lorry not in " + file,
		"lorry not in " + file,
		`"esc\x1b[31m" 1 neighbor in ` + file + " df 0",
		"car 1.0000 df 0",
	})
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
	show := []string{file, "--top", "2", "ga", "petrol", "none"}
	shows(t, show, []string{
		"gas (ga) 3 neighbors in " + file + " df 12",
		"oils 1.0000 df 3 docs, overrides",
		"petrol 0.5000 df 0 docs",
		"petrol 0 neighbors in " + file + " df 0",
		"none not in " + file,
	})
	wantJSON := `{"matrix":"` + file + `","terms":[` +
		`{"term":"ga","word":"gas","doc_freq":12,"neighbors":[` +
		`{"term":"oil","word":"oils","doc_freq":3,"similarity":1,"origins":["docs","overrides"]},` +
		`{"term":"petrol","doc_freq":0,"similarity":0.5000076,"origins":["docs"]}]},` +
		`{"term":"petrol","doc_freq":0,"neighbors":[]},{"term":"none","doc_freq":0,"neighbors":null}]}`
	check.Equal(t, wantJSON, compact(t, mustAkin(t, append([]string{"matrix", "show", "--json"}, show...)...)), "--json")
	contains(t, "check", mustAkin(t, "matrix", "check", file), "3 terms that people write in other forms")
}

func TestShowLooksWordsUpAsPeopleWriteThem(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{},
		simmatrix.TermRow{Term: "kidnei", Form: simmatrix.WithForms("kidnei", "kidney", "kidneys"), DocFreq: 5, Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 0.5}}},
		simmatrix.TermRow{Term: "renal", DocFreq: 3},
		simmatrix.TermRow{Term: "ga", Form: "gas", DocFreq: 2},
		simmatrix.TermRow{Term: "gaa", Form: "ga", DocFreq: 1},
	)
	url := redisServer(t)
	mustAkin(t, "matrix", "push", "--redis", url, "--name", "words", "--activate", file)
	for name, from := range map[string][]string{"file": {file}, "Redis": {"--redis", url, "words@active"}} {
		show := append([]string{"matrix", "show"}, from...)
		var got []string
		for _, line := range squeezed(mustAkin(t, append(show, "kidney", "Kidneys", "kidnei", "ga", "kidnay")...)) {
			before, after, _ := strings.Cut(line, " in ")
			_, note, _ := strings.Cut(after, " ")
			got = append(got, strings.TrimSpace(before+" | "+note))
		}
		kidney := []string{"kidney (kidnei) 1 neighbor | df 5", "renal 0.5000 df 3 |"}
		want := slices.Concat(kidney, kidney, kidney, []string{"ga (gaa) 0 neighbors | df 1 (ga is a term, too: gas (ga))", "kidnay not | did you mean kidney?"})
		check.Equal(t, want, got, name)
		_, terms, _ := strings.Cut(compact(t, mustAkin(t, append(show, "--json", "kidney", "kidnay")...)), `"terms":`)
		wantJSON := `[{"term":"kidnei","word":"kidney","doc_freq":5,"asked":"kidney","neighbors":[{"term":"renal","doc_freq":3,"similarity":0.5000076}]},` +
			`{"term":"kidnay","doc_freq":0,"nearest":"kidney","neighbors":null}]}`
		check.Equal(t, wantJSON, terms, name, "--json")
	}
}

func TestOverridesOfACommandNameWordsAsPeopleWriteThem(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{},
		simmatrix.TermRow{Term: "kidnei", Form: "kidney", Neighbors: []simmatrix.Neighbor{{Term: "renal", Similarity: 0.5}}}, simmatrix.TermRow{Term: "renal"},
		simmatrix.TermRow{Term: "ga", Form: "gas"},
	)
	rules := write(t, "o.txt", "ban kidney renal\nset gas -> renal 0.8\nban kidnay gas\n")
	m, told := built(t, "--from-matrices", file, "--overrides", rules)
	if m.Row("kidnei").Len() != 0 || m.Row("ga").Len() != 1 || !m.Row("gas").IsZero() {
		t.Errorf("rows: kidnei %d, ga %d", m.Row("kidnei").Len(), m.Row("ga").Len())
	}
	contains(t, "overrides", told, "the matrix lacks kidnay; did you mean kidney?")
}

// The analyzer of the demo's fields makes "couch" of couches.
func TestWordsAreLookedUpInAnyFormThatTheFieldAnalyzes(t *testing.T) {
	matrix := pairsFile(t, "m.akin", "couch\tsofa\t0.5\n")
	field := []string{"--cluster", demoEngine(t), "--index", "catalogue", "--field", "body"}
	contains(t, "without the field", mustAkin(t, "matrix", "show", matrix, "couches"), "couches  not in")
	contains(t, "with it", mustAkin(t, append([]string{"matrix", "show", matrix, "couches"}, field...)...), "couch  1 neighbor in")
	away := []string{"--cluster", "http://127.0.0.1:1", "--index", "catalogue", "--field", "body"}
	ends(t, 0, append([]string{"matrix", "show", matrix, "couch"}, away...), "couch  1 neighbor in", "without the field's analyzer")

	rules := write(t, "o.txt", "set couches settees 0.8\n")
	out := filepath.Join(t.TempDir(), "out.akin")
	push := []string{"matrix", "push", "--redis", redisServer(t), "--overrides", rules, "--activate", matrix}
	ends(t, exitUsage, push, "no search looks up couches", "give --cluster")
	mustAkin(t, append(push, field...)...)
	mustAkin(t, "matrix", "export", "--redis", push[3], "--out", out, "main@active")
	contains(t, "show", mustAkin(t, "matrix", "show", out, "couch"), "sette  0.8000")
}
