package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

func mustThesaurus(tb testing.TB, opts ThesaurusOptions, text string) (*simmatrix.Matrix, ThesaurusCounts) {
	tb.Helper()
	m, counts, err := ReadThesaurus(iotest.OneByteReader(strings.NewReader(text)), opts)
	check.OK(tb, err)
	return m, counts
}

// neighborLists returns the rows as text: the neighbors, and the similarity
// behind one that is not 0.2.
func neighborLists(m *simmatrix.Matrix) map[string]string {
	lists := map[string]string{}
	for term, row := range m.Rows() {
		var words []string
		for n := range row.All() {
			if n.Similarity == simmatrix.QuantizeSimilarity(0.2) {
				words = append(words, simmatrix.Spelled(n.Term))
			} else {
				words = append(words, fmt.Sprintf("%s:%.4g", simmatrix.Spelled(n.Term), n.Similarity))
			}
		}
		lists[simmatrix.Spelled(term)] = strings.Join(words, " ")
	}
	return lists
}

func TestReadThesaurusFollowsSolrsRules(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       map[string]string
	}{
		{"a group", "car, automobile, auto\n", map[string]string{"car": "auto automobile", "automobile": "auto car", "auto": "automobile car"}},
		{"a rule goes one way", "jag, beemer => car, automobile\n", map[string]string{"jag": "automobile car", "beemer": "automobile car", "car": "", "automobile": ""}},
		{"a term on both sides", "x, y => x, z", map[string]string{"x": "z", "y": "x z", "z": ""}},
		{"lines are merged", "a => b\na => c\nb, a\n", map[string]string{"a": "b c", "b": "a", "c": ""}},
		{"comments and blank lines", "#a, b\n\n  \t\n# c => d\na, c\n", map[string]string{"a": "c", "c": "a"}},
		{"no comment behind blanks", " #a, b\nc, d # e\n", map[string]string{"#a": "b", "b": "#a", "c": "d # e:0.5", "d # e": "c:0.5"}},
		{"no blanks", "a,b\nc=>d\n", map[string]string{"a": "b", "b": "a", "c": "d", "d": ""}},
		{"tabs", "\ta\t,\tb\t=>\tc\t\n", map[string]string{"a": "c", "b": "c", "c": ""}},
		{"a last comma", "i-pod, => ipod,\n", map[string]string{"i-pod": "ipod", "ipod": ""}}, // as in Solr's own sample
		{"empty entries", "a,, b, ,\n", map[string]string{"a": "b", "b": "a"}},
		{"escaped comma", `1\,000, mille` + "\n", map[string]string{"1,000": "mille", "mille": "1,000"}},
		{"escaped arrow", `a\=>b, c` + "\n", map[string]string{"a=>b": "c", "c": "a=>b"}},
		{"escaped backslash", `c:\\, d`, map[string]string{`c:\`: "d", "d": `c:\`}},
		{"escaped letters", `\a\b\é, c`, map[string]string{"abé": "c", "c": "abé"}},
		{"escaped number sign", `\#1, one`, map[string]string{"#1": "one", "one": "#1"}},
		{"backslash at the end", `a, b\`, map[string]string{"a": `b\`, `b\`: "a"}},
		{"escaped blank at the end", `a, b\ `, map[string]string{"a": "b", "b": "a"}},
		{"equals and greater without the other", "a=b, c>d, e= >f\n", map[string]string{"a=b": "e= >f:0.5 c>d", "c>d": "e= >f:0.5 a=b", "e= >f": "a=b:0.5 c>d:0.5"}},
		{"case and other scripts stay", "Auto, Wagen, автомобиль\n", map[string]string{"Auto": "Wagen автомобиль", "Wagen": "Auto автомобиль", "автомобиль": "Auto Wagen"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := mustThesaurus(t, DefaultThesaurusOptions(), tt.text)
			check.Equal(t, tt.want, neighborLists(m))
		})
	}
}

func TestReadThesaurusReadsWordNet(t *testing.T) {
	const file = `
s(104167661,1,'car',n,1,71).
s(104167661,2,'motor car',n,1,0).
s(104167661,3,'automobile',n,1,6).
s(400000001,1,'o''clock',r,1,2).
s(400000001,2,'''clock',r,1).
s(300000001,1,'alone',s,1,0).
s(104167661,4,'auto',n,1,10).
`
	m, counts := mustThesaurus(t, DefaultThesaurusOptions(), file)
	want := map[string]string{
		"car": "motor car:0.5 auto automobile", "automobile": "motor car:0.5 auto car", "auto": "motor car:0.5 automobile car",
		"motor car": "auto:0.5 automobile:0.5 car:0.5",
		"o'clock":   "'clock", "'clock": "o'clock",
	}
	check.Equal(t, want, neighborLists(m))
	wantCounts := ThesaurusCounts{Format: formatWordNet, Groups: 3, Terms: 6, Pairs: 14, Expressions: 1}
	check.Equal(t, wantCounts, counts)
}

func TestReadThesaurusTakesASimilarityFromALine(t *testing.T) {
	m, _ := mustThesaurus(t, DefaultThesaurusOptions(), `a, b
# akin: similarity 0.8
c, d
# a comment that mentions akin: similarity 0.1
e => f
#akin:similarity 1
g, h
	# akin: similarity 7
`)
	want := map[string]string{
		"a": "b", "b": "a", "c": "d:0.8", "d": "c:0.8", "e": "f:0.8", "f": "", "g": "h:1", "h": "g:1",
	} // behind a blank a # is an entry, here of four words
	check.Equal(t, want, neighborLists(m))
	o := DefaultThesaurusOptions()
	o.Similarity = 0.25
	m, counts := mustThesaurus(t, o, "x, y\n# akin: similarity 0.1\ny, x, z\nx => y\n")
	if diff := gocmp.Diff(map[string]string{"x": "y:0.25 z:0.1", "y": "x:0.25 z:0.1", "z": "x:0.1 y:0.1"}, neighborLists(m)); diff != "" { // the largest counts
		t.Error(diff)
	}
	check.That(t, counts.Duplicates == 3 && counts.Groups == 2 && counts.Rules == 1, "%+v", counts)
}

func TestReadThesaurusTakesASimilarityFromALineOfWordNet(t *testing.T) {
	m, counts := mustThesaurus(t, DefaultThesaurusOptions(), `# a comment first
s(1,1,'a',n,1,0).
s(1,2,'b',n,1,0).
# akin: similarity 0.8
s(2,1,'c x',n,1,0).
s(2,2,'c',n,1,0).
# akin: similarity 0.1
s(2,3,'d',n,1,0).
s(1,3,'e',n,1,0).
`)
	want := map[string]string{"a": "b e", "b": "a e", "e": "a b", "c": "c x:0.8 d:0.8", "d": "c x:0.8 c:0.8", "c x": "c:0.8 d:0.8"}
	diff := gocmp.Diff(want, neighborLists(m))
	check.That(t, diff == "" && counts.Groups == 2 && counts.Expressions == 1, "%s%+v", diff, counts)
}

func TestReadThesaurusTakesExactEntriesAndExpressions(t *testing.T) {
	m, counts := mustThesaurus(t, DefaultThesaurusOptions(), "ny => new \t york\n# akin: exact\nnyc, new york  city, big apple\n# akin: similarity 0.3\ncar, motor car\n")
	check.Equal(t, map[string]string{
		"ny": "new york:0.5", "new york": "", "nyc": "big apple:1 new york city:1", "new york city": "big apple:1 nyc:1", "big apple": "new york city:1 nyc:1",
		"car": "motor car:0.3", "motor car": "car:0.3",
	}, neighborLists(m))
	check.Equal(t, ThesaurusCounts{Format: formatSolr, Groups: 2, Rules: 1, Terms: 7, Pairs: 9, Expressions: 4}, counts)
}

func TestReadThesaurusLeavesOutEntriesOfTooManyWords(t *testing.T) {
	_, counts := mustThesaurus(t, DefaultThesaurusOptions(), "a, b, 1 2 3 4 5 6 7 8 9\nc, 1 2 3 4 5 6 7 8, d\n")
	check.That(t, counts.Skipped == 1 && counts.Expressions == 1 && slices.Equal(counts.Examples, []string{`line 1: "1 2 3 4 5 6 7 8 9"`}), "%+v", counts)
	for _, text := range []string{"a, 1 2 3 4 5 6 7 8 9\n", "s(1,1,'a',n,1,0).\ns(1,2,'1 2 3 4 5 6 7 8 9',n,1,0).\n"} {
		_, _, err := ReadThesaurus(strings.NewReader(text), DefaultThesaurusOptions())
		check.That(t, errors.Is(err, simmatrix.ErrNoVocabulary) && strings.Contains(err.Error(), "1 entries of too many words were skipped"), "%q: %v", text, err)
	}
}

func TestReadThesaurusCutsLongRows(t *testing.T) {
	o := DefaultThesaurusOptions()
	o.Neighbors = 2
	m, counts := mustThesaurus(t, o, "e, d, c, b, a\n# akin: similarity 0.9\na, z, y\nx => a, b, c, y\n")
	want := map[string]string{
		"a": "y:0.9 z:0.9", "b": "a c", "c": "a b", "d": "a b", "e": "a b",
		"x": "a:0.9 b:0.9", "y": "a:0.9 z:0.9", "z": "a:0.9 y:0.9",
	}
	check.Equal(t, want, neighborLists(m))
	// 20 pairs of the first line, 6 and 4 of the others; 16 of 30 are kept.
	check.That(t, counts.Pairs == 16 && counts.Duplicates == 0 && counts.Terms == 8, "%+v", counts)
}

func TestReadThesaurusIsBounded(t *testing.T) {
	var group strings.Builder // as many entries as a line can have
	for i := 0; group.Len() < lines.MaxBytes-20; i++ {
		fmt.Fprintf(&group, "%x,", i)
	}
	o := DefaultThesaurusOptions()
	o.Neighbors = 1
	file := group.String() + "\n" + strings.Replace(group.String(), ",", "=>", 1) + "\n"
	m, counts, err := ReadThesaurus(strings.NewReader(file), o)
	check.OK(t, err)
	n := m.Len()
	check.That(t, n >= 100_000 && counts.Pairs == n, "%+v", counts)
	o.Neighbors = 10
	th := newThesaurus(o, 1000, 1)
	want := fmt.Sprintf("line 2: a group of %d terms makes %d pairs, %d with those before it, at most 1000: allow fewer neighbors", m.Len(), 10*m.Len(), 10*m.Len()+2)
	check.Message(t, want, th.read(strings.NewReader("a, b\n"+group.String())))
	if len(th.pairs.terms) != 2 { // nothing is stored of a group that is too large
		t.Errorf("%d terms", len(th.pairs.terms))
	}
	th = newThesaurus(o, 2, 1)
	if err := th.read(strings.NewReader("a, b\n")); err != nil { // just as many as are allowed
		t.Error(err)
	}
	th = newThesaurus(o, 1, 2)
	err = th.read(strings.NewReader("s(7,1,'a',n,1,0).\ns(7,2,'b',n,1,0).\n"))
	check.Message(t, "set of synonyms 7: a group of 2 terms makes 2 pairs", err)
}

// An endless is a file without an end.
type endless struct {
	line func(n int) string
	n    int
	rest string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest == "" {
		e.n++
		e.rest = e.line(e.n) + "\n"
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestReadingAnEndlessThesaurusEnds(t *testing.T) {
	for want, line := range map[string]func(n int) string{
		"line 501: a group of 2 terms makes 2 pairs, 1002 with those before it, at most 1000": func(n int) string { return fmt.Sprintf("a b%d, c d%d", n, n) },
		"line 501: a group of 2 terms makes 2 pairs":                                          func(int) string { return "always, the same" },
		"line 1: longer than 1048576 bytes":                                                   func(int) string { return strings.Repeat("a, ", 1<<19) },
		"line 3: more than 2 words or sets of synonyms":                                       func(n int) string { return fmt.Sprintf("s(%d,1,'a',n,1,0).", n) },
	} {
		check.Message(t, want, newThesaurus(DefaultThesaurusOptions(), 1000, 2).read(&endless{line: line}))
	}
}

func TestEntriesThatBeginAlikeAndCyclesAreTaken(t *testing.T) {
	var file strings.Builder
	const heads = 5000
	for n := range 8 * heads { // each begins like the one before
		fmt.Fprintf(&file, "%s => next%d\n", strings.Repeat(fmt.Sprintf("w%d ", n/8), n%8+1), n%8)
		if n%8 > 0 {
			fmt.Fprintf(&file, "next%d => next%d\n", n%8, (n+1)%8)
		}
	}
	m, counts := mustThesaurus(t, DefaultThesaurusOptions(), file.String())
	check.That(t, m.Len() == 8*heads+8 && counts.Expressions == 7*heads && counts.Rules == 15*heads, "%d terms, %+v", m.Len(), counts)
}

func TestSensesOfWordNetAreBounded(t *testing.T) {
	skipped := strings.Repeat("s(7,1,'1 2 3 4 5 6 7 8 9',n,1,0).\n", 1000)
	th := newThesaurus(DefaultThesaurusOptions(), 10, 2)
	err := th.read(strings.NewReader(skipped + "s(7,2,'a',n,1,0).\ns(8,1,'b',n,1,0).\n"))
	check.That(t, err == nil && th.counts.Groups == 2, "%+v, error %v", th.counts, err)
	for _, text := range []string{"s(7,1,'a',n,1,0).\n", "s(9,1,'1 2 3 4 5 6 7 8 9',n,1,0).\n"} { // a third word, a third set
		th = newThesaurus(DefaultThesaurusOptions(), 10, 2)
		err := th.read(strings.NewReader(skipped + "s(7,2,'a',n,1,0).\ns(8,1,'b',n,1,0).\n" + text))
		check.Message(t, "line 1003: more than 2 words or sets of synonyms", err, text)
	}
	th = newThesaurus(DefaultThesaurusOptions(), 10, 2)
	err = th.addLine([]byte("s(7,1,'1 2 3 4 5 6 7 8 9',n,1,0)."))
	check.That(t, err == nil && th.senses == 0, "%d senses of a skipped word, error %v", th.senses, err)
}

func TestReadThesaurusNamesTheBadLine(t *testing.T) {
	long := strings.Repeat("a", simmatrix.MaxTermBytes+1)
	for _, tt := range []struct{ name, text, message string }{
		{"nothing on the right", "a, b\na =>\n", "line 2: one side of => is empty"},
		{"nothing on the left", "a, b\n=> a\n", "line 2: one side of => is empty"},
		{"commas on one side", "a => ,\n", "line 1: one side of => is empty"},
		{"two arrows", "a, b\n\na => b => c\n", "line 3: more than one =>"},
		{"not UTF-8", "a, b\n\xff, c\n", "line 2: not UTF-8"},
		{"not UTF-8 by a comment", "# caf\xe9\n", "line 1: not UTF-8"},
		{"carriage returns", "a, b\rc, d\r", "line 1: a carriage return"},
		{"NUL", "a, b\nc\x00d, e\n", "line 2: the control character U+0000"},
		{"the mark of expressions", "\x1fa\x1fb, c\n", "line 1: the control character U+001F"},
		{"too long", "a, b\nc, " + long + "\n", "line 2: term"},
		{"similarity 0", "# akin: similarity 0\n", `line 1: similarity "0"`},
		{"similarity above 1", "a, b\n#akin: similarity 1.01", "line 2: similarity"},
		{"negative similarity", "# akin: similarity -1\n", "line 1: similarity"},
		{"similarity that is no number", "# akin: similarity NaN\n", "line 1: similarity"},
		{"no similarity", "# akin: similarity\n", "line 1:"},
		{"two similarities", "# akin: similarity 0.1 0.2\n", "line 1:"},
		{"another directive", "# akin: weight 0.1\n", `line 1: " weight 0.1": want exact, or similarity`},
		{"WordNet, then Solr", "s(1,1,'a',n,1,0).\na, b\n", "line 2: want s(SYNSET,"},
		{"WordNet with a comment behind a blank", "s(1,1,'a',n,1,0).\n # akin: similarity 1\n", "line 2: want s("},
		{"WordNet with a bad similarity", "s(1,1,'a',n,1,0).\n# akin: similarity 2\n", `line 2: similarity "2"`},
		{"WordNet without the end", "s(1,1,'a',n,1,0)\n", "line 1: want s("},
		{"WordNet without a number", "s(1,1,'a',n,1,0).\ns(x,1,'a',n,1,0).\n", "line 2: the number of a set"},
		{"WordNet with a negative number", "s(1,1,'a',n,1,0).\ns(-1,1,'a',n,1,0).\n", "line 2: the number of a set"},
		{"WordNet without quotes", "s(1,1,a,n,1,0).\n", "line 1: want s("},
		{"WordNet with a single quote", "s(1,1,'o'clock',n,1,0).\n", "line 1: want s("},
		{"WordNet without a closing quote", "s(1,1,'a,n,1,0).\n", "line 1: want s("},
		{"WordNet of an unknown type", "s(1,1,'a',x,1,0).\n", "line 1: want s("},
		{"WordNet with too many fields", "s(1,1,'a',n,1,0,0).\n", "line 1: want s("},
		{"WordNet with too few", "s(1,1,'a',n).\n", "line 1: want s("},
		{"WordNet with letters for a count", "s(1,1,'a',n,1,x).\n", "line 1: want s("},
		{"WordNet without a word", "s(1,1,' ',n,1,0).\n", "line 1: the word is empty"},
		{"WordNet with a word too long", "s(1,1,'" + long + "',n,1,0).\n", "line 1: term"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, counts, err := ReadThesaurus(strings.NewReader(tt.text), DefaultThesaurusOptions())
			if m != nil || counts.Groups != 0 || !errors.Is(err, ErrThesaurus) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %.200v, want ErrThesaurus with %q", err, tt.message)
			}
		})
	}
	for _, text := range []string{"", "# nothing\n\n", "a\nb\n", "a => a\n", ", ,\n", "s(1,1,'a',n,1,0).\n"} {
		_, _, err := ReadThesaurus(strings.NewReader(text), DefaultThesaurusOptions())
		check.That(t, errors.Is(err, ErrThesaurus) && errors.Is(err, simmatrix.ErrNoVocabulary), "%q: %v", text, err)
	}
}

func TestWordsThatTheAnalyzerSplitsHaveTheSimilarityOfExpressions(t *testing.T) {
	o := DefaultThesaurusOptions()
	o.Splits = func([]string) (func(string) bool, error) {
		return func(term string) bool { return strings.Contains(term, "-") }, nil
	}
	for text, want := range map[string]float32{
		"e-mail, email\n": 0.5,
		"car, auto\n":     0.2,
		"# akin: similarity 0.1\ne-mail, email\n":                 0.1,
		"# akin: similarity 0.2\ne-mail, email\n":                 0.2, // as it says
		"e-mail, email\n# akin: exact\nt-shirt, tee\ntv, telly\n": 0.5,
	} {
		m, _ := mustThesaurus(t, o, text)
		for _, term := range []string{"email", "car"} {
			for n := range m.Row(term).All() {
				check.That(t, max(n.Similarity-want, want-n.Similarity) < 1e-4, "%q: %v, want %v", text, n.Similarity, want)
			}
		}
	}
	o.Splits = func([]string) (func(string) bool, error) { return nil, errors.ErrUnsupported }
	_, _, err := ReadThesaurus(strings.NewReader("a, b\n"), o)
	check.Error(t, errors.ErrUnsupported, err, "the error of the analyzer")
}

func TestThesaurusMetaHasItsSettings(t *testing.T) {
	o := DefaultThesaurusOptions()
	m, _ := mustThesaurus(t, o, "a, b\n")
	want := simmatrix.Meta{
		Source: "thesaurus", Terms: 2, NonZeros: 2, MaxNeighbors: 1, Symmetric: true, Dominant: true,
		Params: map[string]string{"format": "solr", "similarity": "0.2", "neighbors": "200"},
	}
	check.Equal(t, want, m.Meta())
}

// solrRules returns m as a file of Solr's format that gives it again.
func solrRules(m *simmatrix.Matrix) string {
	escape := strings.NewReplacer(`\`, `\\`, ",", `\,`, "=", `\=`, "#", `\#`)
	var b strings.Builder
	for i, term := range m.Table().Terms {
		cols, sims := m.Table().Row(i)
		for k, col := range cols {
			fmt.Fprintf(&b, "# akin: similarity %s\n%s => %s\n",
				settings.FormatFloat(float64(sims[k])/simmatrix.UnitsOfOne), escape.Replace(simmatrix.Spelled(term)), escape.Replace(simmatrix.Spelled(m.Table().Terms[col])))
		}
	}
	return b.String()
}

func FuzzReadThesaurus(f *testing.F) {
	f.Add("car, automobile, motor car\njag => car\n", 200)
	f.Add("\ufeff# akin: similarity 0.8\r\na\\,b , c\\=>d, \\\\\r\n", 3)
	f.Add("s(104167661,1,'car',n,1,71).\ns(104167661,2,'o''clock',n,1).\n", 1)
	f.Add("a,b,c\nb=>d,e\n#akin:similarity 1e-9\nd,a\n", 2)
	f.Fuzz(func(t *testing.T, text string, neighbors int) {
		o := DefaultThesaurusOptions()
		o.Neighbors = 1 + max(neighbors, -neighbors, 0)%300
		m, counts, err := ReadThesaurus(strings.NewReader(text), o)
		if err != nil {
			check.Must(t, m == nil && errors.Is(err, ErrThesaurus), "%v, %v", m, err)
			return
		}
		meta := m.Meta()
		if counts.Pairs == 0 || counts.Pairs != int(meta.NonZeros) || counts.Terms != m.Len() || int(meta.MaxNeighbors) > o.Neighbors {
			t.Fatalf("%+v, %+v", counts, meta)
		}
		check.Must(t, counts.Rules != 0 || int(meta.MaxNeighbors) >= o.Neighbors || meta.Symmetric, "not symmetric without a rule")
		for term, row := range m.Rows() { // with a neighbor or as one
			check.Must(t, !strings.ContainsAny(term, " \t\r\n") && !row.IsZero(), "term %q", term)
		}
		again, _, err := ReadThesaurus(strings.NewReader(solrRules(m)), o)
		check.OK(t, err)
		want := matrixtest.ByTerm(m)
		for term, row := range want {
			if row == nil && again.Row(term).IsZero() {
				delete(want, term) // all its pairs were cut
			}
		}
		check.Equal(t, want, matrixtest.ByTerm(again))
	})
}

// A real thesaurus is not part of the project.
func TestReadThesaurusReadsOpenEnglishWordNet(t *testing.T) {
	file, err := os.Open(check.Data(t, filepath.Join("thesaurus", "oewn_synonyms.solr.txt")))
	check.OK(t, err)
	defer file.Close()
	m, counts, err := ReadThesaurus(file, DefaultThesaurusOptions())
	check.OK(t, err)
	// It has 44,083 groups, no rules, and a comment that names its source.
	check.That(t, counts.Groups == 44083 && counts.Rules == 0 && counts.Expressions > 40_000 && counts.Skipped == 2 && counts.Format == formatSolr, "%+v", counts)
	check.That(t, m.Meta().Symmetric, "not symmetric")
	for _, pair := range [][2]string{{"car", "automobile"}, {"car", "auto"}, {"Abkhaz", "Abkhazian"}} {
		if !slices.ContainsFunc(matrixtest.Of(m.Row(pair[0])), func(n simmatrix.Neighbor) bool { return n.Term == pair[1] }) {
			t.Errorf("%s is no neighbor of %s", pair[1], pair[0])
		}
	}
	t.Logf("%+v", counts)
}
