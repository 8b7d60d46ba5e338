package e2e

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// reproductionDoc shows the accepted figures.
const reproductionDoc = "../simmatrix/softcosine/PAPERS.md"

// thesisMAP are figures of the thesis, tables 4.1 and 4.2, in %: of the test
// sets of 2016 and 2017, with the default settings.
func thesisMAP() map[string][2]float64 {
	return map[string][2]float64{
		engineFigures: {74.75, 41.85}, cosineFigures: {75.55, 43.25},
		figure(relMatrix, hardMeasure):  {77.10, 43.76},
		figure(relMatrix, softMeasure):  {76.57, 44.31},
		figure(relMatrix, innerMeasure): {75.79, 42.17},
		figure(levMatrix, softMeasure):  {75.72, 45.34},
		figure(avgMatrix, softMeasure):  {76.61, 46.04},
	}
}

// thesisCells shows two figures of the thesis, nothing where it has none.
func thesisCells(figures map[string][2]float64, name string) string {
	v, ok := figures[name]
	if !ok {
		return " | "
	}
	return fmt.Sprintf("%.2f | %.2f", v[0], v[1])
}

// headlineTable compares the default settings with the thesis.
func headlineTable(all reproFigures) string {
	var b strings.Builder
	b.WriteString("| S | measure | train part 2 | dev | thesis, 2016 test | thesis, 2017 test |\n|---|---|---|---|---|---|\n")
	for _, name := range []string{engineFigures, cosineFigures} {
		fmt.Fprintf(&b, "| | %s | %.2f | %.2f | %s |\n", name, 100*all[name][trainPart], 100*all[name][devPart], thesisCells(thesisMAP(), name))
	}
	for _, setting := range headlineSettings() {
		for _, measure := range []string{hardMeasure, softMeasure, innerMeasure} {
			figures := all[setting.String()]
			fmt.Fprintf(&b, "| %s | %s | %.2f | %.2f | %s |\n", setting.matrix, measure,
				100*figures[figure(trainPart, measure)], 100*figures[figure(devPart, measure)],
				thesisCells(thesisMAP(), figure(setting.matrix, measure)))
		}
	}
	return b.String()
}

// sweepsTable shows the soft cosine in all sweeps: from the least to the largest
// figure, and which setting train part 2 prefers.
func sweepsTable(all reproFigures) string {
	var b strings.Builder
	b.WriteString("| S | varied | density in % | train part 2 | best | dev | thesis, 2016 | 2017 |\n|" + strings.Repeat("---|", 8) + "\n")
	for _, s := range sweeps() {
		matrix, parameter, _ := strings.Cut(s.parameter, ", ")
		value := func(setting reproSetting) string { return strings.TrimPrefix(s.label(setting), parameter+"=") }
		soft := func(setting reproSetting, part string) float64 {
			return 100 * all[setting.String()][figure(part, softMeasure)]
		}
		var density, train, dev, first, second []float64
		for _, setting := range s.settings {
			density = append(density, 100*all[setting.String()][densityFigure])
			train, dev = append(train, soft(setting, trainPart)), append(dev, soft(setting, devPart))
			if thesis, ok := s.thesis[s.label(setting)]; ok {
				first, second = append(first, thesis[0]), append(second, thesis[1])
			}
		}
		best := slices.MaxFunc(s.settings, func(a, b reproSetting) int { return cmp.Compare(soft(a, trainPart), soft(b, trainPart)) })
		fmt.Fprintf(&b, "| %s | %s=%s…%s | %s | %s | %s | %s | %s | %s |\n", matrix, parameter, value(s.settings[0]), value(s.settings[len(s.settings)-1]),
			span("%.3g", density), span("%.2f", train), value(best), span("%.2f", dev), span("%.2f", first), span("%.2f", second))
	}
	return b.String()
}

// span shows the least and the largest of figures.
func span(format string, figures []float64) string {
	least, largest := fmt.Sprintf(format, slices.Min(figures)), fmt.Sprintf(format, slices.Max(figures))
	if least == largest {
		return least
	}
	return least + "–" + largest
}

// contrastTable shows the intervals.
func contrastTable(all reproFigures) string {
	var b strings.Builder
	b.WriteString("| difference in points of MAP | train part 2 | dev |\n|---|---|---|\n")
	for _, c := range reproContrasts() {
		fmt.Fprintf(&b, "| %v |", c)
		for _, part := range []string{trainPart, devPart} {
			figures := all[c.String()]
			fmt.Fprintf(&b, " %+.1f (%+.1f to %+.1f) |", 100*figures[part], 100*figures[part+lowEnd], 100*figures[part+highEnd])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// partsTable shows the results of comparing other texts of the threads.
func partsTable(all reproFigures) string {
	var b strings.Builder
	b.WriteString("| compared with | train part 2: cosine | soft | dev: cosine | soft |\n|" + strings.Repeat("---|", 5) + "\n")
	rel := defaultSetting(relMatrix).String()
	row := func(name, cosine, setting string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, part := range []string{trainPart, devPart} {
			fmt.Fprintf(&b, " %.2f | %.2f |", 100*all[cosine][part], 100*all[setting][figure(part, softMeasure)])
		}
		b.WriteString("\n")
	}
	row("titles and texts", cosineFigures, rel)
	for _, of := range []threadPart{titleOnly, wholeThread} {
		row(string(of), partOf(cosineFigures, of), partOf(rel, of))
	}
	return b.String()
}

// chosenLine says what was chosen on train part 2.
func chosenLine(all reproFigures) string {
	for name, figures := range all {
		if setting, ok := strings.CutPrefix(name, chosenFigures+": "); ok {
			return fmt.Sprintf("`%s`: train part 2 %.2f, dev %.2f (hard %.2f and %.2f)", setting,
				100*figures[figure(trainPart, softMeasure)], 100*figures[figure(devPart, softMeasure)],
				100*figures[figure(trainPart, hardMeasure)], 100*figures[figure(devPart, hardMeasure)])
		}
	}
	return "nothing"
}

// seedsLine says how far only the seed moves the soft cosine.
func seedsLine(all reproFigures) string {
	setting := defaultSetting(relMatrix)
	var ends []string
	for _, measure := range []string{hardMeasure, softMeasure} {
		for _, part := range []string{trainPart, devPart} {
			low, high := math.Inf(1), math.Inf(-1)
			for _, setting.seed = range append(reproSeeds(), 0) {
				v := 100 * all[setting.String()][figure(part, measure)]
				low, high = min(low, v), max(high, v)
			}
			ends = append(ends, fmt.Sprintf("%s %s %.2f to %.2f", partNames[part], measure, low, high))
		}
	}
	return strings.Join(ends, ", ")
}

// flat returns text with its line breaks as blanks.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestReproductionDocShowsTheAcceptedFigures(t *testing.T) {
	all := acceptedReproduction(t)
	data, err := os.ReadFile(reproductionDoc)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	tables := []string{headlineTable(all), contrastTable(all), partsTable(all), sweepsTable(all)}
	for _, s := range sweeps() {
		if image := "(papers/" + s.name + ".svg)"; s.name != "" && !strings.Contains(doc, image) {
			t.Errorf("%s does not show %s", reproductionDoc, image)
		}
	}
	for _, table := range tables {
		if !strings.Contains(doc, table) {
			t.Errorf("%s lacks this table of %s:\n%s", reproductionDoc, reproductionFile, table)
		}
	}
	for _, line := range []string{chosenLine(all), seedsLine(all)} {
		if !strings.Contains(flat(doc), line) {
			t.Errorf("%s lacks this of %s:\n%s", reproductionDoc, reproductionFile, line)
		}
	}
}

// TestReproductionAgreesWhereTheDocumentSaysSo checks the sentences of the
// document on what agrees with the thesis and what does not.
func TestReproductionAgreesWhereTheDocumentSaysSo(t *testing.T) {
	all := acceptedReproduction(t)
	soft := func(setting reproSetting, part string) float64 {
		return all[setting.String()][figure(part, softMeasure)]
	}
	rel, lev := defaultSetting(relMatrix), defaultSetting(levMatrix)
	for _, part := range []string{trainPart, devPart} {
		if !(soft(rel, part) > soft(lev, part) && soft(lev, part) > all[cosineFigures][part]) {
			t.Errorf("%s: S_rel, S_lev and cosine are not in this order", part)
		}
		figures := all[rel.String()]
		if s, h, i := figures[figure(part, softMeasure)], figures[figure(part, hardMeasure)], figures[figure(part, innerMeasure)]; !(s > h && h > i) {
			t.Errorf("%s: soft, hard and inner are not in this order", part)
		}
		cut, frequent := rel, rel
		cut.threshold, frequent.docFreq = 0.2, 500
		if soft(cut, part) != soft(rel, part) {
			t.Errorf("%s: θ3 = 0.2 changes something", part)
		}
		if math.Abs(soft(frequent, part)-all[cosineFigures][part]) > 0.005 {
			t.Errorf("%s: df = 500 is not as the cosine", part)
		}
		if !slices.IsSortedFunc(sweeps()[2].settings, func(a, b reproSetting) int {
			return cmp.Compare(soft(a, part), soft(b, part))
		}) {
			t.Errorf("%s: the soft cosine does not rise with C", part)
		}
	}
}
