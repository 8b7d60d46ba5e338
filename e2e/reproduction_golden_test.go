package e2e

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// reproductionFile has the figures of the last run that was accepted.
const reproductionFile = "testdata/reproduction.txt"

// Figures of a matrix besides its means, and the ends of an interval.
const (
	densityFigure = "density"
	lowEnd        = " low"
	highEnd       = " high"
)

// reproFigures are figures by name, such as "dev soft", by what was measured.
type reproFigures map[string]map[string]float64

// figure names a measure on a part.
func figure(part, measure string) string { return part + " " + measure }

// partOrder is the order of figures in a line: density, then part by part.
func partOrder(name string) string {
	for k, part := range []string{densityFigure, trainPart, devPart} {
		if strings.HasPrefix(name, part) {
			return strconv.Itoa(k) + name
		}
	}
	return name
}

// formatReproduction writes a line for each thing measured: its name, a tab,
// and its figures. Densities have four significant digits.
func formatReproduction(all reproFigures) string {
	var b strings.Builder
	b.WriteString("# Measured by TestReproduction. Refresh: AKIN_E2E_COLLECTIONS=all go test ./e2e -run 'TestReproduction$' -update -timeout 40m\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s\t", name)
		figures := slices.SortedFunc(maps.Keys(all[name]), func(a, b string) int {
			return strings.Compare(partOrder(a), partOrder(b))
		})
		for k, f := range figures {
			if k > 0 {
				b.WriteString("  ")
			}
			if f == densityFigure {
				fmt.Fprintf(&b, "%s: %.4g", f, all[name][f])
			} else {
				fmt.Fprintf(&b, "%s: %.4f", f, all[name][f])
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// parseReproduction reads what formatReproduction wrote.
func parseReproduction(text string) (reproFigures, error) {
	all := reproFigures{}
	scanner := bufio.NewScanner(strings.NewReader(text))
	for n := 1; scanner.Scan(); n++ {
		line := scanner.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, ok := strings.Cut(line, "\t")
		if !ok || all[name] != nil {
			return nil, fmt.Errorf("line %d: no tab, or %q for the second time", n, name)
		}
		all[name] = map[string]float64{}
		for pair := range strings.SplitSeq(rest, "  ") {
			label, number, _ := strings.Cut(pair, ": ")
			value, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", n, label, err)
			}
			all[name][label] = value
		}
	}
	return all, scanner.Err()
}

// acceptedReproduction reads the accepted figures.
func acceptedReproduction(tb testing.TB) reproFigures {
	tb.Helper()
	text, err := os.ReadFile(reproductionFile)
	if err != nil {
		tb.Fatal(err)
	}
	all, err := parseReproduction(string(text))
	if err != nil {
		tb.Fatalf("%s: %v", reproductionFile, err)
	}
	return all
}

// movedReproduction describes every figure of got that is not in want or is
// further from it than rankTolerance, which is the part that one question has
// in a mean if its average precision moves by a third: processors round
// differently, and a tie that breaks moves that much. Densities may differ by
// one in a hundred. What only want has was not measured.
func movedReproduction(want, got reproFigures) []string {
	var moved []string
	for name, figures := range got {
		for f, v := range figures {
			was, ok := want[name][f]
			tolerance := rankTolerance
			if f == densityFigure {
				tolerance = 0.01 * was
			}
			switch {
			case !ok:
				moved = append(moved, fmt.Sprintf("%s: %s: not in %s", name, f, reproductionFile))
			case !(math.Abs(v-was) <= tolerance):
				moved = append(moved, fmt.Sprintf("%s: %s was %.4g, is %.4g", name, f, was, v))
			}
		}
	}
	slices.Sort(moved)
	return moved
}

func TestReproductionSurvivesWritingAndReading(t *testing.T) {
	all := reproFigures{
		"a b=1":     {densityFigure: 0.00125, figure(trainPart, softMeasure): 0.5, figure(devPart, softMeasure): 0.25},
		"a minus b": {trainPart: -0.5, trainPart + lowEnd: -1, trainPart + highEnd: 0.125},
	}
	got, err := parseReproduction(formatReproduction(all))
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(all, got); diff != "" {
		t.Errorf("figures (-written +read):\n%s", diff)
	}
	for _, text := range []string{"a: 1\n", "a\tb: x\n", "a\tb: 1\na\tb: 1\n"} {
		if got, err := parseReproduction(text); err == nil {
			t.Errorf("parseReproduction(%q) = %v, want an error", text, got)
		}
	}
}

func TestMovedReproductionIsReported(t *testing.T) {
	accepted := reproFigures{"a": {"dev": 0.5, densityFigure: 0.001}, "b": {"dev": 0.5}}
	for _, test := range []struct {
		name string
		got  reproFigures
		want []string
	}{
		{"within the tolerance", reproFigures{"a": {"dev": 0.5049, densityFigure: 0.001009}}, nil},
		{"below it", reproFigures{"a": {"dev": 0.49}}, []string{"a: dev was 0.5, is 0.49"}},
		{"no number", reproFigures{"a": {"dev": math.NaN()}}, []string{"a: dev was 0.5, is NaN"}},
		{"density", reproFigures{"a": {densityFigure: 0.00102}}, []string{"a: density was 0.001, is 0.00102"}},
		{"unknown", reproFigures{"c": {"dev": 0}}, []string{"c: dev: not in testdata/reproduction.txt"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := gocmp.Diff(test.want, movedReproduction(accepted, test.got)); diff != "" {
				t.Errorf("moved (-want +got):\n%s", diff)
			}
		})
	}
}
