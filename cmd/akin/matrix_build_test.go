package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
)

func TestEverySourceMakesAMatrix(t *testing.T) {
	vectors := write(t, "v.txt", "car 1 0\nautomobile 0.9 0.1\nbus 0.5 0.5\nbanana 0 1\n")
	terms := write(t, "terms.txt", "rental\t4\nrentals\t2\nretnal\nbus\n")
	synonyms := write(t, "s.txt", "# our own\ncar, automobile, motor car\nbus => coach\n")
	tsv := write(t, "p.tsv", "car\tautomobile\t0.9\ncar\tbus\t0.4\n")
	long := write(t, "long.txt", "1 2 3 4 5 6 7 8 9, car\nbus, car\n")
	listed := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "color", DocFreq: 3}, simmatrix.TermRow{Term: "colour", DocFreq: 5})
	for _, tt := range []struct {
		name  string
		args  []string
		term  string
		want  []string
		told  string // on stderr
		terms int
	}{
		{"vectors", []string{"--from-vectors", vectors}, "car", []string{"automobile", "bus"}, "4 terms", 4},
		{"the first of the vectors", []string{"--from-vectors", vectors, "--max-words", "2"}, "car", []string{"automobile"}, "", 2},
		{"vectors of some words", []string{"--from-vectors", vectors, "--exclude", "^a"}, "car", []string{"bus"}, "skipped 1 words that the filters leave out", 3},
		{"approximate search", []string{"--from-vectors", vectors, "--recall", "0.9"}, "car", nil, "recall of the approximate search, measured: ", 4},
		{"spelling", []string{"--from-edit-distance", terms}, "rental", []string{"rentals", "retnal"}, "4 terms", 4},
		{"spelling of the terms of a matrix", []string{"--from-edit-distance", listed}, "colour", []string{"color"}, "", 2},
		{"synonyms", []string{"--from-thesaurus", synonyms}, "car", []string{"\x1fmotor\x1fcar", "automobile"}, "similar expressions: 2 kept, such as motor car – automobile, motor car – car; 0 left out", 5},
		{"synonyms of too many words", []string{"--from-thesaurus", long}, "car", []string{"bus"}, `entries of more than 8 words: 0 kept; 1 left out, such as line 1: "1 2 3 4 5 6 7 8 9"`, 2},
		{"pairs", []string{"--from-tsv", tsv}, "car", []string{"automobile", "bus"}, "2 neighbors", 3},
		{"pairs both ways", []string{"--from-tsv", tsv, "--symmetric"}, "bus", []string{"car"}, "4 neighbors", 3},
		{"the best of the pairs", []string{"--from-tsv", tsv, "--top", "1"}, "car", []string{"automobile"}, "1 neighbors", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, told := built(t, tt.args...)
			if tt.want != nil {
				if diff := cmp.Diff(tt.want, rowOf(m, tt.term)); diff != "" {
					t.Error(diff)
				}
			}
			if m.Len() != tt.terms || !strings.Contains(told, tt.told) {
				t.Errorf("%d terms, want %d; printed %q, want %q in it", m.Len(), tt.terms, told, tt.told)
			}
		})
	}
}

func TestMatricesAreCombinedAndKeepTheirOrigins(t *testing.T) {
	meaning, spelling := pairsFile(t, "meaning.akin", "car\tautomobile\t0.8\ncar\tbus\t0.4\n"), pairsFile(t, "spelling.akin", "car\tautomobile\t0.4\ncar\tcart\t0.6\n")
	both := meaning + "," + spelling
	for rule, first := range map[string]float32{"average": 0.6, "minimum": 0.4, "maximum": 0.8, "weighted:3,1": 0.7} {
		m, _ := built(t, "--from-matrices", both, "--combine", rule)
		for n := range m.Row("car").All() {
			if d := n.Similarity - first; n.Term != "automobile" || d > 1e-4 || d < -1e-4 || n.Origins != 3 {
				t.Errorf("%s: %+v", rule, n)
			}
			break
		}
		if diff := cmp.Diff([]string{"meaning", "spelling"}, m.Meta().Origins); diff != "" {
			t.Error(diff)
		}
	}
	alone, _ := built(t, "--from-matrices", meaning, "--symmetric")
	if got := rowOf(alone, "bus"); !slices.Equal(got, []string{"car"}) || !alone.Meta().Symmetric {
		t.Errorf("bus has %q, %+v", got, alone.Meta())
	}
}

// TestRegressionIsFittedAndPrinted combines two lists, of which the first
// knows what the synonym file says and the second does not.
func TestRegressionIsFittedAndPrinted(t *testing.T) {
	var good, bad, synonyms strings.Builder
	for i := range 60 {
		x, y, z := word(i), word(i+100), word(i+200)
		good.WriteString(x + "\t" + y + "\t0.9\n" + x + "\t" + z + "\t0.1\n")
		bad.WriteString(x + "\t" + y + "\t0.5\n" + x + "\t" + z + "\t0.5\n")
		synonyms.WriteString(x + ", " + y + "\n" + z + ", " + word(i+300) + "\n")
	}
	m, told := built(t, "--from-matrices", pairsFile(t, "a.akin", good.String())+","+pairsFile(t, "b.akin", bad.String()),
		"--combine", "regression:"+write(t, "s.txt", synonyms.String()))
	row := rowOf(m, word(0))
	if len(row) == 0 || row[0] != word(100) {
		t.Errorf("row %q", row)
	}
	contains(t, "regression", told, "log loss", "AUC")
}

// word returns a word of letters for a number under 676.
func word(i int) string { return "w" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }

func TestOverridesAreAppliedAtBuildAndSurviveSparsification(t *testing.T) {
	tsv := write(t, "p.tsv", "car\tautomobile\t0.9\ncar\tjaguar\t0.8\ncar\tbus\t0.3\n")
	overrides := write(t, "o.txt", "ban car jaguar\npin car -> bus\nset car van 0.7\npin car lorry\n")
	m, told := built(t, "--from-tsv", tsv, "--top", "1", "--overrides", overrides)
	if diff := cmp.Diff([]string{"van", "bus"}, rowOf(m, "car")); diff != "" {
		t.Errorf("what is set and pinned stays, also beyond --top: %s", diff)
	}
	if diff := cmp.Diff([]string{"car"}, rowOf(m, "van")); diff != "" {
		t.Error(diff)
	}
	contains(t, "overrides", told, "2 entries set", "1 banned", "1 pinned", "pin car -> lorry")
	ends(t, exitUsage, []string{
		"matrix", "build", "--from-tsv", tsv, "--symmetric", "--overrides", write(t, "o.txt", "ban car -> jaguar\nset auto -> car 0.1\n"), "--out", "o",
	}, "ban car -> jaguar", "set auto -> car")
}

// The analyzer makes expressions of entries of several words, without its stop
// words; what it makes one term of, and what no document has, stands for nothing.
func TestEntriesOfSeveralWordsBecomeExpressionsOfAField(t *testing.T) {
	synonyms := write(t, "s.txt", "# akin: exact\nred sofas, the couches of leather, zeppelin sofas\nthe sofa, garden chairs\n")
	m, _ := built(t, "--from-thesaurus", synonyms, "--cluster", demoEngine(t), "--index", "catalogue", "--field", "body")
	got := map[string][]string{}
	for term := range m.Terms() {
		for _, neighbor := range rowOf(m, term) {
			got[simmatrix.Spelled(term)] = append(got[simmatrix.Spelled(term)], simmatrix.Spelled(neighbor))
		}
	}
	if diff := cmp.Diff(map[string][]string{
		"red sofa": {"couch _ leather"}, "couch _ leather": {"red sofa"}, "zeppelin sofa": {"couch _ leather", "red sofa"},
	}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"exact synonyms: 3 kept, such as red sofas – the couches of leather, red sofas – zeppelin sofas, " +
		"the couches of leather – zeppelin sofas; 1 left out, such as garden chairs – the sofa"}, simmatrix.Tallies(m.Meta().Params)); diff != "" {
		t.Error(diff)
	}
	if form := m.Form("\x1fred\x1fsofa"); form != simmatrix.WithNote("red sofas", "s.txt:2") {
		t.Errorf("written as %q", form)
	}
	file := filepath.Join(t.TempDir(), "s.akin")
	check.OK(t, cli.WriteMatrix(t.Context(), file, m))
	contains(t, "the row of an expression", mustAkin(t, "matrix", "show", file, "red sofas"), "red sofas (red sofa)  1 neighbors in "+file+"  df 0  s.txt:2\n", "couch _ leather)  1.0000  df 0  s.txt:2")
}

// TestWhatCannotBeFoundTakesNoPlaceInARow has words that no document of the
// demo has, and terms that the filters leave out, nearer than others.
func TestWhatCannotBeFoundTakesNoPlaceInARow(t *testing.T) {
	onDemo := []string{"--cluster", demoEngine(t), "--index", "catalogue", "--field", "body"}
	vectors := write(t, "v.txt", "Sofas 1 0\nCouches 1 0.2\nzeppelin 1 0.01\nzzzz 1 0.02\n")
	m, _ := built(t, append(onDemo, "--from-vectors", vectors, "--top", "1", "--exclude", "[^a-z]")...)
	if diff := cmp.Diff([]string{"couch"}, rowOf(m, "sofa")); diff != "" {
		t.Errorf("words of no document: %s", diff)
	}
	terms := write(t, "t.txt", "sofa\nsofas\nsofax\nsofay\n")
	m, _ = built(t, append(onDemo, "--from-edit-distance", terms, "--top", "1")...)
	if diff := cmp.Diff([]string{"sofa"}, rowOf(m, "sofax")); diff != "" {
		t.Errorf("terms of no document: %s", diff)
	}
	terms = write(t, "t.txt", "xabcdefgh\t1\nabcdefgh\t50\nabcdefghij\t50\n")
	for _, filter := range [][]string{{"--min-df", "5"}, {"--exclude", "^x"}} {
		m, _ = built(t, append(filter, "--from-edit-distance", terms, "--top", "1")...)
		if diff := cmp.Diff([]string{"abcdefghij"}, rowOf(m, "abcdefgh")); diff != "" {
			t.Errorf("%q: %s", filter, diff)
		}
	}
}

func TestRulesAndFiltersComeBeforeTheCutOfAnEnsemble(t *testing.T) {
	both := pairsFile(t, "c1.akin", "a\tb\t.9\na\tc\t.8\na\td\t.7\n") + "," + pairsFile(t, "c2.akin", "a\tb\t.9\na\te\t.2\n")
	for want, args := range map[string][]string{
		"b": nil, "c": {"--overrides", write(t, "o.txt", "ban a b\n")}, "d": {"--overrides", write(t, "o.txt", "pin a -> d\n")},
	} {
		m, told := built(t, append(args, "--from-matrices", both, "--top", "1")...)
		if got := rowOf(m, "a"); !slices.Equal(got, []string{want}) || strings.Contains(told, "no such entry") {
			t.Errorf("%q: %q, want %s\n%s", args, got, want, told)
		}
	}
	if m, _ := built(t, "--from-matrices", both, "--top", "1", "--exclude", "^b$"); !slices.Equal(rowOf(m, "a"), []string{"c"}) {
		t.Errorf("with a filter %q", rowOf(m, "a"))
	}
}

// TestFrequenciesOfSeveralFieldsDoNotDependOnTheirOrder has terms that only
// one of the two fields has.
func TestFrequenciesOfSeveralFieldsDoNotDependOnTheirOrder(t *testing.T) {
	tsv := write(t, "p.tsv", "sofas\tcouches\t0.9\nsofas\tchairs\t0.8\nsofas\tzeppelins\t0.7\n")
	engine := demoEngine(t)
	var tables [2]string
	for k, fields := range []string{"title,body", "body,title"} {
		m, _ := built(t, "--from-tsv", tsv, "--cluster", engine, "--index", "catalogue", "--field", fields)
		for term, row := range m.Rows() {
			tables[k] += term + " " + strings.Join(rowOf(m, term), " ") + "\n"
			if term == "sofa" && row.Len() == 0 {
				t.Error("sofa has no neighbors")
			}
		}
	}
	if tables[0] != tables[1] {
		t.Error(cmp.Diff(tables[0], tables[1]))
	}
}
