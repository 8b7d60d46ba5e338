package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/tools/reweigh"
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
		{"spelling by another formula", []string{"--from-edit-distance", terms, "--formula", "inverse", "--max-distance", "1"}, "rental", []string{"rentals"}, "4 terms", 4},
		{"spelling by other parameters", []string{"--from-edit-distance", terms, "--theta1", "1", "--theta2", "40", "--max-distance", "3"}, "rental", []string{"rentals"}, "4 terms", 4},
		{"spelling of the terms of a matrix", []string{"--from-edit-distance", listed}, "colour", []string{"color"}, "", 2},
		{"synonyms", []string{"--from-thesaurus", synonyms}, "car", []string{"\x1fmotor\x1fcar", "automobile"}, "similar expressions: 2 kept, such as motor car – automobile, motor car – car; 0 left out", 5},
		{"synonyms of too many words", []string{"--from-thesaurus", long}, "car", []string{"bus"}, `entries of more than 8 words: 0 kept; 1 left out, such as line 1: "1 2 3 4 5 6 7 8 9"`, 2},
		{"pairs", []string{"--from-tsv", tsv}, "car", []string{"automobile", "bus"}, "2 neighbors", 3},
		{"pairs both ways", []string{"--from-tsv", tsv, "--symmetric"}, "bus", []string{"car"}, "4 neighbors", 3},
		{"the best of the pairs", []string{"--from-tsv", tsv, "--top", "1"}, "car", []string{"automobile"}, "1 neighbor", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, told := built(t, tt.args...)
			if tt.want != nil {
				check.Equal(t, tt.want, rowOf(m, tt.term))
			}
			if m.Len() != tt.terms || !strings.Contains(told, tt.told) {
				t.Errorf("%d terms, want %d; printed %q, want %q in it", m.Len(), tt.terms, told, tt.told)
			}
		})
	}
}

// The model of a matrix makes the effort of its searches normal.
func TestMatrixOfVectorsNamesThemAsItsModel(t *testing.T) {
	m, _ := built(t, "--from-vectors", write(t, "v.txt", "car 1 0\nautomobile 0.9 0.1\n"))
	check.Equal(t, "v.txt", m.Meta().Params[simmatrix.ModelParam])
}

func TestMatricesAreCombinedAndKeepTheirOrigins(t *testing.T) {
	meaning, spelling := pairsFile(t, "meaning.akin", "car\tautomobile\t0.8\ncar\tbus\t0.4\n"), pairsFile(t, "spelling.akin", "car\tautomobile\t0.4\ncar\tcart\t0.6\n")
	both := meaning + "," + spelling
	for rule, first := range map[string]float32{"average": 0.6, "minimum": 0.4, "maximum": 0.8, "weighted:3,1": 0.7, "median": 0.6, "percentile:25": 0.5} {
		m, _ := built(t, "--from-matrices", both, "--combine", rule)
		for n := range m.Row("car").All() {
			if d := n.Similarity - first; n.Term != "automobile" || d > 1e-4 || d < -1e-4 || n.Origins != 3 {
				t.Errorf("%s: %+v", rule, n)
			}
			break
		}
		check.Equal(t, []string{"meaning", "spelling"}, m.Meta().Origins)
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
	check.That(t, len(row) != 0 && row[0] == word(100), "row %q", row)
	contains(t, "regression", told, "log loss", "AUC")
}

// word returns a word of letters for a number under 676.
func word(i int) string { return "w" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }

func TestOverridesAreAppliedAtBuildAndSurviveSparsification(t *testing.T) {
	tsv := write(t, "p.tsv", "car\tautomobile\t0.9\ncar\tjaguar\t0.8\ncar\tbus\t0.3\nvan\tbus\t0.1\n")
	overrides := write(t, "o.txt", "ban car jaguar\npin car -> bus\nset car van 0.7\npin car lorry\n")
	m, told := built(t, "--from-tsv", tsv, "--top", "1", "--overrides", overrides)
	check.Equal(t, []string{"van", "bus"}, rowOf(m, "car"), "what is set and pinned stays, also beyond --top")
	check.Equal(t, []string{"car"}, rowOf(m, "van"), "one neighbor, that of a rule")
	contains(t, "overrides", told, "2 entries set", "1 banned", "1 pinned", "pin car -> lorry")
	ends(t, exitUsage, []string{
		"matrix", "build", "--from-tsv", tsv, "--symmetric", "--overrides", write(t, "o.txt", "ban car -> jaguar\nset auto -> car 0.1\n"), "--out", "o",
	}, "ban car -> jaguar", "set auto -> car")
}

// The analyzer makes expressions of entries of several words, without its stop
// words; what it makes one term of, and what no document has, stands for nothing.
func TestEntriesOfSeveralWordsBecomeExpressionsOfAField(t *testing.T) {
	synonyms := write(t, "s.txt", "# akin: exact\nred sofas, the couches of leather, zeppelin sofas\nthe sofa, garden chairs\nthe-sofa, bench\n")
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
		"the couches of leather – zeppelin sofas; 2 left out, such as garden chairs – the sofa, bench – the-sofa"}, simmatrix.Tallies(m.Meta().Params)); diff != "" {
		t.Error(diff)
	}
	if form := m.Form("\x1fred\x1fsofa"); form != simmatrix.WithNote("red sofas", "s.txt:2") {
		t.Errorf("written as %q", form)
	}
	file := filepath.Join(t.TempDir(), "s.akin")
	check.OK(t, cli.WriteMatrix(t.Context(), file, m))
	contains(t, "the row of an expression", mustAkin(t, "matrix", "show", file, "red sofas"), "red sofas (red sofa)  1 neighbor in "+file+"  df 0  s.txt:2\n", "leather  1.0000  df 0  s.txt:2")
}

func TestGapsOfExpressionsStayWhereTheirTermsAreAnalyzedAgain(t *testing.T) {
	onDemo := []string{"--cluster", demoEngine(t), "--index", "catalogue", "--field", "body"}
	synonyms := write(t, "s.txt", "# akin: exact\nred sofas, the couches of leather\n")
	m, _ := built(t, append(onDemo, "--from-thesaurus", synonyms)...)
	file := filepath.Join(t.TempDir(), "s.akin")
	check.OK(t, cli.WriteMatrix(t.Context(), file, m))
	m, _ = built(t, append(onDemo, "--from-matrices", file, "--overrides", write(t, "o.txt", "set zeppelin sofas 1\n"))...)
	check.Equal(t, []string{"\x1fcouch\x1f\x1fleather"}, rowOf(m, "\x1fred\x1fsofa"))
}

// TestWhatCannotBeFoundTakesNoPlaceInARow has words that no document of the
// demo has, and terms that the filters leave out, nearer than others.
func TestWhatCannotBeFoundTakesNoPlaceInARow(t *testing.T) {
	onDemo := []string{"--cluster", demoEngine(t), "--index", "catalogue", "--field", "body"}
	vectors := write(t, "v.txt", "Sofas 1 0\nCouches 1 0.2\nzeppelin 1 0.01\nzzzz 1 0.02\n")
	m, _ := built(t, append(onDemo, "--from-vectors", vectors, "--top", "1", "--exclude", "[^a-z]")...)
	check.Equal(t, []string{"couch"}, rowOf(m, "sofa"), "words of no document")
	terms := write(t, "t.txt", "sofa\nsofas\nsofax\nsofay\n")
	m, _ = built(t, append(onDemo, "--from-edit-distance", terms, "--top", "1")...)
	check.Equal(t, []string{"sofa"}, rowOf(m, "sofax"), "terms of no document")
	terms = write(t, "t.txt", "xabcdefgh\t1\nabcdefgh\t50\nabcdefghij\t50\n")
	for _, filter := range [][]string{{"--min-df", "5"}, {"--exclude", "^x"}} {
		m, _ = built(t, append(filter, "--from-edit-distance", terms, "--top", "1")...)
		check.Equal(t, []string{"abcdefghij"}, rowOf(m, "abcdefgh"), filter)
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

// TestNoOutputTakesThePlaceOfAnInput names files in several ways: as they are,
// from a folder that is not the current one, and by a link.
func TestNoOutputTakesThePlaceOfAnInput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	contents := map[string]string{"s.txt": "car, automobile\n", "o.txt": "ban car jaguar\n", "m.tsv": "car\tbus\t0.5\n"}
	for name, content := range contents {
		check.OK(t, os.WriteFile(name, []byte(content), 0o600))
	}
	check.OK(t, os.Symlink("s.txt", "link"))
	m := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "car"}, simmatrix.TermRow{Term: "bus"})
	contents[m] = read(t, m)
	for _, tt := range []struct {
		args string
		want string
	}{
		{"build --from-thesaurus s.txt --out s.txt", "--from-thesaurus"},
		{"build --from-thesaurus s.txt --out link", "--from-thesaurus"},
		{"build --from-tsv m.tsv --overrides o.txt --out " + filepath.Join(dir, "o.txt"), "--overrides"},
		{"build --from-edit-distance " + m + " --out " + m, "--from-edit-distance"},
		{"build --from-matrices " + m + " --overrides o.txt --out o.txt", "--overrides"},
		{"export --out " + m + " " + m, "the matrix to export"},
	} {
		ends(t, exitUsage, strings.Fields("matrix "+tt.args), tt.want)
	}
	for name, want := range contents {
		if got := read(t, name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	mustAkin(t, "matrix", "build", "--from-matrices", m, "--exclude", `^\d`, "--out", m) // in place
}

func TestTermsAndRelationsAreReadFromPipes(t *testing.T) {
	file := matrixFile(t, simmatrix.Meta{}, simmatrix.TermRow{Term: "color"}, simmatrix.TermRow{Term: "colour"})
	piped := func(content string) string {
		path, w := openPipe(t)
		_, err := io.WriteString(w, content) // less than a pipe holds
		check.OK(t, errors.Join(err, w.Close()))
		return path
	}
	for name, content := range map[string]string{"list": "color\ncolour\n", "short list": "color\ncolour", "matrix": read(t, file)} {
		m, _ := built(t, "--from-edit-distance", piped(content))
		if diff := cmp.Diff([]string{"colour"}, rowOf(m, "color")); diff != "" || m.Len() != 2 {
			t.Errorf("%s: %d terms, %s", name, m.Len(), diff)
		}
	}
	relations, err := readRelations(t.Context(), piped("color, colour\n"))
	check.OK(t, err)
	check.Equal(t, []string{"colour"}, rowOf(relations, "color"))
}

func TestCombinedMatricesAreCalledByTheirFiles(t *testing.T) {
	at := func(name string) string { return pairsFile(t, name, "car\tbus\t0.5\n") }
	docs := at("docs.akin")
	m, _ := built(t, "--from-matrices", docs+","+at(".akin"))
	check.Equal(t, []string{"docs", ".akin"}, m.Meta().Origins)
	for _, other := range []string{"docs.akin", "overrides.akin"} {
		ends(t, exitUsage, []string{"matrix", "build", "--from-matrices", docs + "," + at(other), "--out", "out.akin"}, other+" would be called")
	}
}

// fromTexts are the flags of a matrix that is learned from texts, each with a
// word of its own.
func fromTexts(t *testing.T, texts ...string) []string {
	t.Helper()
	docs := make([]documents.Document, len(texts))
	for i, text := range texts {
		docs[i] = documents.Document{ID: strconv.Itoa(i), Source: map[string]string{"body": fmt.Sprintf("%s filler%d", text, i)}}
	}
	engine := newIndex(t, "docs", `{"mappings":{"properties":{"body":{"type":"text","analyzer":"english"}}}}`, docs)
	return []string{"--cluster", engine, "--index", "docs", "--field", "body", "--min-df", "2"}
}

func TestAcronymsAndTheirLongFormsStandForEachOther(t *testing.T) {
	var texts []string
	for k := range 12 {
		texts = append(texts,
			"the Institutes of Health (IOH)", fmt.Sprintf("a study%d of medicine", k%3),
			fmt.Sprintf("ants and roses need water%d", k%3), fmt.Sprintf("AAR brakes trains on bridge%d", k%3))
	}
	texts = append(texts, "once only defined (OOD)", "ants and roses (AAR)", "ants and roses (AAR)")
	args := fromTexts(t, texts...)
	m, said := built(t, args...)
	check.Equal(t, []string{"acronyms: 1 kept, such as ioh – institutes of health; 1 left out (documents do not use both alike), such as aar – ants and roses; 1 left out (fewer than 2 documents explain it), such as ood – once only defined", "joined words: 0 kept; 0 left out"}, simmatrix.Tallies(m.Meta().Params))
	check.That(t, strings.Contains(said, "acronyms: 1 kept"), "%s", said)
	const expression = "\x1finstitut\x1f\x1fhealth"
	check.Equal(t, []string{"ioh"}, rowOf(m, expression))
	check.That(t, strings.Contains(strings.Join(rowOf(m, "ioh"), "|"), expression), "%q", rowOf(m, "ioh"))
	written, note := simmatrix.SplitForm(m.Form(expression))
	check.Equal(t, [2]string{"institutes of health", "acronym of 12 documents"}, [2]string{written, note})

	without, _ := built(t, append(args, "--acronyms=false", "--joined-words=false")...)
	check.That(t, without.Meta().Expressions == 0 && simmatrix.Tallies(without.Meta().Params) == nil, "%+v", without.Meta())
	ends(t, exitUsage, append([]string{"matrix", "build", "--out", "x", "--acronyms", "--words"}, args...), "--acronyms")
}

func TestAWordThatIsFrequentByItselfIsNoAcronym(t *testing.T) {
	texts := []string{"run every alignment daily (READ)", "run every alignment daily (READ)"}
	for k := range acronymUse*len(texts) + 1 {
		texts = append(texts, fmt.Sprintf("read a book%d", k%3))
	}
	_, said := built(t, fromTexts(t, texts...)...)
	contains(t, "build", said, "acronyms: 0 kept; 1 left out (the short form is a frequent word by itself), such as read – run every alignment daily")
}

func TestJoinedWordsStandForTheirParts(t *testing.T) {
	texts := append(slices.Repeat([]string{"other things"}, 20),
		"the rib cage", "a Rib-cage", "ribcage", "Ribcages", "an e-mail", "one e mail", "emails", "email", "his cross", "a cross")
	m, said := built(t, fromTexts(t, texts...)...)
	check.That(t, strings.Contains(said, "joined words: 2 kept, such as e mail – email, rib cage – ribcage; "), "%s", said)
	check.Equal(t, []string{"ribcag"}, rowOf(m, "\x1frib\x1fcage"))
	check.Equal(t, []string{"email"}, rowOf(m, "\x1fe\x1fmail"))
	check.That(t, !strings.Contains(strings.Join(rowOf(m, "email"), ""), "\x1f"), "%q", rowOf(m, "email"))
}

// What the analyzer splits is an expression, whatever it comes from.
func TestWordsThatTheAnalyzerSplitsAreExpressions(t *testing.T) {
	engine := demoEngine(t)
	field := []string{"--cluster", engine, "--index", "catalogue", "--field", "body"}
	sofaBed := "\x1fsofa\x1fbed"
	for name, args := range map[string][]string{
		"thesaurus": {"--from-thesaurus", write(t, "s.txt", "sofa-bed, couch\n")},
		"list":      {"--from-tsv", write(t, "l.tsv", "sofa-beds\tcouch\t0.5\ncouch\tsofa bed\t0.5\n")},
		"vectors":   {"--from-vectors", write(t, "v.txt", "sofa-bed 1 0.1\ncouches 1 0.1\ncars 0 1\n")},
		"overrides": {"--from-tsv", write(t, "o.tsv", "car\tvan\t0.5\n"), "--overrides", write(t, "o.txt", "set sofa-bed couches 0.5\n")},
	} {
		m, said := built(t, slices.Concat(args, field)...)
		if !slices.Contains(rowOf(m, sofaBed), "couch") || !slices.Contains(rowOf(m, "couch"), sofaBed) {
			t.Errorf("%s: %q, %q\n%s", name, rowOf(m, sofaBed), rowOf(m, "couch"), said)
		}
	}
}

func TestUnknownDocumentsAreNamedOnce(t *testing.T) {
	there := reweigh.NewCollection()
	check.OK(t, there.Add("a", [][]string{{"wing"}}))
	opinions := map[string]reweigh.Opinion{"a": {}, "gone": {}}
	searches := []reweigh.Search{{Documents: opinions}, {Documents: opinions}, {Documents: map[string]reweigh.Opinion{"away": {}}}}
	if got, want := unknownDocuments(searches, there), []string{"away", "gone"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestShowSaysWhatNeighborsWereLearnedFrom(t *testing.T) {
	const topics = 12
	collection := reweigh.NewCollection()
	var searches []reweigh.Search
	rows := []simmatrix.TermRow{{Term: "wrong", DocFreq: 10 * topics}}
	for k := range topics {
		topic, right := fmt.Sprintf("topic%02d", k), fmt.Sprintf("right%02d", k)
		rows = append(rows, simmatrix.TermRow{Term: right, DocFreq: 10},
			simmatrix.TermRow{Term: topic, DocFreq: 20})
		opinions := map[string]reweigh.Opinion{}
		for d := range 10 {
			for _, word := range []string{"wrong", right} {
				id := fmt.Sprint(topic, word, d)
				check.OK(t, collection.Add(id, [][]string{{topic, word}}))
				if d < 5 && word == right {
					opinions[id] = reweigh.Opinion{Gain: 1}
				}
			}
		}
		clicked := maps.Clone(opinions)
		clicked[fmt.Sprint(topic, right, 0)] = reweigh.Opinion{Gain: 1, Count: 1 + 30*(k%2)}
		for _, documents := range []map[string]reweigh.Opinion{clicked, opinions, opinions, opinions} { // one for each part of the queries
			searches = append(searches, reweigh.Search{Terms: []string{topic}, Documents: documents})
		}
	}
	m := matrixOf(t, simmatrix.Meta{Source: "by hand", Docs: 20 * topics}, rows...)
	r, err := reweigh.Learn(t.Context(), m, collection, searches,
		reweigh.Options{Strength: 0.25, Added: 30, MaxShare: 0.5, Unit: "click"}, nil)
	check.OK(t, err)
	name := encodedFile(t, "learned.akin", r.Matrix)
	for topic, want := range map[string]string{"topic00": "learned: 1 click\n", "topic01": "learned: 31 clicks\n"} {
		_, line, _ := strings.Cut(mustAkin(t, "matrix", "show", name, topic)+"\n", "right")
		contains(t, topic, line, want)
	}
}

func TestQueryChoosesTheDocuments(t *testing.T) {
	engine := demoEngine(t)
	const query = `{"match":{"body":"order"}}`
	matching := total(t, engine+"/"+demoIndices+"/_search", `{"query":`+query+`}`)
	m, stderr := built(t, fromDemo(t, "--query", query, "--min-df", "2", "--language-model", "none")...)
	check.That(t, m.Meta().Docs == uint64(matching) && matching != 0, "learned from %d documents, %d match\n%s", m.Meta().Docs, matching, stderr)
	check.That(t, strings.Contains(m.Meta().Source, query), "the source is %q", m.Meta().Source)
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
		m, stderr := built(t, fromDemo(t, append(tt.args, "--language-model", "none")...)...)
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
		m, stderr := built(t, fromDemo(t, append(args, "--min-df", "2", "--language-model", "none")...)...)
		want := uint64(150)
		if len(args) == 0 {
			want = 645
		}
		check.That(t, m.Meta().Docs == want, "%q: learned from %d documents, want %d\n%s", args, m.Meta().Docs, want, stderr)
		return m.Checksum()
	}
	all, first := checksum(), checksum("--max-docs", "150")
	if first == all || first != checksum("--max-docs", "150") {
		t.Error("the choice is none, or another one the second time")
	}
	if m, _ := built(t, fromDemo(t, "--max-docs", "100000", "--language-model", "none")...); m.Meta().Docs != 645 {
		t.Errorf("a limit that is not reached: %d documents", m.Meta().Docs)
	}
}

func TestSampleHasSoManyWords(t *testing.T) {
	client := check.Got((&cli.Cluster{URL: demoEngine(t)}).Open())(t)
	defer client.Close()
	x := &indexReading{
		Client: client, Scan: documents.ScanOptions{Index: demoIndices, Fields: []string{"title", "body"}}, Report: cli.NewProgress(io.Discard),
	}
	size := func(words, some int) int { return check.Got(x.SampleSize(t.Context(), words, some))(t) }
	check.Equal(t, 0, size(5000, 645), "an index of no more than the probe")
	check.Equal(t, 0, size(1_000_000, 100), "fewer words than that")
	sample := size(5000, 100)
	x.MaxDocs = sample
	texts, _, err := x.Texts(t.Context())
	check.OK(t, err)
	words := texts.Corpus(nil).MeanLength() * float64(texts.Docs())
	check.That(t, texts.Docs() == sample && words > 4000 && words < 6000, "%d documents of %d have %v words", texts.Docs(), sample, words)
}

func TestWordsAreTakenInLowerCase(t *testing.T) {
	words, _ := built(t, fromDemo(t, "--words", "--language-model", "none")...)
	terms, _ := built(t, fromDemo(t, "--language-model", "none")...)
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
	check.That(t, strings.Contains(said, "1 of 1 slices have been read before") && !isThere(dir), "the spool is there: %v\n%s", isThere(dir), said)
	if got.Checksum() != want.Checksum() {
		t.Error("the matrix is another one than without a spool")
	}
}
