package e2e

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// figureFile is the file of a figure.
func figureFile(name string) string {
	return filepath.Join("..", "simmatrix", "softcosine", "papers", name+".svg")
}

// sweepFile is the file of a sweep's figure.
func sweepFile(s sweep) string { return figureFile(s.name) }

// Colors of the figures.
var (
	figureInk  = color.RGBA{R: 0x22, G: 0x26, B: 0x2b, A: 0xff}
	figureGray = color.RGBA{R: 0x5d, G: 0x66, B: 0x70, A: 0xff}
	figurePale = color.RGBA{R: 0xdf, G: 0xe3, B: 0xe8, A: 0xff}
	partColors = map[string]color.Color{
		trainPart: color.RGBA{R: 0x2b, G: 0x6c, B: 0xb0, A: 0xff},
		devPart:   color.RGBA{R: 0xc0, G: 0x56, B: 0x21, A: 0xff},
	}
	partNames = map[string]string{trainPart: "train part 2", devPart: "dev"}
)

func figureText(size vg.Length, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		Handler: plot.DefaultTextHandler,
	}
}

// drawSweep returns the figure of a sweep as an SVG: the soft cosine's mean
// average precision on both parts over the density of S, and as broken lines
// that of the cosine. The same figures give the same bytes.
func drawSweep(tb testing.TB, s sweep, accepted reproFigures) []byte {
	tb.Helper()
	p := newFigure(s.title)
	for _, part := range []string{trainPart, devPart} {
		curve := sweepCurve(s, part, accepted)
		line := draw.LineStyle{Color: partColors[part], Width: vg.Points(1.8)}
		dots := draw.GlyphStyle{Color: partColors[part], Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
		p.Add(&plotter.Line{XYs: curve.XYs, LineStyle: line}, &plotter.Scatter{XYs: curve.XYs, GlyphStyle: dots}, curve)
		baseline := 100 * accepted[cosineFigures][part]
		line.Width, line.Dashes = vg.Points(1), []vg.Length{vg.Points(5), vg.Points(4)}
		p.Add(level{baseline, line})
		p.Y.Min, p.Y.Max = math.Min(p.Y.Min, baseline), math.Max(p.Y.Max, baseline)
		p.Legend.Add(partNames[part]+", soft cosine", &plotter.Line{LineStyle: draw.LineStyle{Color: partColors[part], Width: vg.Points(1.8)}})
		p.Legend.Add(partNames[part]+", cosine", &plotter.Line{LineStyle: line})
	}
	p.X.Min, p.X.Max = p.X.Min-0.15, p.X.Max+0.3 // room for labels
	// The upper third is for the legend.
	p.Y.Min, p.Y.Max = math.Floor(p.Y.Min-0.5), math.Ceil(p.Y.Max+0.4*(p.Y.Max-p.Y.Min))
	return encodeFigure(tb, p)
}

// sweepCurve returns the points of a sweep with their labels. Points that fall
// together get one label.
func sweepCurve(s sweep, part string, accepted reproFigures) *plotter.Labels {
	curve := &plotter.Labels{Offset: vg.Point{X: vg.Points(4), Y: vg.Points(5)}}
	for _, setting := range s.settings {
		figures := accepted[setting.String()]
		at := plotter.XY{X: math.Log10(100 * figures[densityFigure]), Y: 100 * figures[figure(part, softMeasure)]}
		if last := len(curve.XYs) - 1; last >= 0 && curve.XYs[last] == at {
			curve.Labels[last] += ", " + s.label(setting)
			continue
		}
		curve.XYs, curve.Labels = append(curve.XYs, at), append(curve.Labels, s.label(setting))
		curve.TextStyle = append(curve.TextStyle, figureText(9, figureGray))
	}
	return curve
}

// newFigure returns a plot without data.
func newFigure(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "density of S in % (logarithmic)", "MAP in %"
	p.Title.TextStyle = figureText(12, figureInk)
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = text.XCenter, text.YTop
	p.Title.Padding = vg.Points(8)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		label, tick := figureText(10.5, figureInk), figureText(9.5, figureGray)
		label.XAlign, label.YAlign = axis.Label.TextStyle.XAlign, axis.Label.TextStyle.YAlign
		tick.XAlign, tick.YAlign = axis.Tick.Label.XAlign, axis.Tick.Label.YAlign
		axis.Label.TextStyle, axis.Tick.Label = label, tick
		axis.Label.Padding, axis.Padding = vg.Points(4), 0
		axis.Color, axis.Tick.Color = figureGray, figureGray
	}
	p.X.Tick.Marker = plot.TickerFunc(powersOfTen)
	p.Y.Tick.Marker = plot.TickerFunc(wholeNumbers)
	p.Legend.TextStyle = figureText(9.5, figureInk)
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Points(3)
	p.Legend.YOffs, p.Legend.XOffs = -vg.Points(4), vg.Points(6)
	line := draw.LineStyle{Color: figurePale, Width: vg.Points(0.6)}
	p.Add(&plotter.Grid{Vertical: line, Horizontal: line})
	return p
}

// powersOfTen marks an axis of common logarithms.
func powersOfTen(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(low); e <= math.Ceil(high); e++ {
		for digit := range 9 {
			at := e + math.Log10(float64(digit+1))
			if at < low || at > high {
				continue
			}
			label := ""
			if digit == 0 || digit == 1 || digit == 4 { // 1, 2 and 5
				label = fmt.Sprintf("%g", float64(digit+1)*math.Pow10(int(e)))
			}
			ticks = append(ticks, plot.Tick{Value: at, Label: label})
		}
	}
	return ticks
}

func wholeNumbers(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for v := math.Ceil(low); v <= high; v++ {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
	}
	return ticks
}

// A level is a horizontal line over the whole width.
type level struct {
	at    float64
	style draw.LineStyle
}

// Plot draws the line.
func (l level) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	c.StrokeLine2(l.style, c.Min.X, y(l.at), c.Max.X, y(l.at))
}

func encodeFigure(tb testing.TB, p *plot.Plot) []byte {
	tb.Helper()
	canvas := vgsvg.New(18*vg.Centimeter, 10*vg.Centimeter)
	area := draw.New(canvas)
	area.SetColor(color.White)
	area.Fill(area.Path())
	p.Draw(draw.Crop(area, vg.Points(10), -vg.Points(14), vg.Points(10), -vg.Points(10)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		tb.Fatal(err)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte(`style="font-family:Liberation Sans;`),
		[]byte(`style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;`))
}

func TestFiguresShowTheAcceptedReproduction(t *testing.T) {
	accepted := acceptedReproduction(t)
	for _, s := range sweeps() {
		if s.name == "" {
			continue
		}
		drawn, err := os.ReadFile(sweepFile(s))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(drawn, drawSweep(t, s, accepted)) {
			t.Errorf("%s does not show %s (go test ./e2e -run 'TestReproduction$' -update draws it)", sweepFile(s), reproductionFile)
		}
		for _, setting := range s.settings {
			if !strings.Contains(string(drawn), s.label(setting)) {
				t.Errorf("%s has no point %s", sweepFile(s), s.label(setting))
			}
		}
	}
}
