package evaluate

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// shownQueries is how many queries are shown that an arm improved most, and how
// many that it harmed most.
const shownQueries = 5

// A PageFile is a file of a report, to be written to its folder.
type PageFile struct {
	Name string
	Data []byte
}

//go:embed page.html
var source string

// Files returns the page of a result, index.html, and its plots as SVG. The
// result has an arm, a measure, and for each query what every arm returned. The
// plots are about the first measure. The same result gives the same bytes.
func Files(r *Result) ([]PageFile, error) {
	templates, err := template.New("").Funcs(template.FuncMap{
		"clip": clip, "signed": signed,
		"rank":      func(k int) int { return k + 1 },
		"percent":   func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
		"direction": direction, "relative": relative,
		"value": func(v *float64) float64 { return *v },
	}).Parse(source)
	if err != nil {
		return nil, err
	}
	v := newView(r)
	var files []PageFile
	add := func(name, template string, value any) {
		var b bytes.Buffer
		err = cmp.Or(err, templates.ExecuteTemplate(&b, template, value))
		files = append(files, PageFile{name, b.Bytes()})
	}
	add("index.html", "page", v)
	plots := v.Plots
	for _, c := range v.Comparisons {
		plots = append(plots, c.Plot)
	}
	for _, p := range plots {
		add(p.Name+".svg", "plot", p)
	}
	return files, err
}

type view struct {
	*Result

	Plots       []plot
	Comparisons []*comparison
	Best        *comparison // nil of one arm
}

// Measure is what queries are ordered by, and the plots are about.
func (v view) Measure() string { return v.Measures[0] }

func newView(r *Result) view {
	v := view{Result: r, Plots: armPlots(r)}
	for k := range r.Arms[1:] {
		c := compareRows(r, k+1)
		if v.Best == nil || c.beats(v.Best) {
			v.Best = c
		}
		v.Comparisons = append(v.Comparisons, c)
	}
	return v
}

// armPlots returns the plots that compare all arms.
func armPlots(r *Result) []plot {
	measure := r.Measures[0]
	first := r.Arms[0].Measures[measure].Mean
	means := make([]plotPoint, len(r.Arms))
	var gains, dense, fast []plotPoint
	for k, arm := range r.Arms {
		e := arm.Measures[measure]
		means[k] = plotPoint{k, arm.Name, e.Mean, e.Interval, arm.Latency.P50, arm.Latency.P95}
		if e.Gain != nil {
			gains = append(gains, plotPoint{arm: k, name: arm.Name, value: e.Gain.Mean, in: e.Gain.Interval})
		}
		if e, ok := arm.Measures["MAP"]; ok && arm.Density > 0 {
			dense = append(dense, plotPoint{k, arm.Name, e.Mean, e.Interval, arm.Density, arm.Density})
		}
		if arm.Latency.P50 > 0 {
			fast = append(fast, means[k])
		}
	}
	plots := []plot{intervals("arms", measure+" of each arm", measure, first, means)}
	if len(gains) > 0 {
		plots = append(plots, intervals("gains", "Gain over the first arm", "gain in "+measure, 0, gains))
	}
	if slices.ContainsFunc(dense, func(p plotPoint) bool { return p.x != dense[0].x }) {
		plots = append(plots, scatter("density", "MAP against the density of S", "MAP", "density of S in % (logarithmic)", r.Arms[0].Measures["MAP"].Mean, dense))
	}
	if len(fast) > 1 {
		plots = append(plots, scatter("latency", measure+" against latency", measure, "milliseconds, median to p95 (logarithmic)", first, fast))
	}
	return plots
}

// A comparison is of an arm with the first.
type comparison struct {
	Measure    string
	First, Arm ArmResult
	Estimate   Estimate
	Plot       plot
	// The queries that changed most, the greatest change first.
	Improved, Harmed []change
}

// Verdict is what can be said with confidence.
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

// beats reports whether its arm is rather to be chosen than that of another:
// what is better beyond chance goes first.
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
	c.Plot = bars(fmt.Sprintf("queries-%d", k+1), measure, differences)
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

// A change is what an arm did to a query.
type change struct {
	Query

	Of            *comparison
	Before, After float64
	Added         []AddedTerm
	Rows          []row
}

// Difference is above zero where the arm is better.
func (c change) Difference() float64 { return c.After - c.Before }

// A row has the documents of a rank, nil where a list has ended.
type row struct{ Before, After *found }

type found struct {
	Hit

	Moved string // against the other list
}

// Relevant reports whether judges found the document relevant.
func (f *found) Relevant() bool { return *f.Grade > 0 }

// sideBySide returns the documents of both lists.
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

// relative writes a gain in percent of what the first arm has.
func relative(e Estimate) string {
	first := e.Mean - e.Gain.Mean
	if first <= 0 {
		return ""
	}
	return strings.Replace(fmt.Sprintf("%+.1f %%", 100*e.Gain.Mean/first), "-", "−", 1)
}
