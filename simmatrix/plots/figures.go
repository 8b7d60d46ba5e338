package plots

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colors of the figures.
var (
	darkest = color.RGBA{R: 0x22, G: 0x26, B: 0x2b, A: 0xff}
	gray    = color.RGBA{R: 0x5d, G: 0x66, B: 0x70, A: 0xff}
	pale    = color.RGBA{R: 0xdf, G: 0xe3, B: 0xe8, A: 0xff}
	blue    = color.RGBA{R: 0x2b, G: 0x6c, B: 0xb0, A: 0xff}
)

// dotsUpTo is the length of a curve whose points are drawn as dots, too.
const dotsUpTo = 25

// plot returns the figure of s, which has entries.
//
// Logarithmic axes are linear ones of the common logarithm, with ticks to
// match: a [plot.LogScale] finds room for the label of its axis as if the
// middle of a linear scale were the middle of the figure.
func (f Figure) plot(s *Summary) (*plot.Plot, error) {
	switch f {
	case Similarities:
		return similarities(s.Similarities()), nil
	case DensityByNeighbors:
		p := densities(s.DensityByNeighbors(), s.density(0))
		p.Title.Text = "Density when each term keeps its C most similar neighbors"
		p.X.Label.Text = "C, neighbors kept of a term (logarithmic)"
		return p, nil
	case DensityByThreshold:
		p := densities(s.DensityByThreshold(), s.density(0))
		p.Title.Text = "Density when only similarities above θ are kept"
		p.X.Label.Text = "θ, threshold of similarity (logarithmic)"
		p.X.Max = 0
		return p, nil
	default:
		return nil, fmt.Errorf("no figure %q; there are %q", f, Figures())
	}
}

// newPlot returns a plot in the style of all figures, with a logarithmic Y
// axis.
func newPlot() *plot.Plot {
	p := plot.New()
	p.Title.TextStyle = textStyle(12, darkest)
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = text.XCenter, text.YTop
	p.Title.Padding = vg.Points(8)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		label, tick := textStyle(10.5, darkest), textStyle(9.5, gray)
		label.XAlign, label.YAlign = axis.Label.TextStyle.XAlign, axis.Label.TextStyle.YAlign
		tick.XAlign, tick.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Label.TextStyle, axis.Tick.Label = label, tick
		axis.Label.Padding, axis.Padding = vg.Points(4), 0
		axis.Color, axis.Tick.Color = gray, gray
		axis.Tick.Length = vg.Points(5)
	}
	p.Y.Tick.Marker = logTicks{}
	line := draw.LineStyle{Color: pale, Width: vg.Points(0.6)}
	p.Add(&plotter.Grid{Vertical: line, Horizontal: line})
	return p
}

// similarities returns the histogram.
func similarities(counts []Bin) *plot.Plot {
	p := newPlot()
	p.Title.Text = "How similar the neighbors are"
	p.X.Label.Text = "similarity of a term and its neighbor, in steps of 0.02"
	p.Y.Label.Text = "neighbors (logarithmic)"
	p.Add(bars(counts))
	most := uint64(1)
	for _, b := range counts {
		most = max(most, b.Entries)
	}
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, 1, tenths{}
	_, p.Y.Max = logRange(1, float64(most))
	p.Y.Min = math.Log10(0.7) // so that a single neighbor is seen
	return p
}

// bars draws bins over a logarithmic Y axis. [plotter.Histogram] has no bars
// whose height on the axis is 0, which is a single entry.
type bars []Bin

// Plot draws the bars.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	gap := vg.Points(0.4)
	for _, bin := range b {
		if bin.Entries == 0 {
			continue
		}
		left, right, top := x(bin.Low)+gap, x(bin.High)-gap, y(math.Log10(float64(bin.Entries)))
		c.FillPolygon(blue, []vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: top}, {X: left, Y: top}})
	}
}

// densities returns a curve above the density of the diagonal. Both axes are
// logarithmic.
func densities(points []Point, diagonal float64) *plot.Plot {
	p := newPlot()
	p.Y.Label.Text = "density in % (logarithmic)"
	p.X.Tick.Marker = logTicks{}
	curve := make(plotter.XYs, len(points))
	most := diagonal
	for k, point := range points {
		curve[k] = plotter.XY{X: math.Log10(point.At), Y: math.Log10(point.Density)}
		most = max(most, point.Density)
	}
	p.Add(floor(math.Log10(diagonal)))
	p.Add(&plotter.Line{XYs: curve, LineStyle: draw.LineStyle{Color: blue, Width: vg.Points(1.8)}})
	if len(points) <= dotsUpTo {
		p.Add(&plotter.Scatter{XYs: curve, GlyphStyle: draw.GlyphStyle{Color: blue, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}})
	}
	p.X.Min, p.X.Max = logRange(points[0].At, points[len(points)-1].At)
	_, p.Y.Max = logRange(diagonal, most)
	p.Y.Max = min(p.Y.Max, math.Log10(105)) // no density is above 100 %
	p.Y.Min = math.Log10(diagonal) - 0.1*(p.Y.Max-math.Log10(diagonal))
	return p
}

// floor draws the common logarithm of the density of a matrix without
// neighbors, and below it, where no curve comes, what it is.
type floor float64

// Plot draws the line.
func (f floor) Plot(c draw.Canvas, p *plot.Plot) {
	_, transform := p.Transforms(&c)
	y := transform(float64(f))
	style := draw.LineStyle{Color: gray, Width: vg.Points(0.8), Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}
	c.StrokeLine2(style, c.Min.X, y, c.Max.X, y)
	label := textStyle(9.5, gray)
	label.XAlign, label.YAlign = text.XRight, text.YTop
	c.FillText(label, vg.Point{X: c.Max.X - vg.Points(5), Y: y - vg.Points(3)}, "the terms alone, without neighbors")
}
