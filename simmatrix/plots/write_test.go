package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// drawn returns the image of all figures, or of those given.
func drawn(tb testing.TB, format Format, title string, s *Summary, figures ...Figure) []byte {
	tb.Helper()
	if len(figures) == 0 {
		figures = Figures()
	}
	var b bytes.Buffer
	if err := Write(&b, format, title, s, figures...); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// texts returns the texts of an SVG, which has to be well-formed.
func texts(tb testing.TB, svg []byte) string {
	tb.Helper()
	var found []string
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(found, "\n")
		}
		if err != nil {
			tb.Fatalf("%v in\n%s", err, svg)
		}
		if data, ok := token.(xml.CharData); ok {
			if s := strings.TrimSpace(string(data)); s != "" {
				found = append(found, s)
			}
		}
	}
}

func TestSameMatrixGivesSameBytes(t *testing.T) {
	m := random(t, rand.New(rand.NewPCG(8, 1)), 50)
	for _, format := range []Format{SVG, PNG} {
		a, b := drawn(t, format, "docs", Summarize(m)), drawn(t, format, "docs", Summarize(m))
		if !bytes.Equal(a, b) {
			t.Errorf("two %s differ", format)
		}
	}
}

func TestSVGSaysWhatItShows(t *testing.T) {
	s := Summarize(small(t))
	for figure, want := range map[Figure][]string{
		Similarities:       {"How similar the neighbors are", "similarity of a term", "neighbors (logarithmic)", "0.1"},
		DensityByNeighbors: {"C most similar neighbors", "C, neighbors kept", "density in %", "without neighbors", "50"},
		DensityByThreshold: {"above θ", "θ, threshold", "density in %", "without neighbors", "50"},
	} {
		got := texts(t, drawn(t, SVG, "docs.akin", s, figure))
		for _, text := range append(want, "docs.akin", "terms: 4", "neighbors: 5 (a term: 1.2 on average, 3 at most)", "density: 56.2 %") {
			if !strings.Contains(got, text) {
				t.Errorf("%s: no %q in\n%s", figure, text, got)
			}
		}
	}
}

func TestAllFiguresFitIntoOneImage(t *testing.T) {
	s := Summarize(small(t))
	got := texts(t, drawn(t, SVG, "docs.akin", s))
	if n := strings.Count(got, "density in %"); n != 2 || !strings.Contains(got, "How similar") {
		t.Errorf("%d densities in\n%s", n, got)
	}
	one, err := png.Decode(bytes.NewReader(drawn(t, PNG, "docs.akin", s, Similarities)))
	if err != nil {
		t.Fatal(err)
	}
	all, err := png.Decode(bytes.NewReader(drawn(t, PNG, "docs.akin", s)))
	if err != nil {
		t.Fatal(err)
	}
	a, b := one.Bounds(), all.Bounds()
	if a.Dx() < 1000 || a.Dx() != b.Dx() || b.Dy() < 2*a.Dy() {
		t.Errorf("one figure has %v pixels, three have %v", a.Size(), b.Size())
	}
}

// TestSVGNamesFontsOfTheSameWidths: Arial and Helvetica have the widths of
// Liberation Sans, for which the image is measured.
func TestSVGNamesFontsOfTheSameWidths(t *testing.T) {
	svg := string(drawn(t, SVG, `style="font-family:Liberation Sans;`, Summarize(small(t))))
	n := strings.Count(svg, "<text ")
	if got := strings.Count(svg, `style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;`); got != n || n == 0 {
		t.Errorf("%d of %d texts name them", got, n)
	}
}

func TestTitleIsShownWhateverItHolds(t *testing.T) {
	for name, tt := range map[string]struct{ title, want string }{
		"markup":        {`a<b>&"c"`, `a<b>&"c"`},
		"control":       {"a\x00b\nc", "a\uFFFDb\uFFFDc"},
		"invalid UTF-8": {"a\xffb", "a\uFFFDb"},
		"umlaut":        {"Wörter", "Wörter"},
		"long":          {strings.Repeat("a", 70) + strings.Repeat("b", 70), strings.Repeat("a", 40) + "…" + strings.Repeat("b", 39)},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, _ := strings.Cut(texts(t, drawn(t, SVG, tt.title, Summarize(small(t)), Similarities)), "\n")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWriteNamesWhatItCannotDraw(t *testing.T) {
	s := Summarize(small(t))
	for name, tt := range map[string]struct {
		format  Format
		s       *Summary
		figures []Figure
		want    string
	}{
		"no neighbors": {SVG, Summarize(matrix(t, []map[int]float64{{}, {}})), Figures(), "no neighbors"},
		"no terms":     {SVG, Summarize(matrix(t, nil)), Figures(), "no neighbors"},
		"no figure":    {SVG, s, nil, "no figure"},
		"figure":       {SVG, s, []Figure{"pie"}, `"pie"`},
		"format":       {"gif", s, Figures(), `"gif"`},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			err := Write(&b, tt.format, "", tt.s, tt.figures...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || b.Len() > 0 {
				t.Errorf("%d bytes, %v; want %q", b.Len(), err, tt.want)
			}
			if empty := tt.s.entries == 0; errors.Is(err, ErrEmpty) != empty {
				t.Errorf("%v", err)
			}
		})
	}
}

type broken struct{ error }

func (b broken) Write([]byte) (int, error) { return 0, b.error }

func TestWriteReturnsTheErrorOfTheWriter(t *testing.T) {
	full := errors.New("disk full")
	for _, format := range []Format{SVG, PNG} {
		if err := Write(broken{full}, format, "", Summarize(small(t)), Similarities); !errors.Is(err, full) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// FuzzWrite draws matrices of any shape: the image is well-formed, and every
// axis has a label.
func FuzzWrite(f *testing.F) {
	f.Add("docs.akin", uint64(1), 4)
	f.Add("\x00\xff<&>", uint64(2), 2)
	f.Add(strings.Repeat("ü", 200), uint64(3), 200)
	f.Fuzz(func(t *testing.T, title string, seed uint64, n int) {
		s := Summarize(random(t, rand.New(rand.NewPCG(seed, 1)), 2+int(uint(n)%150)))
		if s.entries == 0 {
			t.Skip("nothing to draw")
		}
		if got := texts(t, drawn(t, SVG, title, s)); !utf8.ValidString(got) || !strings.Contains(got, "density:") {
			t.Errorf("texts of %q:\n%q", title, got)
		}
		for _, figure := range Figures() {
			c, err := figure.chart(s)
			if err != nil {
				t.Fatal(err)
			}
			c.x.check(t)
			c.y.check(t)
		}
	})
}
