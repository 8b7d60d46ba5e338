package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/simmatrix/softcosine"
	"github.com/akin-search/akin/simmatrix/spelling"
	"github.com/akin-search/akin/tools/chart"
)

// sweepFile has the points of the figures.
const sweepFile = "testdata/reproduction_sweep.json"

// A sweep varies one parameter of a matrix, as a figure of the thesis does, from
// the least entries to the most.
type sweep struct {
	file, matrix, label string
	values              []float64
	usual               float64 // of the values, the default
}

// sweeps are those of figures 4.1 to 4.5. θ₃ is held against the similarity in
// S_lev, against the cosine in S_rel.
var sweeps = []sweep{
	{"lev-neighbors", levMatrix, "C = %g", []float64{1, 10, 100, 1000}, reproNeighbors},
	{"lev-threshold", levMatrix, "θ₃ = %g", []float64{0.8, 0.6, 0.4, 0.2, 0}, 0},
	{"rel-neighbors", relMatrix, "C = %g", []float64{1, 10, 100, 1000}, reproNeighbors},
	{"rel-threshold", relMatrix, "θ₃ = %g", []float64{0.8, 0.6, 0.4, 0.2, 0}, 0},
	{"rel-frequency", relMatrix, "df = %g", []float64{500, 50, 5, 3, 1}, 3},
}

// A sweptPoint has the density of an S, the share of entries that are not 0, and
// the MAP of measures with it by part and measure.
type sweptPoint struct {
	Value   float64
	Density float64
	MAP     map[string]float64
}

// sweptPoints are the points of each figure, by file, and the MAP of the cosine
// by part.
type sweptPoints struct {
	Cosine  map[string]float64
	Figures map[string][]sweptPoint
}

func mapOf(part, measure string) string { return part + " " + measure }

// TestReproductionSweep measures the points of the figures. It takes minutes, and
// is not part of CI.
func TestReproductionSweep(t *testing.T) {
	if !*update {
		t.Skip("-update measures the points of the figures of PAPERS.md")
	}
	f := loadForum(t)
	m := newForumMatrices(f)
	spelled := m.spelled(t, spelling.Thesis, 1000)
	learned := m.learned(t, func(o *learn.CorpusOptions) { o.Neighbors = 1000 })
	points := sweptPoints{Cosine: map[string]float64{}, Figures: map[string][]sweptPoint{}}
	for _, s := range sweeps {
		for _, value := range s.values {
			matrix, cut := spelled, combine.SparsifyOptions{Neighbors: reproNeighbors}
			if s.matrix == relMatrix {
				matrix = learned
			}
			switch kind, _, _ := strings.Cut(s.label, " "); kind {
			case "C":
				cut.Neighbors = int(value)
			case "df":
				matrix = m.learned(t, func(o *learn.CorpusOptions) { o.MinDocFreq = int(value) })
			case "θ₃":
				cut.Threshold = value
				if s.matrix == relMatrix {
					cut.Threshold = math.Pow(value, learn.DefaultCorpusOptions().Power)
				}
			}
			matrix, err := combine.Sparsify(matrix, cut)
			if err != nil {
				t.Fatal(err)
			}
			points.Figures[s.file] = append(points.Figures[s.file], m.point(t, value, matrix, points.Cosine))
			t.Log(s.file, value, points.Figures[s.file][len(points.Figures[s.file])-1])
		}
	}
	text, err := json.MarshalIndent(points, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sweepFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// point measures an S, and the cosine.
func (m *forumMatrices) point(t *testing.T, value float64, matrix *simmatrix.Matrix, cosine map[string]float64) sweptPoint {
	t.Helper()
	w := m.words(t, matrix)
	n := float64(w.Len())
	p := sweptPoint{Value: value, Density: (n + float64(matrix.Meta().NonZeros)) / n / n, MAP: map[string]float64{}}
	for part, questions := range m.forum.parts {
		average := func(of func(x, y softcosine.Vector) (float64, error)) float64 {
			return rounded(mean(ranked(questions, w.measure(t, of))))
		}
		p.MAP[mapOf(part, hardMeasure)] = average(func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.Hard(x, y), nil })
		p.MAP[mapOf(part, softMeasure)] = average(w.symmetric.Soft)
		cosine[part] = average(func(x, y softcosine.Vector) (float64, error) { return w.asBuilt.Cosine(x, y), nil })
	}
	return p
}

func (s sweep) path() string {
	return filepath.Join("..", "simmatrix", "softcosine", "papers", s.file+".svg")
}

// draw draws MAP over the density, with the values at the points. Points of one
// density get one label.
func (s sweep) draw(t *testing.T, points sweptPoints) []byte {
	t.Helper()
	c := chart.Chart{X: "density of " + s.matrix + " in % (logarithmic)", Y: "MAP in %", Log: true}
	for k, part := range []string{trainPart, devPart} {
		name := map[string]string{trainPart: "train part 2", devPart: "dev"}[part]
		for _, measure := range []string{softMeasure, hardMeasure} {
			curve := chart.Curve{Name: name + ", " + measure, Color: k, Dashed: measure == hardMeasure}
			for _, p := range points.Figures[s.file] {
				at := chart.Point{X: 100 * p.Density, Y: 100 * p.MAP[mapOf(part, measure)]}
				if measure == softMeasure && part == trainPart {
					at.Label = fmt.Sprintf(s.label, p.Value)
				}
				if last := len(curve.Points) - 1; last >= 0 && curve.Points[last].X == at.X && at.Label != "" {
					curve.Points[last].Label += fmt.Sprintf(", %g", p.Value)
					continue
				}
				curve.Points = append(curve.Points, at)
			}
			c.Curves = append(c.Curves, curve)
		}
		c.Levels = append(c.Levels, chart.Level{Name: name + ", cosine", Color: k, Y: 100 * points.Cosine[part]})
	}
	drawn, err := c.SVG()
	if err != nil {
		t.Fatal(err)
	}
	return drawn
}

func TestReproductionFiguresShowTheirPoints(t *testing.T) {
	points, doc := acceptedSweep(t), readFile(t, reproductionDoc)
	for _, s := range sweeps {
		values := make([]float64, 0, len(s.values))
		for _, p := range points.Figures[s.file] {
			values = append(values, p.Value)
		}
		if !slices.Equal(values, s.values) {
			t.Errorf("%s has %s at %v, want %v", sweepFile, s.file, values, s.values)
		}
		drawn := s.draw(t, points)
		if *update {
			if err := os.WriteFile(s.path(), drawn, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if readFile(t, s.path()) != string(drawn) {
			t.Errorf("%s does not show %s (-update draws it)", s.path(), sweepFile)
		}
		if !strings.Contains(doc, "](papers/"+s.file+".svg)") {
			t.Errorf("%s does not show %s", reproductionDoc, s.path())
		}
	}
	if files, err := filepath.Glob(sweep{file: "*"}.path()); err != nil || len(files) != len(sweeps) {
		t.Errorf("%d figures in the folder, want %d: %v %v", len(files), len(sweeps), files, err)
	}
	all := acceptedReproduction(t)
	for _, part := range []string{trainPart, devPart} {
		if points.Cosine[part] != all[part][plainCosine] {
			t.Errorf("%s: the cosine has %v, %s has %v", part, points.Cosine[part], reproductionFile, all[part][plainCosine])
		}
		for _, s := range sweeps {
			at := slices.IndexFunc(points.Figures[s.file], func(p sweptPoint) bool { return p.Value == s.usual })
			for _, measure := range []string{hardMeasure, softMeasure} {
				if got, want := points.Figures[s.file][at].MAP[mapOf(part, measure)], all[part][s.matrix+" "+measure]; math.Abs(got-want) > rankTolerance {
					t.Errorf("%s, %s: %s has %.4f with the defaults, %s has %.4f", part, measure, s.file, got, reproductionFile, want)
				}
			}
		}
	}
}

// TestReproductionFiguresSayWhatThePageSays checks the sentences below the
// figures, of the soft cosine.
func TestReproductionFiguresSayWhatThePageSays(t *testing.T) {
	points := acceptedSweep(t)
	soft := func(file, part string, value float64) float64 {
		for _, p := range points.Figures[file] {
			if p.Value == value {
				return p.MAP[mapOf(part, softMeasure)]
			}
		}
		t.Fatalf("%s has no %v", file, value)
		return 0
	}
	for _, part := range []string{trainPart, devPart} {
		check.That(t, soft("lev-threshold", part, 0) <= soft("lev-threshold", part, 0.4), "%s: entries of S_lev up to 0.4 add something", part)
		check.That(t, soft("rel-threshold", part, 0) == soft("rel-threshold", part, 0.2), "%s: θ₃ = 0.2 changes S_rel", part)
		check.That(t, soft("lev-neighbors", part, 1000) < soft("lev-neighbors", part, 10), "%s: S_lev gains from C = 1000", part)
		check.That(t, soft("rel-neighbors", part, 1000) > soft("rel-neighbors", part, 100), "%s: S_rel is saturated at C = 100", part)
		check.That(t, soft("rel-neighbors", part, 1000) > max(soft("rel-threshold", part, 0.4), soft("rel-threshold", part, 0)), "%s: θ₃ gains as much as C", part)
		check.That(t, soft("rel-threshold", part, 0.6) < soft("rel-threshold", part, 0)-0.01, "%s: θ₃ = 0.6 does not harm S_rel", part)
	}
	page := strings.Join(strings.Fields(readFile(t, reproductionDoc)), " ")
	percent := func(file, part string, value float64) float64 { return 100 * soft(file, part, value) }
	worse := func(part string) float64 {
		return percent("rel-threshold", part, 0) - percent("rel-threshold", part, 0.6)
	}
	for _, said := range []string{
		fmt.Sprintf("(soft, C = 100 has %.2f and %.2f, C = 1000 %.2f and %.2f)", percent("rel-neighbors", trainPart, 100), percent("rel-neighbors", devPart, 100),
			percent("rel-neighbors", trainPart, 1000), percent("rel-neighbors", devPart, 1000)),
		fmt.Sprintf("θ₃ = 0.6 makes S_rel worse by %.1f and %.1f points", worse(trainPart), worse(devPart)),
	} {
		check.That(t, strings.Contains(page, said), "the page does not say %q", said)
	}
	for k, c := range []float64{10, 100, 1000} {
		check.That(t, soft("rel-neighbors", devPart, c) > soft("rel-neighbors", devPart, []float64{1, 10, 100}[k]), "dev does not gain from C = %v", c)
	}
}

func acceptedSweep(t *testing.T) (points sweptPoints) {
	t.Helper()
	if err := json.Unmarshal([]byte(readFile(t, sweepFile)), &points); err != nil {
		t.Fatal(err)
	}
	return points
}
