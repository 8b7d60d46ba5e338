package evaluate

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
)

// WriteTable writes the result as tables: what spoils it, each arm, its gains
// over the first one, and which judgments could not be used.
func (r *Result) WriteTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, a := range r.Arms {
		a.warn(out, a.Name)
	}
	fmt.Fprintf(out, "%d queries\t%s\tunjudged@%d\texpanded\tadded terms\tp50 ms\tp95 ms\tp99 ms\n", len(r.Queries), strings.Join(r.Measures, "\t"), ShownHits)
	for _, a := range r.Arms {
		fmt.Fprint(out, a.Name)
		for _, m := range r.Measures {
			fmt.Fprintf(out, "\t%.4f", a.Measures[m].Mean)
		}
		added := "-"
		if a.AddedTerms != nil {
			added = fmt.Sprintf("%.1f", *a.AddedTerms)
		}
		fmt.Fprintf(out, "\t%.1f %%\t%s\t%s\t%.1f\t%.1f\t%.1f\n", 100*a.Unjudged, a.Share(), added, a.Latency.P50, a.Latency.P95, a.Latency.P99)
	}
	for _, a := range r.Arms[1:] {
		fmt.Fprintf(out, "\n%s against %s\tdifference\t95 %% confidence interval\tchance\tcorrected for all arms\n", a.Name, r.Arms[0].Name)
		for _, m := range r.Measures {
			e, first := a.Measures[m], r.Arms[0].Measures[m].Mean
			fmt.Fprintf(out, "%s\t%+.4f%s\t[%+.4f, %+.4f]\tp = %.4f\tp = %.4f\n", m, e.Gain.Mean, percent(e.Gain.Mean, first),
				e.Gain.Interval.Low, e.Gain.Interval.High, e.Gain.P, e.Gain.Holm)
		}
	}
	writeNotes(out, r.Notes())
	return out.Flush()
}

// percent returns gain as a percentage of over, or "" if over is 0.
func percent(gain, over float64) string {
	if over == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.1f %%)", 100*gain/over)
}

// A Note says what a result leaves out.
type Note struct {
	Count int
	Text  string
	IDs   []string // which ones, if known
}

// Notes returns remarks besides the figures.
func (r *Result) Notes() []Note {
	l := &r.LeftOut
	notes := append(make([]Note, 0, 4+2*len(r.Arms)),
		Note{len(l.Unjudged), "queries without judgments are left out", l.Unjudged},
		Note{len(l.Unknown), "judged queries without a text are left out", l.Unknown},
		Note{len(l.Documents), "judged documents are not in the index, and count as not found", l.Documents},
		Note{l.Ungraded, "lines without a grade are left out", nil},
	)
	for _, a := range r.Arms {
		notes = append(notes, a.notes(a.Name)...)
	}
	return slices.DeleteFunc(notes, func(n Note) bool { return n.Count == 0 })
}

// warn writes the warning of an arm, if there is one.
func (e *Expansion) warn(w io.Writer, arm string) {
	if e.Warning != "" {
		fmt.Fprintf(w, "warning: %s: %s (%s)\n\n", arm, e.Warning, e.Why())
	}
}

func (e *Expansion) notes(arm string) []Note {
	return []Note{
		{e.asked() - e.Expanded, "searches of " + arm + " went to the cluster as they came: " + e.Why(), nil},
		{e.Unexplained, "searches of " + arm + " have no explanation any more: it is unknown which terms they got, and whether they failed", nil},
	}
}

func writeNotes(w io.Writer, notes []Note) {
	for _, n := range notes {
		var list []string
		for _, id := range n.IDs[:min(len(n.IDs), ShownHits)] {
			list = append(list, strconv.Quote(id))
		}
		if len(n.IDs) > ShownHits {
			list = append(list, "… (--json has all)")
		}
		if list != nil {
			n.Text += ": " + strings.Join(list, ", ")
		}
		if n.Count > 0 {
			fmt.Fprintf(w, "\n%d %s\n", n.Count, n.Text)
		}
	}
}

// WriteRun writes the rankings of arm k as a TREC run file, with scores in
// their order.
func WriteRun(w io.Writer, name string, k int, answered []Answered) error {
	out := bufio.NewWriter(w)
	for _, a := range answered {
		for i, h := range Ranking(a.Answers[k].Hits) {
			score := strconv.FormatFloat(h.Score, 'g', -1, 32)
			fmt.Fprintf(out, "%s Q0 %s %d %s %s\n", word(a.Query), word(h.ID), i+1, score, name)
		}
	}
	return out.Flush()
}

// WriteQrels writes the judgments as TREC's qrels for the runs.
func WriteQrels(w io.Writer, set *Set) error {
	out := bufio.NewWriter(w)
	for _, q := range set.Judged() {
		grades := set.Grades[q.ID]
		for _, id := range slices.Sorted(maps.Keys(grades)) {
			fmt.Fprintf(out, "%s 0 %s %v\n", word(q.ID), word(id), grades[id])
		}
	}
	return out.Flush()
}

// word returns an id without blanks, which TREC formats do not allow.
func word(id string) string {
	if strings.ContainsFunc(id, unicode.IsSpace) {
		return url.QueryEscape(id)
	}
	return id
}
