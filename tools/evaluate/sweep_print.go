package evaluate

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/akin-search/akin/tools/chart"
)

// fewQueries is the number of queries under which only large differences are
// sure.
const fewQueries = 100

// Advice says which matrix to take.
func (s *SweepResult) Advice() string {
	take, best := s.Matrices[s.Take], s.Matrices[s.Best]
	if s.Take == s.Best {
		return fmt.Sprintf("%s (%s): the best, and no smaller file is as good", take.Variant, take.Flags())
	}
	return fmt.Sprintf("%s (%s): the smallest file that is not surely worse than the best, %s (%s)", take.Variant, take.Flags(), best.Variant, best.Flags())
}

// Gain compares the matrix to take with direct search and with the best.
func (s *SweepResult) Gain() string {
	take := s.Matrices[s.Take]
	gain, verdict := take.NDCG.Gain, "ranks surely better than"
	if !take.gains() {
		verdict = "does not rank surely better than"
	}
	text := fmt.Sprintf("It %s direct search: nDCG@10 %+.4f%s, 95 %% interval %+.4f to %+.4f, p = %.3g corrected for all matrices.",
		verdict, gain.Mean, percent(gain.Mean, s.Direct), gain.Interval.Low, gain.Interval.High, gain.Holm)
	if s.Take != s.Best {
		text += fmt.Sprintf(" To the best it is %+.4f, %+.4f to %+.4f.", take.Behind, take.BehindInterval.Low, take.BehindInterval.High)
	}
	return text
}

// Caution says what the figures do not say.
func (s *SweepResult) Caution() string {
	text := "The matrix was chosen on the queries that it was measured on, and gains less on others: compare it by akin eval on queries of their own."
	if s.Queries < fewQueries {
		text = fmt.Sprintf("Warning: %d judged queries are few: only large differences are sure. ", s.Queries) + text
	}
	return text
}

// Print writes the result as a table.
func (s *SweepResult) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, m := range s.Matrices {
		m.warn(w, m.String())
	}
	fmt.Fprintf(w, "%d queries\tnDCG@10\tover direct search\t95 %% interval\tp\tto the best\tfile\tadded terms\tengine ms\tdirect ms\n", s.Queries)
	fmt.Fprintf(w, "direct search\t%.4f\n", s.Direct)
	for _, m := range s.Matrices {
		gain := m.NDCG.Gain
		fmt.Fprintf(w, "%s\t%.4f\t%+.4f%s\t%+.4f to %+.4f\t%.3g\t%+.4f\t%s\t%.1f\t%.2f\t%.2f\n", m.Variant, m.NDCG.Mean, gain.Mean, percent(gain.Mean, s.Direct),
			gain.Interval.Low, gain.Interval.High, gain.Holm, m.Behind, m.Size(), m.AddedTerms, m.EngineMillis, m.DirectMillis)
	}
	writeNotes(w, s.notes)
	fmt.Fprintf(w, "\nTake %s.\n%s\n%s\n", s.Advice(), s.Gain(), s.Caution())
	return w.Flush()
}

// Size is that of the file.
func (m SweptMatrix) Size() string { return fmt.Sprintf("%.3g MB", float64(m.Bytes)/1e6) }

// A figure is a picture of the page.
type figure struct {
	Caption, Says string
	Image         template.URL
}

// directColor is that of direct search, behind those of the factors.
const directColor = 4

type sweepView struct {
	*SweepResult

	Figures []figure
}

// Notes are those of the evaluation.
func (v sweepView) Notes() []Note { return v.notes }

// WriteSweepPage writes a result as a self-contained HTML page. The same result
// gives the same bytes.
func WriteSweepPage(w io.Writer, s *SweepResult) error {
	view := sweepView{SweepResult: s}
	for _, f := range []struct {
		caption string
		chart   chart.Chart
		x       func(m SweptMatrix) float64
	}{
		{"nDCG@10 by the size of the file", chart.Chart{X: "file in MB (logarithmic)", Log: true}, func(m SweptMatrix) float64 { return float64(m.Bytes) / 1e6 }},
		{"nDCG@10 by the engine's time", chart.Chart{X: "engine's time of a search in ms, beyond direct search"}, func(m SweptMatrix) float64 { return m.EngineMillis - m.DirectMillis }},
	} {
		c := f.chart
		c.Y, c.Curves = SweptMeasure, s.curves(f.x)
		c.Levels = []chart.Level{{Name: "direct search", Color: directColor, Y: s.Direct}}
		drawn, err := c.SVG()
		if err != nil {
			return fmt.Errorf("%s: %w", f.caption, err)
		}
		view.Figures = append(view.Figures, figure{
			f.caption, f.caption + " for each matrix; the table has the figures", template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(drawn)), //nolint:gosec // drawn here
		})
	}
	return writePage(w, "sweep.html", view)
}

// curves returns a curve for each factor, through the default and the values of
// the factor in ascending order. The default is named once.
func (s *SweepResult) curves(x func(m SweptMatrix) float64) (curves []chart.Curve) {
	for k, factor := range []string{FactorNeighbors, FactorMinSimilarity, FactorPower, FactorShare} {
		of := slices.DeleteFunc(slices.Clone(s.Matrices), func(m SweptMatrix) bool { return m.Factor != "" && m.Factor != factor })
		if len(of) == 1 { // only the default
			continue
		}
		slices.SortFunc(of, func(a, b SweptMatrix) int { return cmp.Compare(a.valueOf(factor), b.valueOf(factor)) })
		curve := chart.Curve{Name: factor, Color: k}
		for _, m := range of {
			at := chart.Point{X: x(m), Y: m.NDCG.Mean, Label: formatValue(m.Value)}
			if m.Factor == "" {
				at.Label = ""
				if len(curves) == 0 {
					at.Label = "default"
				}
			}
			curve.Points = append(curve.Points, at)
		}
		curves = append(curves, curve)
	}
	return curves
}
