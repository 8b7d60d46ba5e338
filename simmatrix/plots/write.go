package plots

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

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
	// Similarities is the histogram of [Summary.Similarities].
	Similarities Figure = "similarities"
	// DensityByNeighbors is the curve of [Summary.DensityByNeighbors].
	DensityByNeighbors Figure = "density-by-neighbors"
	// DensityByThreshold is the curve of [Summary.DensityByThreshold].
	DensityByThreshold Figure = "density-by-threshold"
)

// Figures returns all figures in the order in which they are best read.
func Figures() []Figure {
	return []Figure{Similarities, DensityByNeighbors, DensityByThreshold}
}

// Measures of an image in points, of which 72 are an inch. A figure is as wide
// and high as a page carries two of.
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
// as U+FFFD, and a long one is cut. The same input gives the same bytes.
//
// An SVG names the font that it is measured for and others of the same
// widths, so that it looks alike wherever one of them is installed; a PNG
// needs none.
//
// It returns an error that wraps [ErrEmpty] for a matrix without neighbors, an
// error for an unknown format or figure, and the errors of w.
func Write(w io.Writer, format Format, title string, s *Summary, figures ...Figure) error {
	if s.entries == 0 {
		return fmt.Errorf("%w: nothing to draw", ErrEmpty)
	}
	if len(figures) == 0 {
		return errors.New("no figure to draw")
	}
	p, err := newPicture(width, headHeight+figureHeight*float64(len(figures)))
	if err != nil {
		return err
	}
	p.text(printable(title), margin, margin+15, 15, darkest, start)
	p.text(s.String(), margin, margin+34, labelSize, gray, start)
	charts, left := make([]*chart, len(figures)), 0.0
	for k, f := range figures {
		if charts[k], err = f.chart(s); err != nil {
			return err
		}
		left = max(left, charts[k].labelWidth(p)) // the same for all, so that they line up
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
