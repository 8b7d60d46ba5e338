package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/matrixtest"
)

func TestMatrixMarketRoundTripGivesTheSameRowsAndDocFreqs(t *testing.T) {
	for seed := range uint64(20) {
		m := oddMatrix(t, seed, len(oddTerms)+int(seed))
		var matrix, vocabulary bytes.Buffer
		if err := WriteMatrixMarket(&matrix, &vocabulary, m); err != nil {
			t.Fatal(err)
		}
		again, err := ReadMatrixMarket(iotest.HalfReader(&matrix), iotest.HalfReader(&vocabulary), DefaultListOptions())
		if err != nil {
			t.Fatal(err)
		}
		sameRows(t, m, again)
	}
}

func TestWriteMatrixMarketWritesWhatItPromises(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "car", Neighbors: []simmatrix.Neighbor{{Term: "van", Similarity: 0.5}, {Term: "bus", Similarity: 1}}},
		{Term: "bus", DocFreq: 3, Neighbors: []simmatrix.Neighbor{{Term: "van", Similarity: 1.0 / 65535}}},
		{Term: "van"},
	})
	var matrix, vocabulary strings.Builder
	if err := WriteMatrixMarket(&matrix, &vocabulary, m); err != nil {
		t.Fatal(err)
	}
	want := `%%MatrixMarket matrix coordinate real general
% Row i holds the neighbors of line i of the vocabulary.
3 3 6
1 1 1.000000
1 3 0.000015
2 2 1.000000
2 1 1.000000
2 3 0.500008
3 3 1.000000
`
	if diff := cmp.Diff(want, matrix.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("bus\t3\ncar\nvan\n", vocabulary.String()); diff != "" {
		t.Error(diff)
	}
}

func TestReadMatrixMarketReadsWhatOthersWrite(t *testing.T) {
	const vocabulary = "car\nbus\t7\nvan\n"
	neighbor := func(term string, s float64, docFreq uint32) simmatrix.Neighbor {
		return simmatrix.Neighbor{Term: term, Similarity: simmatrix.QuantizeSimilarity(s), DocFreq: docFreq}
	}
	symmetric := DefaultListOptions()
	symmetric.Symmetric = true
	oneWay := map[string][]simmatrix.Neighbor{"car": {neighbor("bus", 0.5, 7)}, "bus": nil, "van": {neighbor("bus", 0.25, 7)}}
	bothWays := map[string][]simmatrix.Neighbor{
		"car": {neighbor("bus", 0.5, 7)}, "van": {neighbor("bus", 0.25, 7)},
		"bus": {neighbor("car", 0.5, 0), neighbor("van", 0.25, 0)},
	}
	for _, tt := range []struct {
		name, matrix, vocabulary string
		opts                     ListOptions
		want                     map[string][]simmatrix.Neighbor
	}{
		// What scipy.io.mmwrite of scipy 1.15 writes of these matrices.
		{
			"scipy, general", "%%MatrixMarket matrix coordinate real general\n%\n3 3 5\n1 1 1\n1 2 5E-1\n2 2 1\n3 2 2.5E-1\n3 3 1\n",
			vocabulary, DefaultListOptions(), oneWay,
		},
		{
			"scipy, symmetric", "%%MatrixMarket matrix coordinate real symmetric\n%\n3 3 5\n1 1 1\n2 1 5E-1\n2 2 1\n3 2 2.5E-1\n3 3 1\n",
			vocabulary, DefaultListOptions(), bothWays,
		},
		{
			"scipy with precision", "%%MatrixMarket matrix coordinate real symmetric\n%\n3 3 2\n2 1 5.00000e-01\n3 2 2.50000e-01\n",
			vocabulary, DefaultListOptions(), bothWays,
		},
		{
			"comments, blank lines, Windows, cases", "%%matrixmarket MATRIX Coordinate Double General\r\n\r\n%%%\r\n 3\t3  2 \r\n% x\r\n1 2 .5\r\n \r\n3 2 .25",
			"\uFEFFcar\r\nbus\t7\r\nvan\t0\r\n\r\n\r\n", DefaultListOptions(), oneWay,
		},
		{"each line both ways", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 .5\n3 2 .25\n", vocabulary, symmetric, bothWays},
		{"both ways in the file, too", "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 2 .5\n3 2 .25\n2 1 .5\n2 3 .25\n", vocabulary, symmetric, bothWays},
		{
			"whole numbers", "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 2 1\n2 2 1\n1 3 0\n", vocabulary, DefaultListOptions(),
			map[string][]simmatrix.Neighbor{"car": {neighbor("bus", 1, 7)}, "bus": nil, "van": nil},
		},
		{"gzip", gzipped(t, "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 .5\n3 2 .25\n"), gzipped(t, vocabulary), DefaultListOptions(), oneWay},
		{
			"no entry", "%%MatrixMarket matrix coordinate real general\n3 3 0\n", vocabulary, DefaultListOptions(),
			map[string][]simmatrix.Neighbor{"car": nil, "bus": nil, "van": nil},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ReadMatrixMarket(strings.NewReader(tt.matrix), strings.NewReader(tt.vocabulary), tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]simmatrix.Neighbor{}
			for term, row := range m.Rows() {
				got[term] = slices.Collect(row.All())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if m.Row("bus").DocFreq() != 7 {
				t.Errorf("document frequency %d", m.Row("bus").DocFreq())
			}
		})
	}
}

func TestReadMatrixMarketNamesTheBadLine(t *testing.T) {
	const banner = "%%MatrixMarket matrix coordinate real general\n"
	for _, tt := range []struct{ name, matrix, vocabulary, message string }{
		{"empty", "", "a\n", "matrix: line 1: the file ends before"},
		{"no banner", "1 1 1\n", "a\n", `matrix: line 1: "1 1 1" does not begin`},
		{"vector", "%%MatrixMarket vector coordinate real general\n", "a\n", "matrix: line 1: "},
		{"dense", "%%MatrixMarket matrix array real general\n", "a\n", `matrix: line 1: format "array"`},
		{"pattern", "%%MatrixMarket matrix coordinate pattern general\n", "a\n", `matrix: line 1: field "pattern"`},
		{"complex", "%%MatrixMarket matrix coordinate complex general\n", "a\n", `matrix: line 1: field "complex"`},
		{"skew", "%%MatrixMarket matrix coordinate real skew-symmetric\n", "a\n", `matrix: line 1: symmetry "skew-symmetric"`},
		{"no size", banner + "% x\n\n", "a\n", "matrix: line 4: the file ends before"},
		{"short size", banner + "1 1\n", "a\n", "matrix: line 2: 2 numbers"},
		{"size no number", banner + "1 1 -1\n", "a\n", `matrix: line 2: "-1" is not a size`},
		{"another size", banner + "%\n2 2 1\n", "a\n", "matrix: line 3: 2 rows and 2 columns, want one of each for the 1 terms"},
		{"not square", banner + "1 2 1\n", "a\n", "matrix: line 2: 1 rows and 2 columns"},
		{"short entry", banner + "2 2 1\n1 2\n", "a\nb\n", "matrix: line 3: 2 fields"},
		{"long entry", banner + "2 2 1\n1 2 .5 0\n", "a\nb\n", "matrix: line 3: 4 fields"},
		{"index 0", banner + "2 2 1\n0 1 .5\n", "a\nb\n", `matrix: line 3: index "0" is not in [1, 2]`},
		{"index too large", banner + "2 2 1\n1 3 .5\n", "a\nb\n", `matrix: line 3: index "3" is not in [1, 2]`},
		{"index far too large", banner + "2 2 1\n1 4294967297 .5\n", "a\nb\n", `matrix: line 3: index "4294967297"`},
		{"index no number", banner + "2 2 1\nx 1 .5\n", "a\nb\n", `matrix: line 3: index "x"`},
		{"NaN", banner + "2 2 1\n1 2 nan\n", "a\nb\n", `matrix: line 3: "nan" is not a finite decimal number`},
		{"negative", banner + "2 2 1\n1 2 -.5\n", "a\nb\n", "matrix: line 3: similarity is not in [0, 1]: -0.5"},
		{"diagonal", banner + "2 2 2\n1 1 1\n2 2 .5\n", "a\nb\n", `matrix: line 4: similarity of "b" to itself: 0.5`},
		{"twice", banner + "2 2 2\n1 2 .5\n1 2 .5\n", "a\nb\n", `matrix: line 4: the similarity of "a" and "b" was given before`},
		{"twice on the diagonal", banner + "2 2 2\n1 1 1\n1 1 1\n", "a\nb\n", `matrix: line 4: the similarity of "a" and "a"`},
		{"both halves of a symmetric matrix", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 .5\n2 1 .5\n", "a\nb\n", "matrix: line 4: the similarity of"},
		{"too many entries", banner + "2 2 1\n1 2 .5\n2 1 .5\n", "a\nb\n", "matrix: line 4: more than the 1 entries"},
		{"too few entries", banner + "2 2 3\n1 2 .5\n", "a\nb\n", "matrix: line 4: the file ends after 1 of 3 entries"},
		{"long line", banner + strings.Repeat("1", lines.MaxBytes+1), "a\n", "matrix: line 2: longer than"},
		{"no gzip", "\x1f\x8bx", "a\n", "matrix: line 1: gzip"},
		{"a term twice", banner, "a\nb\na\n", `vocabulary: line 3: term "a" occurs twice, first in line 1`},
		{"empty line between terms", banner, "a\n\n\nb\n", "vocabulary: line 2: no term"},
		{"no term", banner, "a\n\t3\n", `vocabulary: line 2: term ""`},
		{"not UTF-8", banner, "\xff\n", `vocabulary: line 1: term "\xff"`},
		{"too long", banner, strings.Repeat("a", simmatrix.MaxTermBytes+1), "vocabulary: line 1: term"},
		{"carriage return", banner, "a\rb\n", `vocabulary: line 1: term "a\rb" holds`},
		{"document frequency", banner, "a\tx\n", `vocabulary: line 1: document frequency "x" is no whole number`},
		{"document frequency below zero", banner, "a\t-1\n", `vocabulary: line 1: document frequency "-1"`},
		{"document frequency too large", banner, "a\t4294967296\n", `vocabulary: line 1: document frequency "4294967296"`},
		{"two tabs", banner, "a\t1\t2\n", `vocabulary: line 1: document frequency "1\t2"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ReadMatrixMarket(strings.NewReader(tt.matrix), strings.NewReader(tt.vocabulary), DefaultListOptions())
			if m != nil || !errors.Is(err, ErrList) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %.200v, want ErrGiven with %q", err, tt.message)
			}
			if want := strings.HasPrefix(tt.message, "vocabulary: "); errors.Is(err, ErrVocabulary) != want {
				t.Errorf("error %.200v: that of the vocabulary is %t, want %t", err, !want, want)
			}
		})
	}
	if _, err := ReadMatrixMarket(strings.NewReader(banner+"0 0 0\n"), strings.NewReader("\n"), DefaultListOptions()); !errors.Is(err, simmatrix.ErrNoVocabulary) {
		t.Errorf("no term: %v", err)
	}
	if _, err := ReadMatrixMarket(strings.NewReader(banner), strings.NewReader("a\n"), ListOptions{}); err == nil || !strings.Contains(err.Error(), "neighbors: 0") {
		t.Errorf("no neighbors: %v", err)
	}
	broken := errors.New("disk on fire")
	matrix, vocabulary := strings.NewReader(banner+"1 1 0\n"), strings.NewReader("a\n")
	if _, err := ReadMatrixMarket(io.MultiReader(matrix, iotest.ErrReader(broken)), vocabulary, DefaultListOptions()); !errors.Is(err, broken) {
		t.Errorf("matrix: %v", err)
	}
	if _, err := ReadMatrixMarket(matrix, io.MultiReader(vocabulary, iotest.ErrReader(broken)), DefaultListOptions()); !errors.Is(err, broken) {
		t.Errorf("vocabulary: %v", err)
	}
}

func TestClampedMatrixMarketTakesAllNumbers(t *testing.T) {
	opts := DefaultListOptions()
	opts.Clamp = true
	matrix := "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 2 1.0000001\n1 3 -0.2\n2 1 7\n2 2 1.0000001\n"
	m, err := ReadMatrixMarket(strings.NewReader(matrix), strings.NewReader("a\nb\nc\n"), opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]simmatrix.Neighbor{{Term: "b", Similarity: 1}}, matrixtest.Of(m.Row("a"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]simmatrix.Neighbor{{Term: "a", Similarity: 1}}, matrixtest.Of(m.Row("b"))); diff != "" {
		t.Error(diff)
	}
}

func TestMatrixMarketAllocatesNothingForWhatIsClaimed(t *testing.T) {
	read := func(size string) {
		matrix := "%%MatrixMarket matrix coordinate real general\n" + size + "\n1 1 1\n"
		if _, err := ReadMatrixMarket(strings.NewReader(matrix), strings.NewReader("a\n"), DefaultListOptions()); !errors.Is(err, ErrList) {
			t.Errorf("error %v", err)
		}
	}
	for _, size := range []string{"1 1 999999999999", "999999999 999999999 1"} {
		if n := allocated(func() { read(size) }); n > 4<<20 { // four buffers of 64 KiB and the text
			t.Errorf("%s: %d bytes", size, n)
		}
	}
}

func TestRepeatedEntriesOfMatrixMarketTakeNoMemory(t *testing.T) {
	file := fmt.Sprintf("%%%%MatrixMarket matrix coordinate real general\n2 2 %d\n", manyRepeats) + strings.Repeat("1 2 1\n", manyRepeats)
	for _, symmetric := range []bool{false, true} {
		opts := DefaultListOptions()
		opts.Symmetric = symmetric
		var err error
		var m *simmatrix.Matrix
		used := allocated(func() { m, err = ReadMatrixMarket(strings.NewReader(file), strings.NewReader("a\nb\n"), opts) })
		if symmetric && (err != nil || m.Meta().NonZeros != 2) {
			t.Error(err)
		}
		if !symmetric && (err == nil || !strings.Contains(err.Error(), `matrix: line 4: the similarity of "a" and "b" was given before`)) {
			t.Error(err)
		}
		if used > manyRepeats*(3*24+32) { // lists of the fields and a string, but no entries
			t.Errorf("symmetric %t: %d bytes", symmetric, used)
		}
	}
}

// FuzzReadMatrixMarket checks that what is read is no larger than the files
// and the same after it is written and read again.
func FuzzReadMatrixMarket(f *testing.F) {
	const banner = "%%MatrixMarket matrix coordinate real general\n"
	for _, seed := range [][2]string{
		{banner + "2 2 2\n1 2 .5\n1 1 1\n", "a\nb\t4\n"},
		{"%%MatrixMarket matrix coordinate integer symmetric\r\n% x\r\n\r\n2 2 1\r\n2 1 1\r\n", "\uFEFF\uFEFFa\r\n#b\r\n\r\n"},
		{banner + "1 1 9999999999\n", "a\n"},
		{banner + "2 2 2\n1 2 -1\n2 1 2\n", "a\nb\n"},
		{banner + "2 2 2\n1 2 1\n1 2 1\n", "b\na\n"},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]), false, false)
		f.Add([]byte(seed[0]), []byte(seed[1]), true, true)
		f.Add([]byte(gzipped(f, seed[0])), []byte(gzipped(f, seed[1])), false, true)
	}
	f.Fuzz(func(t *testing.T, matrix, vocabulary []byte, symmetric, clamp bool) {
		opts := ListOptions{Source: "fuzz", Symmetric: symmetric, Clamp: clamp, Neighbors: simmatrix.MaxNeighbors}
		m, err := ReadMatrixMarket(bytes.NewReader(matrix), bytes.NewReader(vocabulary), opts)
		if err != nil {
			checkGivenError(t, m, err)
			return
		}
		zipped := bytes.HasPrefix(matrix, []byte("\x1f\x8b")) || bytes.HasPrefix(vocabulary, []byte("\x1f\x8b"))
		if !zipped && (len(m.Table().Terms) > len(vocabulary) || len(m.Table().Cols)/2 > len(matrix)) {
			t.Fatalf("%d terms, %d entries of files of %d and %d bytes", len(m.Table().Terms), len(m.Table().Cols), len(vocabulary), len(matrix))
		}
		if symmetric && !m.Meta().Symmetric {
			t.Fatal("not symmetric")
		}
		var matrix2, vocabulary2 bytes.Buffer
		if err := WriteMatrixMarket(&matrix2, &vocabulary2, m); err != nil {
			t.Fatal(err)
		}
		first := fmt.Sprintf("%s\n%s", &matrix2, &vocabulary2)
		again, err := ReadMatrixMarket(&matrix2, &vocabulary2, opts)
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		sameRows(t, m, again)
	})
}
