package plots

import (
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// units is how many steps a stored similarity has between 0 and 1.
	units = math.MaxUint16
	// bins is the number of bars of the histogram, each 0.02 wide.
	bins = 50
)

// A Summary has the counts behind the figures of a matrix. It takes half a
// megabyte.
type Summary struct {
	terms, entries uint64
	bySimilarity   [units + 1]uint64 // entries by units
	byPlace        []uint64          // entries that are the k-th of their row, from 0
}

// Summarize counts the entries of m in one pass.
func Summarize(m *simmatrix.Matrix) *Summary {
	meta := m.Meta()
	s := &Summary{terms: meta.Terms, entries: meta.NonZeros, byPlace: make([]uint64, meta.MaxNeighbors)}
	for k, similarity := range m.Similarities() {
		s.byPlace[k]++
		s.bySimilarity[toUnits(float64(similarity))]++
	}
	return s
}

func toUnits(similarity float64) int { return int(math.Round(similarity * units)) }

// Terms returns n, the number of terms.
func (s *Summary) Terms() uint64 { return s.terms }

// Entries returns the number of entries off the diagonal.
func (s *Summary) Entries() uint64 { return s.entries }

// Density returns the density of the matrix in percent, 0 where it has no
// terms.
func (s *Summary) Density() float64 { return s.density(s.entries) }

func (s *Summary) density(entries uint64) float64 {
	if s.terms == 0 {
		return 0
	}
	n := float64(s.terms)
	return 100 * (float64(entries) + n) / (n * n)
}

// A Bin counts the entries with Low <= similarity < High, both rounded to a
// multiple of 1/65535; where High is 1, those of similarity 1, too.
type Bin struct {
	Low, High float64
	Entries   uint64
}

// Similarities returns 50 bins of equal width between 0 and 1, ascending.
func (s *Summary) Similarities() []Bin {
	result := make([]Bin, bins)
	from := 0
	for k := range result {
		b := Bin{Low: float64(k) / bins, High: float64(k+1) / bins}
		to := toUnits(b.High)
		if k == bins-1 {
			to++
		}
		for _, n := range s.bySimilarity[from:to] {
			b.Entries += n
		}
		result[k], from = b, to
	}
	return result
}

// A Point is the density of the matrix at a setting.
type Point struct {
	// At is the setting: C or θ.
	At float64
	// Density is in percent.
	Density float64
}

// DensityByNeighbors returns how dense the matrix is when each term keeps its
// C most similar neighbors, for ascending C from 1 to the longest row: for each
// C up to 50, then about 2 % apart.
func (s *Summary) DensityByNeighbors() []Point {
	var points []Point
	kept, next := uint64(0), 1
	for k, entries := range s.byPlace {
		c := k + 1
		kept += entries
		if c == next || c == len(s.byPlace) {
			points = append(points, Point{At: float64(c), Density: s.density(kept)})
			next = max(c+1, c*51/50)
		}
	}
	return points
}

// DensityByThreshold returns how dense the matrix is when it keeps only the
// entries of a similarity above θ, for all θ of two digits, ascending: 0.00010,
// 0.00011, … 0.98, 0.99, 1, rounded to a multiple of 1/65535.
func (s *Summary) DensityByThreshold() []Point {
	points := []Point{{At: 1}}
	for power := 100.0; power <= 1e5; power *= 10 {
		for digits := 99; digits >= 10; digits-- {
			points = append(points, Point{At: float64(digits) / power})
		}
	}
	kept, above := uint64(0), units
	for k := range points {
		for ; above > toUnits(points[k].At); above-- {
			kept += s.bySimilarity[above]
		}
		points[k].Density = s.density(kept)
	}
	slices.Reverse(points)
	return points
}
