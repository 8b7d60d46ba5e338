package simmatrix

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func gzipped(tb testing.TB, text string) string {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func mustRead(tb testing.TB, text string) *Vectors {
	tb.Helper()
	v, err := ReadVectors(strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func TestReadVectorsReadsEveryDialect(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		words      []string
		values     []float32
	}{
		{"GloVe", "car 1 -0.5\nbus 2e-1 .25\n", []string{"car", "bus"}, []float32{1, -0.5, 0.2, 0.25}},
		{"word2vec, header and blank at the end", "2 2\ncar 1 2 \nbus 3 4 \n", []string{"car", "bus"}, []float32{1, 2, 3, 4}},
		{"tabs and several blanks", "car\t1  2\nbus  3\t4", []string{"car", "bus"}, []float32{1, 2, 3, 4}},
		{"line ends of Windows", "1 1\r\ncar 1\r\n", []string{"car"}, []float32{1}},
		{"words that are numbers", "2 3 4\n5 6 7\n", []string{"2", "5"}, []float32{3, 4, 6, 7}},
		{"other spaces are parts of words", "a\u00a0b 1 2\n\u0085 3 4\n", []string{"a\u00a0b", "\u0085"}, []float32{1, 2, 3, 4}},
		{"gzip", gzipped(t, "car 1 2\n"), []string{"car"}, []float32{1, 2}},
		{"a word that starts like a number", "1st 1\n2 2.5\n", []string{"1st", "2"}, []float32{1, 2.5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ReadVectors(iotest.OneByteReader(strings.NewReader(tt.text)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.words, v.words); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.values, v.table.values); diff != "" {
				t.Error(diff)
			}
			if v.Len() != len(tt.words) || v.Dim() != len(tt.values)/len(tt.words) {
				t.Errorf("%d words, %d dimensions", v.Len(), v.Dim())
			}
		})
	}
}

func TestReadVectorsNamesTheBadLine(t *testing.T) {
	for _, tt := range []struct{ name, text, message string }{
		{"short row", "a 1 2\nb 1\n", `line 2: word "b": 1 dimensions, want 2`},
		{"long row", "a 1 2\nb 1 2\nc 1 2 3\n", `line 3: word "c": 3 dimensions, want 2`},
		{"another dimension than the header", "1 3\na 1 2\n", `line 2: word "a": 2 dimensions, want 3`},
		{"word alone", "a\n", `line 1: word "a": 0 dimensions`},
		{"NaN", "a 1\nb NaN\n", `line 2: word "b": "NaN" is not a finite number`},
		{"infinity", "a -Inf\n", "line 1"},
		{"too large for 32 bits", "a 1e39\n", "line 1"},
		{"no number", "a 1\nb 1\nc x\n", "line 3"},
		{"word twice", "a 1\nb 1\na 2\n", `line 3: word "a" is there twice`},
		{"empty line", "a 1\n\nb 1\n", "line 2: word"},
		{"line starts with a blank", "a 1\n 1\n", "line 2: word"},
		{"not UTF-8", "a 1\n\xff 1\n", "line 2: word"},
		{"word too long", strings.Repeat("a", MaxTermBytes+1) + " 1\n", "line 1: word"},
		{"line too long", "a 1\nb " + strings.Repeat("1 ", maxVectorLine/2) + "\n", "line 2: longer than"},
		{"fewer words than the header says", "3 1\na 1\nb 1\n", "line 4: the file ends after 2 of 3"},
		{"more words than the header says", "1 1\na 1\nb 1\n", "line 3: more than the 1"},
		{"header of nothing", "1 0\n", "line 1: header"},
		{"header alone", "0 5\n", "line 2: the file ends without"},
		{"empty file", "", "line 1: the file ends without"},
		{"no gzip after all", "\x1f\x8bx", "line 1: gzip"},
		{"gzip cut short", gzipped(t, strings.Repeat("a 1\n", 1))[:20], "after line"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := ReadVectors(strings.NewReader(tt.text))
			if v != nil || !errors.Is(err, ErrVectors) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("error %.200v, want ErrVectors with %q", err, tt.message)
			}
		})
	}
	broken := errors.New("disk on fire")
	if _, err := ReadVectors(io.MultiReader(strings.NewReader("a 1\n"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func FuzzReadVectors(f *testing.F) {
	f.Add([]byte("2 2\ncar 1 2\nbus 3 4\n"))
	f.Add([]byte("car 1 -2e3\r\nbus\t.5 0x1p-2 \n"))
	f.Add([]byte(gzipped(f, "a 1\n")))
	f.Fuzz(func(t *testing.T, file []byte) {
		v, err := ReadVectors(bytes.NewReader(file))
		if err != nil {
			if v != nil || !errors.Is(err, ErrVectors) {
				t.Fatalf("%v, %v", v, err)
			}
			return
		}
		if v.Len() == 0 || v.Dim() == 0 || len(v.table.values) != v.Len()*v.Dim() || v.table.rows != v.Len() {
			t.Fatalf("%d words, %d dimensions, %d values", v.Len(), v.Dim(), len(v.table.values))
		}
		for _, x := range v.table.values {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				t.Fatal(x)
			}
		}
		// Written out plainly, the same words and vectors come back.
		var plain strings.Builder
		fmt.Fprintf(&plain, "%d %d\n", v.Len(), v.Dim())
		for i, w := range v.words {
			plain.WriteString(w)
			for _, x := range v.table.row(i) {
				fmt.Fprintf(&plain, " %g", x)
			}
			plain.WriteByte('\n')
		}
		again, err := ReadVectors(strings.NewReader(plain.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, again, cmp.AllowUnexported(Vectors{}, vectorTable{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestFromVectorsOfAHandComputedToy(t *testing.T) {
	// Angles 0°, 60°, 90°, 180° and no direction; lengths must not matter.
	v := mustRead(t, "east 2 0\nnortheast 0.5 0.8660254\nnorth 0 1e30\nwest -1e-30 0\nnowhere 0 0\n")
	o := DefaultVectorOptions()
	m, err := FromVectors(t.Context(), v, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	s30, s60 := QuantizeSimilarity(math.Pow(math.Sqrt(3)/2, 3)), QuantizeSimilarity(0.125)
	want := map[string][]Neighbor{
		"east":      {{Term: "northeast", Similarity: s60}},
		"northeast": {{Term: "north", Similarity: s30}, {Term: "east", Similarity: s60}},
		"north":     {{Term: "northeast", Similarity: s30}},
		"west":      nil,
		"nowhere":   nil,
	}
	got := map[string][]Neighbor{}
	for term, row := range m.Rows() {
		got[term] = neighborsOf(row)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	meta := m.Meta()
	meta.Terms, meta.NonZeros = 0, 0
	wantMeta := Meta{
		Source: "vectors", MaxNeighbors: 2, Symmetric: true, Dominant: true,
		Params: map[string]string{"dimensions": "2", "neighbors": "200", "power": "3", "threshold": "0"},
	}
	if diff := cmp.Diff(wantMeta, meta); diff != "" {
		t.Error(diff)
	}
}

func TestFromVectorsOptions(t *testing.T) {
	v := mustRead(t, "a 1 0\nb 0.8 0.6\nc 0.6 0.8\n2d 1 0\n") // cosines ab .8, ac .6, bc .96
	neighbors := func(o VectorOptions) map[string]string {
		t.Helper()
		m, err := FromVectors(t.Context(), v, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for term, row := range m.Rows() {
			out[term] = ""
			for n := range row.All() {
				out[term] += n.Term
			}
		}
		return out
	}
	letters := func(w string) bool { return w[0] > '9' }
	base := VectorOptions{Neighbors: 200, Power: 1, Keep: letters}
	strict, short := base, base
	strict.Threshold, short.Neighbors = 0.7, 1
	for _, tt := range []struct {
		name string
		opts VectorOptions
		want map[string]string
	}{
		{"kept words", base, map[string]string{"a": "bc", "b": "ca", "c": "ba"}},
		{"threshold", strict, map[string]string{"a": "b", "b": "ca", "c": "b"}},
		{"one neighbor", short, map[string]string{"a": "b", "b": "c", "c": "b"}},
		{"all words", VectorOptions{Neighbors: 1, Power: 1}, map[string]string{"a": "2d", "b": "c", "c": "b", "2d": "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, neighbors(tt.opts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFromVectorsRefuses(t *testing.T) {
	v := mustRead(t, "a 1\nb 1\n")
	none := DefaultVectorOptions()
	none.Keep = func(string) bool { return false }
	if _, err := FromVectors(t.Context(), v, none, nil); !errors.Is(err, ErrNoVocabulary) {
		t.Errorf("no word kept: %v", err)
	}
	_, err := FromVectors(t.Context(), v, VectorOptions{Threshold: 1}, nil)
	for _, name := range []string{"neighbors: 0", "power: 0", "threshold: 1"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := FromVectors(ctx, v, DefaultVectorOptions(), nil); !errors.Is(err, context.Canceled) || m != nil {
		t.Errorf("error %v", err)
	}
}
