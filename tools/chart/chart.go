// Package chart draws curves as SVG, by gonum/plot. Only commands and tests
// draw; what serves searches does not link it.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A Chart has curves.
type Chart struct {
	X, Y   string // what the axes show, with the unit
	Log    bool   // the axis X is logarithmic
	Curves []Curve
	Levels []Level
}

// A Curve joins its points in their order.
type Curve struct {
	Name   string
	Color  int // a color of its own for each number from 0; other numbers repeat them
	Dashed bool
	Points []Point
}

// A Point is at (X, Y). X is above 0 on a logarithmic axis. The label may be
// empty.
type Point struct {
	X, Y  float64
	Label string
}

// A Level is a dotted line over the whole width.
type Level struct {
	Name  string
	Color int // as that of a curve
	Y     float64
}

// ErrPoints is the error of a chart that cannot be drawn: it has no points, or
// a point or level is not finite, or not above 0 on the logarithmic axis.
var ErrPoints = errors.New("a chart needs points with finite numbers, and above 0 on the logarithmic axis")

var (
	ink  = color.RGBA{0x22, 0x26, 0x2b, 0xff}
	gray = color.RGBA{0x5d, 0x66, 0x70, 0xff}
	pale = color.RGBA{0xdf, 0xe3, 0xe8, 0xff}
	// Colors that people with weak color vision tell apart.
	palette = []color.RGBA{{0x2b, 0x6c, 0xb0, 0xff}, {0xc0, 0x56, 0x21, 0xff}, {0x2f, 0x85, 0x5a, 0xff}, {0x80, 0x5a, 0xd5, 0xff}, gray}
)

func colorOf(k int) color.Color { return palette[(k%len(palette)+len(palette))%len(palette)] }

// SVG draws the chart, with the names of curves and levels at its right. The
// same chart gives the same bytes. The error is [ErrPoints].
func (c *Chart) SVG() ([]byte, error) {
	p, names := plot.New(), plot.NewLegend()
	for _, curve := range c.Curves {
		line := draw.LineStyle{Color: colorOf(curve.Color), Width: vg.Points(1.8)}
		if curve.Dashed {
			line.Dashes = []vg.Length{vg.Points(6), vg.Points(3)}
		}
		labels := &plotter.Labels{Offset: vg.Point{Y: vg.Points(6)}}
		for _, at := range curve.Points {
			if c.Log && !(at.X > 0) || !finite(at.X) || !finite(at.Y) {
				return nil, fmt.Errorf("%w: %s has (%v, %v)", ErrPoints, curve.Name, at.X, at.Y)
			}
			labels.XYs, labels.Labels = append(labels.XYs, plotter.XY{X: at.X, Y: at.Y}), append(labels.Labels, at.Label)
			centered := style(9, gray)
			centered.XAlign = text.XCenter
			labels.TextStyle = append(labels.TextStyle, centered)
		}
		dots := draw.GlyphStyle{Color: line.Color, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
		p.Add(&plotter.Line{XYs: labels.XYs, LineStyle: line}, &plotter.Scatter{XYs: labels.XYs, GlyphStyle: dots}, labels)
		names.Add(curve.Name, &plotter.Line{LineStyle: line})
	}
	if !(p.X.Min <= p.X.Max) { // as they are without any point
		return nil, ErrPoints
	}
	for _, l := range c.Levels {
		if !finite(l.Y) {
			return nil, fmt.Errorf("%w: %s is at %v", ErrPoints, l.Name, l.Y)
		}
		line := draw.LineStyle{Color: colorOf(l.Color), Width: vg.Points(1.2), Dashes: []vg.Length{vg.Points(1.5), vg.Points(3)}}
		p.Add(level{l.Y, line})
		p.Y.Min, p.Y.Max = math.Min(p.Y.Min, l.Y), math.Max(p.Y.Max, l.Y)
		names.Add(l.Name, &plotter.Line{LineStyle: line})
	}
	if c.Log {
		room := math.Pow(p.X.Max/p.X.Min, 0.06) * 1.05
		p.X.Min, p.X.Max = p.X.Min/room, p.X.Max*room
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	} else {
		widen(&p.X)
	}
	widen(&p.Y)
	c.dress(p)
	return render(p, names)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// widen makes room for labels, also around a single place.
func widen(axis *plot.Axis) {
	room := 0.08*(axis.Max-axis.Min) + 1e-3*math.Max(math.Abs(axis.Max), 1e-3)
	axis.Min, axis.Max = axis.Min-room, axis.Max+room
}

// dress sets the looks of the axes.
func (c *Chart) dress(p *plot.Plot) {
	p.X.Label.Text, p.Y.Label.Text = c.X, c.Y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		label, tick := style(10.5, ink), style(9.5, gray)
		label.XAlign, label.YAlign = axis.Label.TextStyle.XAlign, axis.Label.TextStyle.YAlign
		tick.XAlign, tick.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Label.TextStyle, axis.Tick.Label = label, tick
		axis.Label.Padding, axis.Padding = vg.Points(4), 0
		axis.Color, axis.Tick.Color = gray, gray
	}
	line := draw.LineStyle{Color: pale, Width: vg.Points(0.6)}
	p.Add(&plotter.Grid{Vertical: line, Horizontal: line})
}

func render(p *plot.Plot, names plot.Legend) ([]byte, error) {
	const (
		width  = 22 * vg.Centimeter
		height = 9.5 * vg.Centimeter
		right  = 5.2 * vg.Centimeter
	)
	canvas := vgsvg.New(width, height)
	area := draw.New(canvas)
	area.SetColor(color.White)
	area.Fill(area.Path())
	p.Draw(draw.Crop(area, vg.Points(8), -right, vg.Points(8), -vg.Points(10)))
	names.TextStyle = style(9.5, ink)
	names.Padding = vg.Points(4)
	names.Top = true
	names.Left = true
	names.Draw(draw.Crop(area, width-right+vg.Points(8), -vg.Points(4), 0, -vg.Points(12)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte(`style="font-family:Liberation Sans;`),
		[]byte(`style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;`)), nil
}

func style(size vg.Length, c color.Color) text.Style {
	return text.Style{Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}, Handler: plot.DefaultTextHandler}
}

// logTicks marks 1 to 9 times each power of ten, and names as many of them as
// there is room for.
func logTicks(low, high float64) []plot.Tick {
	named := map[int]bool{1: true}
	if decades := math.Log10(high / low); decades < 3 {
		named[2], named[5] = true, true
		if decades < 0.7 {
			named[3] = true
			named[4] = true
			named[6] = true
			named[8] = true
		}
	}
	var ticks []plot.Tick
	for e := int(math.Floor(math.Log10(low))); e <= int(math.Ceil(math.Log10(high))); e++ {
		for digit := 1; digit <= 9; digit++ {
			tick := plot.Tick{Value: float64(digit) * math.Pow10(e)}
			if named[digit] {
				tick.Label = fmt.Sprintf("%.3g", tick.Value)
			}
			if low <= tick.Value && tick.Value <= high {
				ticks = append(ticks, tick)
			}
		}
	}
	return ticks
}

// A level draws a [Level].
type level struct {
	y     float64
	style draw.LineStyle
}

// Plot draws the line.
func (l level) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	c.StrokeLine2(l.style, c.Min.X, y(l.y), c.Max.X, y(l.y))
}
