package source

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

// oddTerms are terms that a list of similarities has to keep as they are.
var oddTerms = []string{
	"#car", "%bus", " van ", `"lorry"`, "0.5", "a\x00b", "b\u00a0c", "東京", "\u2028", "-> x", strings.Repeat("w", 4096),
	lines.ByteOrderMark + "first", lines.ByteOrderMark, "\x01", "new york", `back\ slash`, "_", "_ x",
	"\x1fheart\x1fattack", "\x1fpoint\x1f\x1fcare", "\x1f_\x1fx", "\x1fend\\\x1fx", "\x1fa b\x1fc",
}

// oddMatrix returns a matrix of n terms, oddTerms among them, in which every
// term has neighbors or is one.
func oddMatrix(tb testing.TB, seed uint64, n int) *simmatrix.Matrix {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	rows := make([]simmatrix.TermRow, n)
	for i := range rows {
		rows[i] = simmatrix.TermRow{Term: fmt.Sprint("term", i), DocFreq: r.Uint32N(3)}
		if i < len(oddTerms) {
			rows[i].Term = oddTerms[i]
		}
	}
	for i := range rows {
		next := rows[(i+1)%n].Term
		rows[i].Neighbors = append(rows[i].Neighbors, simmatrix.Neighbor{Term: next, Similarity: simmatrix.FromUnits(uint16(1 + r.UintN(simmatrix.UnitsOfOne)))})
		for j := range rows {
			if rows[j].Term != next && j != i && r.UintN(4) == 0 {
				rows[i].Neighbors = append(rows[i].Neighbors, simmatrix.Neighbor{Term: rows[j].Term, Similarity: simmatrix.QuantizeSimilarity(r.Float64())})
			}
		}
	}
	return matrixtest.New(tb, simmatrix.Meta{Source: "odd", Docs: 9}, rows)
}

// sameRows compares the rows of two matrices.
func sameRows(tb testing.TB, want, got *simmatrix.Matrix) {
	tb.Helper()
	check.Equal(tb, want.Table().Terms, got.Table().Terms)
	check.Equal(tb, want.Table().DocFreqs, got.Table().DocFreqs)
	check.Equal(tb, want.Table().Entries, got.Table().Entries, cmp.AllowUnexported(simmatrix.Entries{}))
}

// asListed returns m without what a list of similarities has no place
// for.
func asListed(tb testing.TB, m *simmatrix.Matrix) *simmatrix.Matrix {
	tb.Helper()
	var rows []simmatrix.TermRow
	for term, row := range m.Rows() {
		r := simmatrix.TermRow{Term: term}
		for n := range row.All() {
			r.Neighbors = append(r.Neighbors, simmatrix.Neighbor{Term: n.Term, Similarity: n.Similarity})
		}
		rows = append(rows, r)
	}
	return matrixtest.New(tb, simmatrix.Meta{}, rows)
}

func TestTSVRoundTripGivesTheSameRows(t *testing.T) {
	for seed := range uint64(20) {
		m := oddMatrix(t, seed, len(oddTerms)+int(seed))
		var tsv bytes.Buffer
		check.OK(t, WriteTSV(&tsv, m))
		again := check.Got(ReadTSV(iotest.HalfReader(bytes.NewReader(tsv.Bytes())), ""))(t)
		sameRows(t, asListed(t, m), again)
	}
}

func TestSixDecimalsDistinguishAllSimilarities(t *testing.T) {
	for u := range uint16(simmatrix.UnitsOfOne) {
		s, ok := lines.ParseDecimal(fmt.Sprintf("%.*f", similarityDigits, float64(u+1)/simmatrix.UnitsOfOne), 64)
		got := units(s)
		check.Must(t, ok && got == u+1, "%d: %v, %d", u+1, s, got)
	}
}

func TestWriteTSVWritesWhatItPromises(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: "van", Similarity: 0.5}, {Term: "bus", Similarity: 1}}},
		{Term: "bus", DocFreq: 3, Neighbors: []simmatrix.Neighbor{{Term: "van", Similarity: 1.0 / 65535}}},
		{Term: "van"},
		{Term: "alone"},
	})
	var tsv strings.Builder
	check.OK(t, WriteTSV(&tsv, m))
	want := "bus\tvan\t0.000015\ncar\tbus\t1.000000\ncar\tvan\t0.500008\n" // 1/65535; 32768/65535
	check.Equal(t, want, tsv.String())
}

func TestReadTSVReadsWhatPeopleWrite(t *testing.T) {
	for _, tt := range []struct {
		name, tsv string
		want      map[string]string
	}{
		{"one way", "car\tbus\t0.5\n", map[string]string{"car": "bus 0.5000", "bus": ""}},
		{"both ways", "car\tbus\t0.5\nbus\tcar\t.5\n", map[string]string{"car": "bus 0.5000", "bus": "car 0.5000"}},
		{
			"Windows, no end, empty lines", "\uFEFFcar\tbus\t1\r\n\r\n\nvan\tbus\t5e-1",
			map[string]string{"car": "bus 1.0000", "van": "bus 0.5000", "bus": ""},
		},
		{"no comments", "#car\tbus\t1\n%\t#\t1\n", map[string]string{"#car": "bus 1.0000", "bus": "", "%": "# 1.0000", "#": ""}},
		{"words with blanks between them are an expression", " car \ta  _ b\t 1 \n", map[string]string{"car": "\x1fa\x1f\x1fb 1.0000", "\x1fa\x1f\x1fb": ""}},
		{"a blank behind a backslash is part of a term", `new\ york` + "\tcity\t1\n", map[string]string{"new york": "city 1.0000", "city": ""}},
		{"what can be no expression is a term", "a b c d e f g h i\tz\t1\n", map[string]string{"a b c d e f g h i": "z 1.0000", "z": ""}},
		{"zero and what rounds to it make no entry", "car\tbus\t0\nbus\tcar\t1e-9\n", map[string]string{"car": "", "bus": ""}},
		{"the diagonal is implied", "car\t" + "car\t1\nbus\t" + "bus\t0.9995\nvan\t" + "van\t1.0005\n", map[string]string{"car": "", "bus": "", "van": ""}},
		{"again the same", "car\tbus\t0.5\ncar\tbus\t0.50\n", map[string]string{"car": "bus 0.5000", "bus": ""}},
		{
			"4 KB and control characters", strings.Repeat("a", 4096) + "\t\x01\x7f\t1\n",
			map[string]string{strings.Repeat("a", 4096): "\x01\x7f 1.0000", "\x01\x7f": ""},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := check.Got(ReadTSV(strings.NewReader(tt.tsv), "given"))(t)
			got := map[string]string{}
			for term, row := range m.Rows() {
				var all []string
				for n := range row.All() {
					all = append(all, fmt.Sprintf("%s %.4f", n.Term, n.Similarity))
				}
				got[term] = strings.Join(all, ", ")
			}
			check.Equal(t, tt.want, got)
			meta := m.Meta()
			check.That(t, meta.Source == "given" && cmp.Diff(map[string]string{"neighbors": "10000"}, meta.Params) == "", "%+v", meta)
		})
	}
}

func TestReadTSVNamesTheBadLine(t *testing.T) {
	for _, tt := range []struct{ name, tsv, message string }{
		{name: "two fields", tsv: "a\tb\t1\n\na\tb\n", message: "line 3: want a term"},
		{name: "four fields", tsv: "a\tb\t1\t\n", message: "line 1: want a term"},
		{name: "only blanks", tsv: "  \n", message: "line 1: want a term"},
		{name: "no term", tsv: "\tb\t1\n", message: `line 1: term ""`},
		{name: "no neighbor", tsv: "a\t\t1\n", message: `line 1: term ""`},
		{name: "not UTF-8", tsv: "a\t\xff\t1\n", message: `line 1: term "\xff"`},
		{name: "too long", tsv: strings.Repeat("a", simmatrix.MaxTermBytes+1) + "\tb\t1\n", message: "line 1: term"},
		{name: "carriage return", tsv: "a\rb\tc\t1\n", message: `line 1: term "a\rb" holds`},
		{name: "no number", tsv: "a\tb\thigh\n", message: `line 1: "high" is not a finite decimal number`},
		{name: "decimal comma", tsv: "a\tb\t0,5\n", message: `line 1: "0,5"`},
		{name: "percent", tsv: "a\tb\t50%\n", message: `line 1: "50%"`},
		{name: "hexadecimal", tsv: "a\tb\t0x1p-1\n", message: `line 1: "0x1p-1"`},
		{name: "empty", tsv: "a\tb\t\n", message: `line 1: ""`},
		{name: "NaN", tsv: "a\tb\tNaN\n", message: `line 1: "NaN"`},
		{name: "infinite", tsv: "a\tb\t-inf\n", message: `line 1: "-inf"`},
		{name: "too large for a number", tsv: "a\tb\t1e999\n", message: `line 1: "1e999"`},
		{name: "negative", tsv: "a\tb\t0.1\na\tc\t-0.1\n", message: "line 2: similarity is not in [0, 1]: -0.1"},
		{name: "above 1", tsv: "a\tb\t1.0001\n", message: "line 1: similarity is not in [0, 1]: 1.0001"},
		{name: "diagonal", tsv: "a\t" + "a\t0.99\n", message: `line 1: similarity of "a" to itself: 0.99, want 1`},
		{name: "diagonal above 1", tsv: "a\t" + "a\t2\n", message: `itself: 2, want 1`},
		{name: "another similarity", tsv: "c\tb\t1\na\tb\t.5\nb\ta\t.4\nc\tb\t.9\na\tb\t.6\n", message: `line 4: the similarity of "c" and "b" was given before`},
		{name: "zero after all", tsv: "a\tb\t.5\na\tb\t0\n", message: `line 2: the similarity of`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ReadTSV(strings.NewReader(tt.tsv), "")
			if m != nil || !errors.Is(err, ErrList) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %.200v, want ErrGiven with %q", err, tt.message)
			}
		})
	}
	check.Error(t, simmatrix.ErrNoVocabulary, check.ErrOf(ReadTSV(strings.NewReader("\n\n"), "")))
}

// manyRepeats is so many that the entries of all, 16 bytes each, are more than
// what reading may allocate.
const manyRepeats = 1 << 20

func TestRepeatedLinesOfTSVTakeNoMemory(t *testing.T) {
	file := strings.Repeat("a\tb\t1\n", manyRepeats)
	var err error
	used := allocated(func() { _, err = ReadTSV(strings.NewReader(file), "") })
	check.That(t, err == nil && used <= manyRepeats*16, "%d bytes for one pair, error %v", used, err)
}

func TestATermThatNoLineCanHoldIsNotWritten(t *testing.T) {
	for _, term := range []string{"a\tb", "a\rb", "a\nb"} {
		m := matrixtest.New(t, simmatrix.Meta{}, []simmatrix.TermRow{{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: term, Similarity: 1}}}, {Term: term}})
		var out strings.Builder
		if err := WriteTSV(&out, m); !errors.Is(err, ErrList) || !strings.Contains(err.Error(), fmt.Sprintf("%q", term)) || out.Len() > 0 {
			t.Errorf("%q: error %v, %d bytes written", term, err, out.Len())
		}
	}
}

// A fullDisk takes n bytes and no more.
type fullDisk struct{ n int }

var errFull = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.n -= len(p); d.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestErrorsOfWritersComeBack(t *testing.T) {
	m := oddMatrix(t, 1, 40)
	for _, n := range []int{0, 5000} {
		check.Error(t, errFull, WriteTSV(&fullDisk{n}, m))
	}
}

// FuzzReadTSV checks that what is read is no larger than the file and the same
// after it is written and read again.
func FuzzReadTSV(f *testing.F) {
	for _, seed := range []string{
		"car\tbus\t0.5\nbus\tcar\t.5\n", "\uFEFF\uFEFFa\tb\t1\r\n\r\n", "a\t" + "a\t1\na\tb\t-1\n", gzipped(f, "a\tb\t1e-9\n"), "a\tb\t.1\na\tb\t.2\n",
		"a\rb\tc\t1\n", "a\tb\t2\nb\ta\tNaN\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := ReadTSV(bytes.NewReader(file), "fuzz")
		if err != nil {
			checkGivenError(t, m, err)
			return
		}
		if !bytes.HasPrefix(file, []byte("\x1f\x8b")) && len(m.Table().Terms)+len(m.Table().Cols)/2 > len(file) {
			t.Fatalf("%d terms, %d entries of a file of %d bytes", len(m.Table().Terms), len(m.Table().Cols), len(file))
		}
		var tsv bytes.Buffer
		check.OK(t, WriteTSV(&tsv, m))
		again, err := ReadTSV(&tsv, "")
		if errors.Is(err, simmatrix.ErrNoVocabulary) && len(m.Table().Cols) == 0 {
			return
		}
		check.OK(t, err)
		for term, row := range m.Rows() { // a term without entries may be lost
			diff := cmp.Diff(matrixtest.Of(row), matrixtest.Of(again.Row(term)))
			check.Must(t, diff == "", "%q: %s", term, diff)
		}
		check.Must(t, m.Meta().NonZeros == again.Meta().NonZeros && again.Len() <= m.Len(), "%+v, %+v", m.Meta(), again.Meta())
	})
}

// checkGivenError checks that an error says what kind it is and where.
func checkGivenError(t *testing.T, m *simmatrix.Matrix, err error) {
	t.Helper()
	check.Must(t, m == nil && (errors.Is(err, ErrList) || errors.Is(err, simmatrix.ErrNoVocabulary)), "%v, %v", m, err)
	check.Must(t, !errors.Is(err, ErrList) || strings.Contains(err.Error(), "line "), "%v names no line", err)
}
