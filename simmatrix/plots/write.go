package plots

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
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

// Measures of an image. A figure is as wide and high as a page carries two of.
const (
	width        = 20 * vg.Centimeter
	figureHeight = 11 * vg.Centimeter
	headHeight   = 2.2 * vg.Centimeter
	margin       = 0.6 * vg.Centimeter
	dotsPerInch  = 150
	maxTitle     = 80 // characters that fit in a line
)

// Write draws the figures, at least one, below each other under a headline
// with title and the size of the matrix. What cannot be printed of title is
// shown as U+FFFD, and a long one is cut. The same input gives the same bytes.
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
	column := make([][]*plot.Plot, len(figures))
	for k, f := range figures {
		p, err := f.plot(s)
		if err != nil {
			return err
		}
		column[k] = []*plot.Plot{p}
	}
	canvas, err := newCanvas(format, headHeight+vg.Length(len(figures))*figureHeight)
	if err != nil {
		return err
	}
	area := draw.New(canvas)
	drawHead(area, title, s)
	area = draw.Crop(area, margin, -margin, margin, -headHeight)
	tiles := draw.Tiles{Rows: len(figures), Cols: 1, PadY: margin}
	for k, cells := range plot.Align(column, tiles, area) {
		column[k][0].Draw(cells[0])
	}
	return encode(w, format, canvas)
}

// newCanvas returns a white canvas.
func newCanvas(format Format, height vg.Length) (vg.CanvasWriterTo, error) {
	switch format {
	case SVG:
		c := vgsvg.New(width, height)
		area := draw.New(c)
		area.SetColor(color.White)
		area.Fill(area.Path())
		return c, nil
	case PNG:
		c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dotsPerInch), vgimg.UseBackgroundColor(color.White))
		return vgimg.PngCanvas{Canvas: c}, nil
	default:
		return nil, fmt.Errorf("no image format %q; there are %s and %s", format, SVG, PNG)
	}
}

// encode writes what has been drawn.
func encode(w io.Writer, format Format, canvas vg.CanvasWriterTo) error {
	if format != SVG {
		_, err := canvas.WriteTo(w)
		return err
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	// Fonts of the same widths stand in for one that is not installed. Texts
	// are escaped, so none of them has a quotation mark to be taken for this.
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte(`style="font-family:Liberation Sans;`),
		[]byte(`style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;`)))
	return err
}

// drawHead writes the headline at the top of an image.
func drawHead(area draw.Canvas, title string, s *Summary) {
	at := vg.Point{X: area.Min.X + margin, Y: area.Max.Y - margin}
	style := textStyle(15, darkest)
	style.XAlign, style.YAlign = text.XLeft, text.YTop
	area.FillText(style, at, printable(title))
	at.Y -= 1.4 * style.Font.Size
	style.Font.Size, style.Color = 10.5, gray
	area.FillText(style, at, s.String())
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

// printable returns a line that every image can hold.
func printable(title string) string {
	runes := []rune(strings.ToValidUTF8(title, string(unicode.ReplacementChar)))
	if len(runes) > maxTitle { // both ends of a path tell more than its middle
		runes = append(append(runes[:maxTitle/2:maxTitle/2], '…'), runes[len(runes)-maxTitle/2+1:]...)
	}
	for k, r := range runes {
		if !unicode.IsPrint(r) {
			runes[k] = unicode.ReplacementChar
		}
	}
	return string(runes)
}

// textStyle returns the font that comes with the program, in points.
func textStyle(size vg.Length, c color.Color) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		Handler: plot.DefaultTextHandler,
	}
}
