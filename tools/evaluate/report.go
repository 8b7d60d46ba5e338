package evaluate

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
)

// shownQueries is how many of the most improved queries are shown, and how many
// of the most harmed.
const shownQueries = 5

//go:embed head.html page.html sweep.html
var pages embed.FS

// WritePage writes a result as a self-contained HTML page. The result must have
// an arm, a measure, and the answers of every arm to each query. The first
// measure orders the queries and gives the figure of changes. The same result
// gives the same bytes.
func WritePage(w io.Writer, r *Result) error {
	return writePage(w, "page.html", newView(r))
}

func writePage(w io.Writer, name string, view any) error {
	page, err := template.New(name).Funcs(template.FuncMap{
		"clip": clip, "signed": signed,
		"rank":      func(k int) int { return k + 1 },
		"percent":   func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
		"relative":  func(e Estimate) string { return percent(e.Gain.Mean, e.Mean-e.Gain.Mean) },
		"direction": direction,
		"value":     func(v *float64) float64 { return *v },
	}).ParseFS(pages, "head.html", name)
	if err != nil {
		return err
	}
	return page.Execute(w, view)
}

type view struct {
	*Result

	Comparisons []*comparison
	Best        *comparison // nil with one arm
}

// Measure returns the measure that orders queries.
func (v view) Measure() string { return v.Measures[0] }

func newView(r *Result) view {
	v := view{Result: r}
	for k := range r.Arms[1:] {
		c := compareRows(r, k+1)
		if v.Best == nil || c.beats(v.Best) {
			v.Best = c
		}
		v.Comparisons = append(v.Comparisons, c)
	}
	return v
}

// A comparison compares an arm with the first.
type comparison struct {
	Measure    string
	First, Arm ArmResult
	Estimate   Estimate
	Bars       []bar  // the change of each query, the largest gain first
	Says       string // a description of the bars
	// The queries that changed most, the largest change first.
	Improved, Harmed []change
}

// Verdict returns what is certain beyond chance.
func (c *comparison) Verdict() string {
	switch gain := c.Estimate.Gain; {
	case gain.Holm >= 0.05:
		return "is not clearly better or worse than"
	case gain.Mean > 0:
		return "ranks better than"
	default:
		return "ranks worse than"
	}
}

// beats reports whether its arm is a better choice than another's. A gain
// beyond chance takes precedence.
func (c *comparison) beats(other *comparison) bool {
	sure := func(c *comparison) bool { return c.Estimate.Gain.Mean > 0 && c.Estimate.Gain.Holm < 0.05 }
	if sure(c) != sure(other) {
		return sure(c)
	}
	return c.Estimate.Mean > other.Estimate.Mean
}

func compareRows(r *Result, k int) *comparison {
	measure := r.Measures[0]
	c := &comparison{Measure: measure, First: r.Arms[0], Arm: r.Arms[k], Estimate: r.Arms[k].Measures[measure]}
	changes := make([]change, len(r.Queries))
	for i, q := range r.Queries {
		before, after := q.Arms[0], q.Arms[k]
		changes[i] = change{
			Query: q.Query, Of: c, Before: before.Measures[measure], After: after.Measures[measure],
			Added: after.Added, Rows: sideBySide(before.Hits, after.Hits),
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(b.Difference(), a.Difference()) })
	differences := make([]float64, len(changes))
	for i, change := range changes {
		differences[i] = change.Difference()
	}
	c.Bars, c.Says = bars(differences)
	for i, last := 0, len(changes)-1; i < min(shownQueries, len(changes)); i++ {
		if changes[i].Difference() > 0 {
			c.Improved = append(c.Improved, changes[i])
		}
		if changes[last-i].Difference() < 0 {
			c.Harmed = append(c.Harmed, changes[last-i])
		}
	}
	return c
}

// A change is the effect of an arm on a query.
type change struct {
	Query

	Of            *comparison
	Before, After float64
	Added         []AddedTerm
	Rows          []row
}

// Difference is above zero if the arm is better.
func (c change) Difference() float64 { return c.After - c.Before }

// A row has the documents at a rank, nil after the end of a list.
type row struct{ Before, After *found }

type found struct {
	Hit

	Moved string // relative to the other list
}

// Relevant reports whether the document was judged relevant.
func (f *found) Relevant() bool { return *f.Grade > 0 }

func sideBySide(before, after []Hit) []row {
	rows := make([]row, max(len(before), len(after)))
	rank := func(hits []Hit, id string) int {
		return slices.IndexFunc(hits, func(h Hit) bool { return h.ID == id })
	}
	for k, hit := range before {
		rows[k].Before = &found{Hit: hit}
		if rank(after, hit.ID) < 0 {
			rows[k].Before.Moved = "gone"
		}
	}
	for k, hit := range after {
		moved := ""
		switch was := rank(before, hit.ID); {
		case was < 0:
			moved = "new"
		case was > k:
			moved = fmt.Sprintf("up %d", was-k)
		case was < k:
			moved = fmt.Sprintf("down %d", k-was)
		}
		rows[k].After = &found{hit, moved}
	}
	return rows
}

// A bar is the change of a query, up or down. Its height is a percentage of the
// figure's: 50 for the largest change.
type bar struct {
	Class  string
	Height float64
}

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

// clip returns a text of users or documents for display: on one line, cut after
// most characters, without control characters and those that XML forbids.
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
