package learn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// gridVectors returns vectors whose dot products are multiples of 1/256, exact
// in float32 whatever the order of summation, so that ties are true ties.
func gridVectors(random *rand.Rand, rows, dim int) *vectorTable {
	t := &vectorTable{rows: rows, dim: dim, values: make([]float32, rows*dim)}
	for i := range t.values {
		t.values[i] = float32(random.IntN(3)-1) / 16
	}
	return t
}

// bruteForce compares all pairs one by one and sorts.
func bruteForce(t *vectorTable, opts nearestOptions) simmatrix.Entries {
	out := simmatrix.Entries{Offsets: []int{0}}
	for i := range t.rows {
		var row []simmatrix.Entry
		for j := range t.rows {
			dot := 0.0
			for k := range t.dim {
				dot += float64(t.row(i)[k]) * float64(t.row(j)[k])
			}
			if j == i || dot <= 0 {
				continue
			}
			if u := math.Round(math.Pow(dot, opts.power) * 65535); u > 0 {
				row = append(row, simmatrix.Entry{Col: uint32(j), Units: uint16(u)})
			}
		}
		slices.SortFunc(row, simmatrix.CompareEntries)
		out.AppendRow(row[:min(len(row), opts.neighbors)])
	}
	return out
}

func TestNearestIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	// Around the rows of a tile, of a panel and of a block.
	for _, rows := range []int{1, 2, 3, 6, 7, 15, 16, 17, 63, blockRows - 1, blockRows, blockRows + 1, 2*blockRows + 5} {
		for _, opts := range []nearestOptions{
			{neighbors: 1, power: 1},
			{neighbors: 10, power: 1},
			{neighbors: 10, power: 0.5},
			{neighbors: 1000, power: 2},
		} {
			t.Run(fmt.Sprintf("%d rows %+v", rows, opts), func(t *testing.T) {
				table := gridVectors(random, rows, 32)
				got := exactly(t, table.asPanels(), opts)
				check.Equal(t, bruteForce(table, opts), got, cmpopts.EquateEmpty(), gocmp.AllowUnexported(simmatrix.Entries{}))
			})
		}
	}
}

// unitVectors returns vectors of length 1 in random directions.
func unitVectors(random *rand.Rand, rows, dim int) *vectorTable {
	t := &vectorTable{rows: rows, dim: dim, values: make([]float32, rows*dim)}
	wide := make([]float64, dim)
	for i := range rows {
		for k := range wide {
			wide[k] = random.NormFloat64()
		}
		scaleTo(t.row(i), wide, 1)
	}
	return t
}

func TestNearestOfVectorsWithoutDirection(t *testing.T) {
	for _, dim := range []int{0, 3} { // a corpus without co-occurrence has no dimensions
		zero := &vectorTable{rows: 70, dim: dim, values: make([]float32, 70*dim)}
		got := exactly(t, zero.asPanels(), nearestOptions{neighbors: 5, power: 3})
		check.That(t, len(got.Cols) == 0 && len(got.Offsets) == 71, "%d dimensions: %d neighbors", dim, len(got.Cols))
	}
}

func TestUnitsOfACosine(t *testing.T) {
	for _, tt := range []struct {
		cos  float32
		want uint16
	}{
		{1, 65534},         // 1 itself is for what people say
		{1.0000001, 65534}, // rounding of the dot product
		{0.5, 8192},        // 0.125·65535 = 8191.875
		{0, 0},
		{-1, 0},
		{0.01, 0}, // 1e-6·65535 rounds to 0
		{float32(math.NaN()), 0},
	} {
		check.Equal(t, tt.want, (nearestOptions{power: 3}).units(tt.cos), tt.cos)
	}
}
