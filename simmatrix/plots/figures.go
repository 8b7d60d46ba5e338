package plots

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
)

// The colors of the figures.
var (
	darkest = color.RGBA{R: 0x22, G: 0x26, B: 0x2b, A: 0xff}
	gray    = color.RGBA{R: 0x5d, G: 0x66, B: 0x70, A: 0xff}
	pale    = color.RGBA{R: 0xdf, G: 0xe3, B: 0xe8, A: 0xff}
	blue    = color.RGBA{R: 0x2b, G: 0x6c, B: 0xb0, A: 0xff}
)

// An axis goes from min to max, common logarithms where it is logarithmic.
type axis struct {
	label    string
	min, max float64
	ticks    func(low, high float64) []tick
}

// A chart is a figure before it is drawn: bars, or a curve.
type chart struct {
	title string
	x, y  axis
	bars  []Bin
	curve []Point
	floor float64 // under the curve: the density of the diagonal
}

// chart returns the figure of s, which has entries.
func (f Figure) chart(s *Summary) (*chart, error) {
	switch f {
	case Similarities:
		c := &chart{title: "How similar the neighbors are", bars: s.Similarities()}
		most := uint64(1)
		for _, b := range c.bars {
			most = max(most, b.Entries)
		}
		_, top := logRange(1, float64(most))
		c.x = axis{"similarity of a term and its neighbor, in steps of 0.02", 0, 1, tenths}
		c.y = axis{"neighbors (logarithmic)", math.Log10(0.7), top, logTicks} // from 0.7, so that a single neighbor is visible
		return c, nil
	case DensityByNeighbors:
		c := densities(s.DensityByNeighbors(), s.density(0))
		c.title, c.x.label = "Density when each term keeps its C most similar neighbors", "C, neighbors kept of a term (logarithmic)"
		return c, nil
	case DensityByThreshold:
		c := densities(s.DensityByThreshold(), s.density(0))
		c.title, c.x.label = "Density when only similarities above θ are kept", "θ, threshold of similarity (logarithmic)"
		c.x.max = 0
		return c, nil
	default:
		return nil, fmt.Errorf("no figure %q; there are %q", f, Figures())
	}
}

// densities returns a curve above the density of the diagonal.
func densities(points []Point, diagonal float64) *chart {
	c := &chart{curve: points, floor: diagonal}
	most := diagonal
	for _, p := range points {
		most = max(most, p.Density)
	}
	low, high := logRange(points[0].At, points[len(points)-1].At)
	c.x = axis{min: low, max: high, ticks: logTicks}
	_, top := logRange(diagonal, most)
	top = min(top, math.Log10(105)) // no density is above 100 %
	floor := math.Log10(diagonal)
	c.y = axis{"density in % (logarithmic)", floor - 0.1*(top-floor), top, logTicks}
	return c
}

func (c *chart) draw(p *picture, left, top, right, bottom float64) {
	x := func(v float64) float64 { return left + (v-c.x.min)/(c.x.max-c.x.min)*(right-left) }
	y := func(v float64) float64 { return bottom - (v-c.y.min)/(c.y.max-c.y.min)*(bottom-top) }
	p.text(c.title, (left+right)/2, top-10, 12, darkest, middle)
	for _, t := range c.x.ticks(c.x.min, c.x.max) {
		at := x(t.value)
		if t.label != "" {
			p.line(pale, 0.6, point{at, top}, point{at, bottom})
			p.text(t.label, at, bottom+tickLength+tickSize, tickSize, gray, middle)
		}
		p.line(gray, 0.5, point{at, bottom}, point{at, bottom + t.length()})
	}
	for _, t := range c.y.ticks(c.y.min, c.y.max) {
		at := y(t.value)
		if t.label != "" {
			p.line(pale, 0.6, point{left, at}, point{right, at})
			p.text(t.label, left-tickLength-2, at+0.35*tickSize, tickSize, gray, end)
		}
		p.line(gray, 0.5, point{left - t.length(), at}, point{left, at})
	}
	p.text(c.x.label, (left+right)/2, bottom+tickLength+2.7*tickSize, labelSize, darkest, middle)
	p.text(c.y.label, margin+labelSize, (top+bottom)/2, labelSize, darkest, middle)
	p.marks[len(p.marks)-1].turned = true
	c.drawData(p, x, y, right)
	p.line(gray, 0.5, point{left, top}, point{left, bottom}, point{right, bottom})
}

func (c *chart) drawData(p *picture, x, y func(float64) float64, right float64) {
	const gap, dotsUpTo, radius = 0.4, 25, 3
	for _, b := range c.bars {
		if b.Entries > 0 {
			l, r, top, bottom := x(b.Low)+gap, x(b.High)-gap, y(math.Log10(float64(b.Entries))), y(c.y.min)
			p.line(blue, 0, point{l, bottom}, point{r, bottom}, point{r, top}, point{l, top})
		}
	}
	if c.curve == nil {
		return
	}
	floor := y(math.Log10(c.floor))
	for from := x(c.x.min); from < right; from += 7 {
		p.line(gray, 0.8, point{from, floor}, point{min(from+4, right), floor})
	}
	p.text("only the terms, without neighbors", right-5, floor+3+tickSize, tickSize, gray, end)
	line := make([]point, len(c.curve))
	for k, at := range c.curve {
		line[k] = point{x(math.Log10(at.At)), y(math.Log10(at.Density))}
		if len(c.curve) <= dotsUpTo {
			p.dot(blue, radius, line[k])
		}
	}
	p.line(blue, 1.8, line...)
}

// A tick is a mark on an axis; most have no label.
type tick struct {
	value float64
	label string
}

func (t tick) length() float64 {
	if t.label == "" {
		return tickLength / 2
	}
	return tickLength
}

// minRatio is how far apart the ends of a logarithmic axis are at least, so
// that it has a tick with a label: 1, 2 or 5 of some power of ten.
const minRatio = 4

// logRange returns the ends of a logarithmic axis, as common logarithms.
func logRange(least, most float64) (low, high float64) {
	return math.Log10(least / 1.1), math.Log10(max(most*1.15, least*minRatio))
}

// logTicks marks the digits of each power of ten on an axis of common
// logarithms, and labels the power; on a short axis the digits 2 and 5, too.
func logTicks(low, high float64) []tick {
	var ticks []tick
	short := high-low < 4.5
	for power := int(math.Floor(low)); float64(power) <= high; power++ {
		for digit := 1; digit < 10; digit++ {
			t := tick{value: float64(power) + math.Log10(float64(digit))}
			if t.value < low || t.value > high {
				continue
			}
			if digit == 1 || short && (digit == 2 || digit == 5) {
				t.label = decimal(digit, power)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

func decimal(digit, power int) string {
	value := float64(digit) * math.Pow10(power)
	if power < 0 {
		return strconv.FormatFloat(value, 'f', -power, 64)
	}
	return group(uint64(value))
}

func group(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// tenths marks 0, 0.05, 0.1, … 1 and labels the tenths, whatever the range.
func tenths(_, _ float64) []tick {
	ticks := make([]tick, 21)
	for k := range ticks {
		ticks[k].value = float64(k) / 20
		if k%2 == 0 {
			ticks[k].label = strconv.FormatFloat(ticks[k].value, 'f', 1, 64)
		}
	}
	return ticks
}
