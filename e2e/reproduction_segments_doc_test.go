package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// partCells shows the means on both parts.
func (all reproFigures) partCells(setting segmentSetting) string {
	figures := all[setting.String()]
	return fmt.Sprintf("%.2f | %.2f", 100*figures[trainPart], 100*figures[devPart])
}

// segmentTable shows, of the rows of tables 3.2 and 3.3, the best of each approach
// in the thesis, and those with the weights bfx.nfx of whole threads, or of title
// and text.
func segmentTable(all reproFigures) string {
	var b strings.Builder
	b.WriteString("| aggregation | filter | weights | ⊖ | ⊕ | S' | train part 2 | dev | thesis, 2016 test | 2017 test |\n|" +
		strings.Repeat("---|", 10) + "\n")
	best := map[string][2]float64{} // by approach
	for _, row := range segmentRows() {
		of := best[row.approach]
		best[row.approach] = [2]float64{max(of[0], row.thesis[0]), max(of[1], row.thesis[1])}
	}
	for _, row := range segmentRows() {
		of := best[row.approach]
		plain := row.letters == "bfx.nfx" && (row.filter == "" || row.filter == "FirstPara")
		if !plain && row.thesis[0] != of[0] && row.thesis[1] != of[1] {
			continue
		}
		weights, operators := row.letters, "— | — | —"
		if row.terms != "" {
			weights += ", " + row.terms
		}
		if row.approach == handcrafted {
			operators = fmt.Sprintf("%s | %s | %s", row.operators.Result, row.operators.Query, orderName(row.operators))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", row.approach, cmp.Or(row.filter, "—"), weights, operators,
			all.partCells(row.segmentSetting), segmentCells(row.thesis))
	}
	return b.String()
}

// segmentCells shows two figures of the thesis, nothing for 0.
func segmentCells(thesis [2]float64) string {
	var cells []string
	for _, v := range thesis {
		if v == 0 {
			cells = append(cells, "")
		} else {
			cells = append(cells, fmt.Sprintf("%.2f", v))
		}
	}
	return strings.Join(cells, " | ")
}

// bestOnTrain returns what train part 2 chooses for a weighting.
func bestOnTrain(all reproFigures, letters string) segmentSimilarities {
	return slices.MaxFunc(segmentSweep(), func(a, b segmentSimilarities) int {
		return cmp.Compare(all[primarySegments.with(letters, a).String()][trainPart], all[primarySegments.with(letters, b).String()][trainPart])
	})
}

// segmentSweepTable shows what S does within segments: none, and what train
// part 2 chooses for each weighting.
func segmentSweepTable(all reproFigures) string {
	var b strings.Builder
	b.WriteString("| S_rel |")
	for _, letters := range sweptLetters() {
		fmt.Fprintf(&b, " %s: train part 2 | dev |", letters)
	}
	b.WriteString("\n|" + strings.Repeat("---|", 1+2*len(sweptLetters())) + "\n")
	row := func(name string, setting segmentSetting, of segmentSimilarities) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, letters := range sweptLetters() {
			fmt.Fprintf(&b, " %s |", all.partCells(setting.with(letters, of)))
		}
		b.WriteString("\n")
	}
	row("none, unsegmented", primaryUnsegmented, segmentSimilarities{})
	row("none", primarySegments, segmentSimilarities{})
	for _, of := range segmentSweep() {
		if slices.ContainsFunc(sweptLetters(), func(letters string) bool { return bestOnTrain(all, letters) == of }) {
			row(of.String(), primarySegments, of)
		}
	}
	return b.String()
}

// segmentContrastTable shows the intervals.
func segmentContrastTable(all reproFigures) string {
	var b strings.Builder
	b.WriteString("| difference in points of MAP | train part 2 | dev |\n|---|---|---|\n")
	for _, c := range segmentContrasts() {
		fmt.Fprintf(&b, "| %s |", c.name)
		for _, part := range []string{trainPart, devPart} {
			figures := all[c.name]
			fmt.Fprintf(&b, " %+.1f (%+.1f to %+.1f) |", 100*figures[part], 100*figures[part+lowEnd], 100*figures[part+highEnd])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// segmentLines are sentences of the document with figures.
func segmentLines(all reproFigures) []string {
	chosen := chosenSimilarities()
	asBuilt := chosen
	asBuilt.asBuilt = true
	byThreads, wholeByThreads := primarySegments, primaryUnsegmented
	byThreads.threads, wholeByThreads.threads = true, true
	pair := func(s segmentSetting) string {
		return fmt.Sprintf("%.2f and %.2f", 100*all[s.String()][trainPart], 100*all[s.String()][devPart])
	}
	return []string{
		"S as it was built has " + pair(primarySegments.with("bfx.nfx", asBuilt)),
		fmt.Sprintf("with statistics of whole threads the text has %s, segments %s", pair(wholeByThreads), pair(byThreads)),
		fmt.Sprintf("with all words %s, segments %s", pair(wholeByThreads.withAllWords()), pair(byThreads.withAllWords())),
	}
}

// segmentFigures draws figures 3.2 and 3.4, by file.
func segmentFigures(tb testing.TB, all reproFigures) map[string][]byte {
	tb.Helper()
	figures := map[string][]byte{figureFile("segments-coefficients"): drawCoefficients(tb, all)}
	for _, part := range []string{trainPart, devPart} {
		figures[figureFile("segments-slope-"+part)] = drawSlopes(tb, part, all)
	}
	return figures
}

// drawCoefficients draws figure 3.2: how much the regression heeds the scores
// of each comment.
func drawCoefficients(tb testing.TB, all reproFigures) []byte {
	tb.Helper()
	p := newFigure("Scores of comments in the regression (figure 3.2)")
	p.X.Label.Text, p.Y.Label.Text = "comment", "|β|"
	for k, row := range []struct{ name, label string }{{titleRow, "title of the question"}, {textRow, "text of the question"}} {
		var points plotter.XYs
		for _, name := range slices.Sorted(maps.Keys(all[row.name])) {
			points = append(points, plotter.XY{X: float64(len(points) + 1), Y: all[row.name][name]})
		}
		addCurve(p, points, row.label, draw.LineStyle{Color: curveColors[k], Width: vg.Points(1.8)})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(wholeNumbers), plot.DefaultTicks{}
	p.Y.Min, p.Y.Max, p.Legend.XOffs = 0, 1.2*p.Y.Max, vg.Points(180)
	return encodeFigure(tb, p)
}

// drawSlopes draws figure 3.4 of a part.
func drawSlopes(tb testing.TB, part string, all reproFigures) []byte {
	tb.Helper()
	p := newFigure("Pivoted norms by slope, " + partNames[part] + " (figure 3.4)")
	p.X.Label.Text = "slope s"
	for k, curve := range slopeCurves() {
		var points plotter.XYs
		for _, curve.slope = range slopes() {
			points = append(points, plotter.XY{X: curve.slope, Y: 100 * all[curve.String()][part]})
		}
		addCurve(p, points, curve.label, draw.LineStyle{Color: curveColors[k], Width: vg.Points(1.8)})
	}
	p.X.Tick.Marker = plot.TickerFunc(tenths)
	p.Y.Min, p.Y.Max = math.Floor(p.Y.Min-0.5), math.Ceil(p.Y.Max+0.55*(p.Y.Max-p.Y.Min)) // room for the legend
	return encodeFigure(tb, p)
}

var curveColors = []color.Color{
	color.RGBA{R: 0x2b, G: 0x6c, B: 0xb0, A: 0xff},
	color.RGBA{R: 0xc0, G: 0x56, B: 0x21, A: 0xff},
	color.RGBA{R: 0x2f, G: 0x85, B: 0x5a, A: 0xff},
	color.RGBA{R: 0x80, G: 0x5a, B: 0xd5, A: 0xff},
	color.RGBA{R: 0xb8, G: 0x32, B: 0x80, A: 0xff},
	color.RGBA{R: 0x5d, G: 0x66, B: 0x70, A: 0xff},
}

func addCurve(p *plot.Plot, points plotter.XYs, label string, style draw.LineStyle) {
	line := &plotter.Line{XYs: points, LineStyle: style}
	p.Add(line, &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: style.Color, Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}})
	p.Legend.Add(label, line)
}

func tenths(float64, float64) []plot.Tick {
	var ticks []plot.Tick
	for _, s := range slopes() {
		ticks = append(ticks, plot.Tick{Value: s, Label: fmt.Sprintf("%g", s)})
	}
	return ticks
}

func TestReproductionDocShowsTheAcceptedSegments(t *testing.T) {
	all := acceptedReproduction(t)
	data, err := os.ReadFile(reproductionDoc)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, table := range []string{segmentTable(all), segmentContrastTable(all), segmentSweepTable(all)} {
		if !strings.Contains(doc, table) {
			t.Errorf("%s lacks this table of %s:\n%s", reproductionDoc, reproductionFile, table)
		}
	}
	for _, line := range segmentLines(all) {
		if !strings.Contains(flat(doc), line) {
			t.Errorf("%s lacks this of %s:\n%s", reproductionDoc, reproductionFile, line)
		}
	}
	for file, figure := range segmentFigures(t, all) {
		drawn, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(drawn, figure) {
			t.Errorf("%s does not show %s (go test ./e2e -run 'TestReproduction$' -update draws it)", file, reproductionFile)
		}
		if image := "(papers/" + filepath.Base(file) + ")"; !strings.Contains(doc, image) {
			t.Errorf("%s does not show %s", reproductionDoc, image)
		}
	}
}

// TestSegmentsAgreeWhereTheDocumentSaysSo checks its sentences on figures that
// no table shows: those with all words.
func TestSegmentsAgreeWhereTheDocumentSaysSo(t *testing.T) {
	all := acceptedReproduction(t)
	above := func(part string, better, worse segmentSetting) {
		t.Helper()
		if b, w := all[better.String()][part], all[worse.String()][part]; b <= w || w == 0 {
			t.Errorf("%s: %v has %.4f, %v %.4f", part, better, b, worse, w)
		}
	}
	segments, whole := primarySegments.withAllWords(), primaryUnsegmented.withAllWords()
	godwin := primaryUnsegmented
	godwin.terms = "Godwin"
	for _, part := range []string{trainPart, devPart} {
		above(part, segments, whole)
		above(part, primarySegments, primaryUnsegmented)
		above(part, godwin.withAllWords(), segments)
	}
	above(trainPart, godwin, primarySegments)
	above(trainPart, primarySegments, segments)
	for _, of := range segmentSweep() {
		above(devPart, segments, segments.with(segments.letters, of))
	}
}

// TestSegmentSettingsAreChosenOnTheTrainPart holds the settings that dev is
// reported for to what train part 2 says.
func TestSegmentSettingsAreChosenOnTheTrainPart(t *testing.T) {
	all := acceptedReproduction(t)
	train := func(s segmentSetting) float64 { return all[s.String()][trainPart] }
	chosen := primarySegments.with(primarySegments.letters, chosenSimilarities())
	for _, of := range segmentSweep() {
		if other := primarySegments.with(primarySegments.letters, of); train(other) > train(chosen) {
			t.Errorf("train part 2 prefers %v", other)
		}
	}
	if words := primarySegments.withAllWords(); train(words) > train(primarySegments) {
		t.Errorf("train part 2 prefers all words: %.4f against %.4f", train(words), train(primarySegments))
	}
}
