package plots

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/shape"
)

// matrix returns the matrix of the rows, which name their neighbors' numbers.
func matrix(tb testing.TB, rows []map[int]float64) *simmatrix.Matrix {
	tb.Helper()
	termRows := make([]simmatrix.TermRow, len(rows))
	for i, row := range rows {
		termRows[i].Term = strconv.Itoa(i)
		for j, s := range row {
			n := simmatrix.Neighbor{Term: strconv.Itoa(j), Similarity: simmatrix.QuantizeSimilarity(s)}
			termRows[i].Neighbors = append(termRows[i].Neighbors, n)
		}
	}
	m, err := simmatrix.New(simmatrix.Meta{}, termRows)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// small has 4 terms and 5 entries, so a density of 100·(5+4)/16 %.
func small(tb testing.TB) *simmatrix.Matrix {
	tb.Helper()
	return matrix(tb, []map[int]float64{{1: 0.9, 2: 0.3, 3: 0.02}, {0: 0.9}, {3: 1}, {}})
}

// random returns a matrix of n terms with rows of any length and similarities
// of any size, some of them on the bounds of bins and thresholds.
func random(tb testing.TB, rng *rand.Rand, n int) *simmatrix.Matrix {
	tb.Helper()
	rows := make([]map[int]float64, n)
	for i := range rows {
		rows[i] = map[int]float64{}
		for range rng.IntN(n) {
			if j := rng.IntN(n); j != i {
				rows[i][j] = rng.Float64()
				if rng.IntN(2) == 0 {
					rows[i][j] = float64(rng.IntN(100)+1) / 100
				}
			}
		}
	}
	return matrix(tb, rows)
}

// equal compares densities, which are computed in different orders.
var equal = gocmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(a) })

func TestSummaryCountsTheMatrix(t *testing.T) {
	s := Summarize(small(t))
	if s.terms != 4 || s.entries != 5 || s.Density() != 56.25 { // 100·9/16
		t.Errorf("%d terms, %d entries, density %v", s.terms, s.entries, s.Density())
	}
}

func TestHistogramHasABarForEachFiftieth(t *testing.T) {
	got := Summarize(small(t)).Similarities()
	if len(got) != 50 {
		t.Fatalf("%d bins", len(got))
	}
	// Bounds belong to the bar that begins with them, 1 to the last one.
	want := map[int]uint64{1: 1, 15: 1, 45: 2, 49: 1}
	for k, b := range got {
		if b.Entries != want[k] {
			t.Errorf("bin %d: %d entries, want %d", k, b.Entries, want[k])
		}
		if low := float64(k) / 50; b.Low != low || b.High != float64(k+1)/50 {
			t.Errorf("bin %d is from %v to %v", k, b.Low, b.High)
		}
	}
}

func TestHistogramPutsABoundIntoTheBarThatBeginsWithIt(t *testing.T) {
	for k := 1; k < bins; k++ {
		s := Summarize(matrix(t, []map[int]float64{{1: float64(k) / bins}, {}}))
		got := slices.IndexFunc(s.Similarities(), func(b Bin) bool { return b.Entries == 1 })
		if got != k {
			t.Errorf("%v is in bin %d, want %d", float64(k)/bins, got, k)
		}
	}
}

func TestDensityByNeighborsOfASmallMatrix(t *testing.T) {
	got := Summarize(small(t)).DensityByNeighbors()
	want := []Point{{1, 100 * 7. / 16}, {2, 100 * 8. / 16}, {3, 100 * 9. / 16}} // rows of 3, 1, 1, 0
	if diff := gocmp.Diff(want, got, equal); diff != "" {
		t.Error(diff)
	}
}

func TestDensityByThresholdOfASmallMatrix(t *testing.T) {
	byTheta := map[float64]float64{}
	for _, p := range Summarize(small(t)).DensityByThreshold() {
		byTheta[p.At] = p.Density
	}
	if len(byTheta) != 361 { // 90 for each of four powers of ten, and 1
		t.Errorf("%d points", len(byTheta))
	}
	for theta, entries := range map[float64]float64{
		0.0001: 5, 0.019: 5, 0.02: 4, 0.29: 4, 0.3: 3, 0.89: 3, 0.9: 1, 0.99: 1, 1: 0, // an entry of θ goes
	} {
		if got, want := byTheta[theta], 100*(entries+4)/16; !gocmp.Equal(got, want, equal) {
			t.Errorf("θ = %v: density %v, want %v", theta, got, want)
		}
	}
}

func TestThresholdsAscend(t *testing.T) {
	points := Summarize(small(t)).DensityByThreshold()
	if first, last := points[0].At, points[len(points)-1].At; first != 0.0001 || last != 1 {
		t.Errorf("θ goes from %v to %v", first, last)
	}
	if !slices.IsSortedFunc(points, func(a, b Point) int { return cmp.Compare(a.At, b.At) }) {
		t.Error("θ is out of order")
	}
}

func TestDensitiesAreThoseThatSparsifyLeaves(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for range 10 {
		m := random(t, rng, 2+rng.IntN(40))
		n := float64(m.Len())
		check := func(p Point, opts shape.SparsifyOptions) {
			t.Helper()
			sparse, err := shape.Sparsify(m, opts)
			if err != nil {
				t.Fatal(err)
			}
			want := Point{At: p.At, Density: 100 * (float64(sparse.Meta().NonZeros) + n) / (n * n)}
			if diff := gocmp.Diff(want, p, equal); diff != "" {
				t.Errorf("%+v: %s", opts, diff)
			}
		}
		s := Summarize(m)
		for _, p := range s.DensityByNeighbors() {
			check(p, shape.SparsifyOptions{Neighbors: int(p.At)})
		}
		for _, p := range s.DensityByThreshold() {
			if p.At < 1 {
				check(p, shape.SparsifyOptions{Threshold: p.At})
			}
		}
	}
}

func TestSeriesAgreeWithEachOther(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 2))
	for range 20 {
		m := random(t, rng, 2+rng.IntN(100))
		s := Summarize(m)
		var sum uint64
		for _, b := range s.Similarities() {
			sum += b.Entries
		}
		if sum != m.Meta().NonZeros || sum != s.entries {
			t.Errorf("%d entries in bins, %d in the matrix", sum, m.Meta().NonZeros)
		}
		thresholds := s.DensityByThreshold()
		if last := thresholds[len(thresholds)-1]; last.Density != s.density(0) {
			t.Errorf("densities by θ end at %v, want %v", last.Density, s.density(0))
		}
		neighbors := s.DensityByNeighbors()
		if sum == 0 {
			if len(neighbors) != 0 {
				t.Errorf("%d points without neighbors", len(neighbors))
			}
			continue
		}
		last := neighbors[len(neighbors)-1]
		if last.At != float64(m.Meta().MaxNeighbors) || last.Density != s.Density() {
			t.Errorf("densities by C end at %v, want %v at %d", last, s.Density(), m.Meta().MaxNeighbors)
		}
		if !slices.IsSortedFunc(neighbors, byDensity) || !slices.IsSortedFunc(thresholds, func(a, b Point) int { return byDensity(b, a) }) {
			t.Error("densities are out of order")
		}
	}
}

func byDensity(a, b Point) int { return cmp.Compare(a.Density, b.Density) }

// TestLongRowsAreSampled bounds the image: a row may have 10,000 neighbors.
func TestLongRowsAreSampled(t *testing.T) {
	row := map[int]float64{}
	for j := 1; j <= simmatrix.MaxNeighbors; j++ {
		row[j] = 0.5
	}
	rows := make([]map[int]float64, simmatrix.MaxNeighbors+1)
	rows[0] = row
	points := Summarize(matrix(t, rows)).DensityByNeighbors()
	if len(points) > 400 {
		t.Errorf("%d points", len(points))
	}
	for k, p := range points {
		switch {
		case k < 50 && p.At != float64(k+1):
			t.Errorf("point %d is C = %v", k, p.At)
		case k > 0 && p.At > math.Ceil(points[k-1].At*1.02):
			t.Errorf("C goes from %v to %v", points[k-1].At, p.At)
		}
	}
	if last := points[len(points)-1].At; last != simmatrix.MaxNeighbors {
		t.Errorf("the last point is C = %v", last)
	}
}

func TestSummaryOfAMatrixWithoutTermsIsZero(t *testing.T) {
	s := Summarize(matrix(t, nil))
	if s.terms != 0 || s.entries != 0 || s.Density() != 0 || len(s.DensityByNeighbors()) != 0 {
		t.Errorf("%v", s)
	}
	for _, p := range s.DensityByThreshold() {
		if p.Density != 0 {
			t.Errorf("%v", p)
		}
	}
}

func BenchmarkSummarize(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 3))
	rows := make([]map[int]float64, 20_000)
	for i := range rows {
		rows[i] = map[int]float64{}
		for len(rows[i]) < 200 {
			if j := rng.IntN(len(rows)); j != i {
				rows[i][j] = rng.Float64()
			}
		}
	}
	m := matrix(b, rows)
	entries := float64(m.Meta().NonZeros)
	for b.Loop() {
		Summarize(m)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
}
