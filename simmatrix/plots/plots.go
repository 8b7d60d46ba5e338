// Package plots draws what is in a similarity matrix, as SVG or PNG: how its
// similarities are distributed, and how dense it would be with fewer neighbors
// (as in figures 4.1 to 4.5 of Novotný, Vector Space Representations in
// Information Retrieval, 2017). The density of n terms is in percent:
//
//	100·(entries off the diagonal + n) / n²
package plots

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"

	"github.com/akin-search/akin/simmatrix"
)

const (
	units = simmatrix.UnitsOfOne
	bins  = 50 // bars of the histogram, each 0.02 wide
)

// A Summary has the counts behind the figures of a matrix, in half a megabyte.
type Summary struct {
	terms, entries uint64
	bySimilarity   [units + 1]uint64 // entries by units
	byPlace        []uint64          // entries that are the k-th of their row, from 0
}

// Summarize counts the entries of m in one pass.
func Summarize(m *simmatrix.Matrix) *Summary {
	t := m.Table()
	s := &Summary{terms: t.Meta.Terms, entries: t.Meta.NonZeros, byPlace: make([]uint64, t.Meta.MaxNeighbors)}
	for i := range t.Terms {
		_, sims := t.Row(i)
		for k, similarity := range sims {
			s.byPlace[k]++
			s.bySimilarity[similarity]++
		}
	}
	return s
}

func toUnits(similarity float64) int { return int(math.Round(similarity * units)) }

// Density returns the density in percent, 0 where there are no terms.
func (s *Summary) Density() float64 { return s.density(s.entries) }

func (s *Summary) density(entries uint64) float64 {
	if s.terms == 0 {
		return 0
	}
	n := float64(s.terms)
	return 100 * (float64(entries) + n) / (n * n)
}

// A Bin counts the entries with Low <= similarity < High, both rounded to a
// multiple of 1/65535; where High is 1, those of similarity 1, too.
type Bin struct {
	Low, High float64
	Entries   uint64
}

// Similarities returns 50 bins of equal width between 0 and 1, ascending.
func (s *Summary) Similarities() []Bin {
	result := make([]Bin, bins)
	from := 0
	for k := range result {
		b := Bin{Low: float64(k) / bins, High: float64(k+1) / bins}
		to := toUnits(b.High)
		if k == bins-1 {
			to++
		}
		for _, n := range s.bySimilarity[from:to] {
			b.Entries += n
		}
		result[k], from = b, to
	}
	return result
}

// A Point is the density of the matrix, in percent, at a setting, C or θ.
type Point struct{ At, Density float64 }

// DensityByNeighbors returns how dense the matrix is when each term keeps its C
// most similar neighbors: each C up to 50, then about 2 % apart.
func (s *Summary) DensityByNeighbors() []Point {
	var points []Point
	kept, next := uint64(0), 1
	for k, entries := range s.byPlace {
		c := k + 1
		kept += entries
		if c == next || c == len(s.byPlace) {
			points = append(points, Point{At: float64(c), Density: s.density(kept)})
			next = max(c+1, c*51/50)
		}
	}
	return points
}

// DensityByThreshold returns how dense the matrix is when it keeps only the
// similarities above θ, for all θ of two digits, ascending: 0.00010, 0.00011, …
// 0.98, 0.99, 1, rounded to a multiple of 1/65535.
func (s *Summary) DensityByThreshold() []Point {
	points := []Point{{At: 1}}
	for power := 100.0; power <= 1e5; power *= 10 {
		for digits := 99; digits >= 10; digits-- {
			points = append(points, Point{At: float64(digits) / power})
		}
	}
	kept, above := uint64(0), units
	for k := range points {
		for ; above > toUnits(points[k].At); above-- {
			kept += s.bySimilarity[above]
		}
		points[k].Density = s.density(kept)
	}
	slices.Reverse(points)
	return points
}

// ErrEmpty is wrapped by the errors of [Write] where there is nothing to draw.
var ErrEmpty = errors.New("the matrix has no neighbors")

// A Format is a format of image files.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// A Figure is one diagram of a matrix.
type Figure string

// The figures. Axes are logarithmic where a matrix spans powers of ten: the
// counts, the densities, and C.
const (
	Similarities       Figure = "similarities"         // histogram of [Summary.Similarities]
	DensityByNeighbors Figure = "density-by-neighbors" // curve of [Summary.DensityByNeighbors]
	DensityByThreshold Figure = "density-by-threshold" // curve of [Summary.DensityByThreshold]
)

// Figures returns all figures in the order in which they are best read.
func Figures() []Figure {
	return []Figure{Similarities, DensityByNeighbors, DensityByThreshold}
}

// Measures of an image in points, of which 72 are an inch.
const (
	width        = 567 // 20 cm
	figureHeight = 312
	headHeight   = 62
	margin       = 17
	labelSize    = 10.5
	tickSize     = 9.5
	tickLength   = 5.0
	maxTitle     = 80 // characters that fit in a line
)

// Write draws the figures, at least one, below each other under a headline with
// title and the size of the matrix. Unprintable characters of title are shown
// as U+FFFD, and a long one is cut. An SVG names fonts of the same widths as
// the one that it is measured for. The error wraps [ErrEmpty] for a matrix
// without neighbors, or is that of an unknown format or figure, or of w.
func Write(w io.Writer, format Format, title string, s *Summary, figures ...Figure) error {
	if s.entries == 0 {
		return fmt.Errorf("%w: nothing to draw", ErrEmpty)
	}
	if len(figures) == 0 {
		return errors.New("no figure to draw")
	}
	letters, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		return err
	}
	p := &picture{width: width, height: headHeight + figureHeight*float64(len(figures)), font: letters}
	p.text(printable(title), margin, margin+15, 15, darkest, start)
	p.text(s.String(), margin, margin+34, labelSize, gray, start)
	charts, left := make([]*chart, len(figures)), 0.0
	for k, f := range figures {
		if charts[k], err = f.chart(s); err != nil {
			return err
		}
		for _, t := range charts[k].y.ticks(charts[k].y.min, charts[k].y.max) { // the same for all, so that they line up
			left = max(left, float64(font.MeasureString(p.face(tickSize, 72), t.label))/64)
		}
	}
	left += margin + labelSize + 10 + tickLength
	for k, c := range charts {
		top := headHeight + figureHeight*float64(k)
		c.draw(p, left, top+22, width-margin-5, top+figureHeight-58)
	}
	switch format {
	case SVG:
		return p.writeSVG(w)
	case PNG:
		return p.writePNG(w)
	default:
		return fmt.Errorf("no image format %q; there are %s and %s", format, SVG, PNG)
	}
}

// String returns the size of the matrix in a line.
func (s *Summary) String() string {
	mean := 0.0
	if s.terms > 0 {
		mean = float64(s.entries) / float64(s.terms)
	}
	return fmt.Sprintf("terms: %s    neighbors: %s (a term: %.1f on average, %d at most)    density: %s %%",
		group(s.terms), group(s.entries), mean, len(s.byPlace), strconv.FormatFloat(s.Density(), 'g', 3, 64))
}

// printable returns text as one printable line.
func printable(title string) string {
	runes := []rune(strings.ToValidUTF8(title, string(unicode.ReplacementChar)))
	if len(runes) > maxTitle { // both ends of a path say more than its middle
		runes = append(append(runes[:maxTitle/2:maxTitle/2], '…'), runes[len(runes)-maxTitle/2+1:]...)
	}
	for k, r := range runes {
		if !unicode.IsPrint(r) {
			runes[k] = unicode.ReplacementChar
		}
	}
	return string(runes)
}
