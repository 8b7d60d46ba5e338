package evaluate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A plot is a drawing whose marks have classes, which the page's style gives
// their colors, light and dark. Paths are at the back, texts in front.
type plot struct {
	Name   string // of its file, without .svg
	Title  string
	Says   string // what it shows, in words
	Key    []string
	Height float64
	Paths  []path
	Dots   []dot
	Texts  []label
}

type path struct{ Class, D string }

type dot struct {
	Class string
	X, Y  float64
	Says  string
}

// A label is a text anchored at its start, middle or end.
type label struct {
	Class, Anchor string
	X, Y          float64
	Text          string
	Turned        bool // by 90° to the left
}

// What plots have in common, in units in which a letter is 14 high, and 17 on
// a phone.
const (
	plotWidth  = 480
	plotHeight = 300
	plotRight  = plotWidth - 16
	plotLeft   = 76
	plotTop    = 14
)

func (p *plot) path(class, format string, args ...any) {
	p.Paths = append(p.Paths, path{class, fmt.Sprintf(format, args...)})
}

func (p *plot) text(anchor string, x, y float64, text string) {
	p.Texts = append(p.Texts, label{Anchor: anchor, X: x, Y: y, Text: text})
}

// An axis goes from low to high, and on the drawing from start to end.
type axis struct {
	low, high, start, end float64
	logarithmic           bool
}

// around returns an axis on which the values and a margin have room. Those of a
// logarithmic one are above zero.
func around(values []float64, logarithmic bool) axis {
	low, high := slices.Min(values), slices.Max(values)
	if logarithmic {
		return axis{low: low / 1.25, high: high * 1.25, logarithmic: true}
	}
	margin := max(0.08*(high-low), 0.02*math.Abs(high), 0.001)
	return axis{low: low - margin, high: high + margin}
}

func (a axis) at(value float64) float64 {
	low, high := a.low, a.high
	if a.logarithmic {
		value, low, high = math.Log(value), math.Log(low), math.Log(high)
	}
	return a.start + (value-low)/(high-low)*(a.end-a.start)
}

// ticks returns two to seven round values: 1, 2 and 5 of each power of ten, or
// the powers only, or multiples of one of them.
func (a axis) ticks() []float64 {
	var ticks []float64
	add := func(value float64) {
		if a.low <= value && value <= a.high {
			ticks = append(ticks, value)
		}
	}
	for _, digits := range [][]float64{{1, 2, 5}, {1}} {
		for power := math.Floor(math.Log10(a.low)); a.logarithmic && power <= math.Log10(a.high); power++ {
			for _, digit := range digits {
				add(digit * math.Pow(10, power))
			}
		}
		if len(ticks) > 2 && len(ticks) < 8 || len(digits) == 1 && len(ticks) > 1 {
			return ticks
		}
		ticks = nil
	}
	step := math.Pow(10, math.Floor(math.Log10(a.high-a.low)))
	for _, part := range []float64{0.2, 0.5, 1, 2} {
		if (a.high-a.low)/(step*part) <= 6 {
			step *= part
			break
		}
	}
	for k := math.Ceil(a.low / step); k*step <= a.high; k++ {
		add(k * step)
	}
	return ticks
}

// horizontal draws the axis below the rest of the plot.
func (p *plot) horizontal(a axis, title string) {
	bottom := p.Height - 46
	for _, tick := range a.ticks() {
		p.path("grid", "M%.1f %dV%.1f", a.at(tick), plotTop, bottom)
		p.text("middle", a.at(tick), bottom+18, number(tick))
	}
	p.text("middle", (a.start+a.end)/2, p.Height-6, title)
}

// vertical draws the axis left of the plot.
func (p *plot) vertical(a axis, title string) {
	for _, tick := range a.ticks() {
		p.path("grid", "M%.1f %.1fH%d", float64(plotLeft), a.at(tick), plotRight)
		p.text("end", plotLeft-6, a.at(tick)+5, number(tick))
	}
	p.Texts = append(p.Texts, label{Anchor: "middle", X: 20, Y: (a.start + a.end) / 2, Text: title, Turned: true})
}

func signed(value float64) string {
	return strings.Replace(fmt.Sprintf("%+.4f", value), "-", "−", 1)
}

func number(value float64) string {
	return strings.Replace(strconv.FormatFloat(value+0, 'g', 4, 64), "-", "−", 1) // −0 + 0 is 0
}

// A point is what an arm reached, with the interval that holds it.
type plotPoint struct {
	arm      int // from 0, which the others are compared with
	name     string
	value    float64
	in       Interval
	x, xHigh float64 // where it is drawn, to the right as far as xHigh
}

func (p plotPoint) class() string {
	if p.arm == 0 {
		return "first"
	}
	return "arm"
}

// label numbers an arm as the table does.
func (p plotPoint) label() string { return strconv.Itoa(p.arm+1) + " " + clip(p.name, 44) }

func (p plotPoint) says() string {
	return fmt.Sprintf("%s: %.4f (%.4f to %.4f)", p.label(), p.value, p.in.Low, p.in.High)
}

func spread(points []plotPoint) []float64 {
	values := make([]float64, 0, 3*len(points)+1)
	for _, p := range points {
		values = append(values, p.value, p.in.Low, p.in.High)
	}
	return values
}

func allOf(points []plotPoint) string {
	lines := make([]string, len(points))
	for k, p := range points {
		lines[k] = p.says()
	}
	return strings.Join(lines, "; ")
}

// intervals draws a row for each arm: its value and its interval. A line at the
// base goes through all rows.
func intervals(name, title, horizontal string, base float64, arms []plotPoint) plot {
	const row = 44
	p := plot{Name: name, Title: title, Height: plotTop + row*float64(len(arms)) + 50, Says: allOf(arms)}
	x := around(append(spread(arms), base), false)
	x.start, x.end = 16, plotRight
	p.horizontal(x, horizontal)
	p.path("base", "M%.1f %dV%.1f", x.at(base), plotTop, p.Height-46)
	for k, arm := range arms {
		y := plotTop + row*float64(k) + 30
		p.path(arm.class(), "M%.1f %.1fH%.1f", x.at(arm.in.Low), y, x.at(arm.in.High))
		p.Dots = append(p.Dots, dot{arm.class(), x.at(arm.value), y, arm.says()})
		p.Texts = append(p.Texts, label{Class: "name", Anchor: "start", X: 16, Y: y - 12, Text: arm.label()})
	}
	return p
}

// scatter draws the arms by what they have on a logarithmic axis, with a line
// at the base.
func scatter(name, title, vertical, horizontal string, base float64, arms []plotPoint) plot {
	p := plot{Name: name, Title: title, Height: plotHeight, Says: allOf(arms)}
	xs := make([]float64, 0, 2*len(arms))
	for _, arm := range arms {
		xs = append(xs, arm.x, arm.xHigh)
	}
	x, y := around(xs, true), around(append(spread(arms), base), false)
	x.start, x.end, y.start, y.end = plotLeft, plotRight, plotHeight-46, plotTop
	p.horizontal(x, horizontal)
	p.vertical(y, vertical)
	p.path("base", "M%d %.1fH%d", plotLeft, y.at(base), plotRight)
	for _, arm := range arms {
		p.path(arm.class()+" thin", "M%.1f %.1fV%.1f", x.at(arm.x), y.at(arm.in.Low), y.at(arm.in.High))
		p.path(arm.class()+" thin", "M%.1f %.1fH%.1f", x.at(arm.x), y.at(arm.value), x.at(arm.xHigh))
		p.Dots = append(p.Dots, dot{arm.class(), x.at(arm.x), y.at(arm.value), arm.says()})
		p.Texts = append(p.Texts, label{Class: "name", Anchor: "start", X: x.at(arm.x) + 7, Y: y.at(arm.value) + 5 - 13*float64(arm.arm%2*2-1), Text: strconv.Itoa(arm.arm + 1)})
		p.Key = append(p.Key, arm.label())
	}
	return p
}

// bars draws the changes of queries, the most improved first.
func bars(name, measure string, changes []float64) plot {
	p := plot{Name: name, Title: "Change of each query, sorted", Height: plotHeight}
	y := around(append([]float64{0}, changes...), false)
	y.start, y.end = plotHeight-46, plotTop
	p.vertical(y, "change of "+measure)
	wide := float64(plotRight-plotLeft) / float64(max(1, len(changes)))
	count, drawn := map[string]int{}, map[string]*strings.Builder{"up": {}, "down": {}, "quiet": {}} // by class
	for k, change := range changes {
		class := direction(change)
		count[class]++
		fmt.Fprintf(drawn[class], "M%.2f %.1fV%.1fh%.2fV%.1fZ", plotLeft+wide*float64(k), y.at(0), y.at(change), max(0.5, wide*0.85), y.at(0))
	}
	p.path("up", "%s", drawn["up"])
	p.path("down", "%s", drawn["down"])
	p.path("base", "M%d %.1fH%d", plotLeft, y.at(0), plotRight)
	p.Says = fmt.Sprintf("%d queries better, %d worse, %d the same", count["up"], count["down"], count["quiet"])
	p.text("middle", (plotLeft+plotRight)/2, plotHeight-18, p.Says)
	return p
}

func direction(difference float64) string {
	switch {
	case difference > 0:
		return "up"
	case difference < 0:
		return "down"
	}
	return "quiet"
}

// clip makes a text of users or documents fit to be shown: in one line, without
// control characters and what XML forbids, and at most so many characters long.
func clip(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r&0xfffe == 0xfffe:
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
	shown := 0
	for at := range text {
		if shown++; shown > most {
			return text[:at] + "…"
		}
	}
	return text
}
