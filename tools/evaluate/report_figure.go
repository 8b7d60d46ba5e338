package evaluate

import (
	"fmt"
	"math"
	"strings"
	"unicode"
)

// A figure shows a value of each arm with its interval, drawn by the page's
// style. Places are in percent of its width.
type figure struct {
	Title string
	Base  float64 // where a line goes through all rows
	Rows  []figureRow
}

type figureRow struct {
	Class, Name     string
	At, From, Width float64 // the value, and its interval
	Says            string
}

// A figureArm is what an arm reached, with the interval that holds it.
type figureArm struct {
	number int // as in the table, from 1; the others are compared with the first
	name   string
	value  float64
	in     Interval
}

// intervals returns the figure of arms that are compared with a base.
func intervals(title string, base float64, arms []figureArm) figure {
	low, high := base, base
	for _, a := range arms {
		low, high = min(low, a.value, a.in.Low), max(high, a.value, a.in.High)
	}
	at := func(value float64) float64 { return 100 * (value - low) / max(high-low, 1e-9) }
	f := figure{Title: title, Base: at(base)}
	for _, a := range arms {
		row := figureRow{
			Class: "arm", Name: fmt.Sprintf("%d %s", a.number, a.name), At: at(a.value), From: at(a.in.Low), Width: at(a.in.High) - at(a.in.Low),
			Says: fmt.Sprintf("%.4f (%.4f to %.4f)", a.value, a.in.Low, a.in.High),
		}
		if a.number == 1 {
			row.Class = "first"
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// A bar is the change of a query, up or down. Its height is in percent of that
// of the figure: 50 is the largest change.
type bar struct {
	Class  string
	Height float64
}

// bars returns the changes of queries as bars, and what they show in words.
func bars(changes []float64) (drawn []bar, says string) {
	largest := 1e-9
	for _, c := range changes {
		largest = max(largest, math.Abs(c))
	}
	count := map[string]int{}
	for _, c := range changes {
		count[direction(c)]++
		drawn = append(drawn, bar{direction(c), 50 * math.Abs(c) / largest})
	}
	return drawn, fmt.Sprintf("%d queries better, %d worse, %d the same", count["up"], count["down"], count["quiet"])
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

func signed(value float64) string {
	return strings.Replace(fmt.Sprintf("%+.4f", value), "-", "−", 1)
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
