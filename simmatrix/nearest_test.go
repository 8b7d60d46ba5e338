package simmatrix

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
func bruteForce(t *vectorTable, opts nearestOptions) entries {
	out := entries{offsets: []int{0}}
	for i := range t.rows {
		var row []entry
		for j := range t.rows {
			dot := 0.0
			for k := range t.dim {
				dot += float64(t.row(i)[k]) * float64(t.row(j)[k])
			}
			if j == i || dot <= opts.threshold {
				continue
			}
			if u := math.Round(math.Pow(dot, opts.power) * 65535); u > 0 {
				row = append(row, entry{col: uint32(j), sim: uint16(u)})
			}
		}
		slices.SortFunc(row, compareEntries)
		out.appendRow(row[:min(len(row), opts.neighbors)])
	}
	return out
}

func TestNearestIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 11))
	for _, rows := range []int{1, 2, 3, 63, 64, 65, 128, 129, 300} {
		for _, opts := range []nearestOptions{
			{neighbors: 1, power: 1},
			{neighbors: 10, power: 1},
			{neighbors: 10, power: 0.5, threshold: 0.05},
			{neighbors: 1000, power: 2},
		} {
			t.Run(fmt.Sprintf("%d rows %+v", rows, opts), func(t *testing.T) {
				table := gridVectors(random, rows, 32)
				got, err := table.nearest(t.Context(), opts, newStage(nil, "", 0))
				if err != nil {
					t.Fatal(err)
				}
				want := bruteForce(table, opts)
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(entries{}), cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestNearestOfVectorsWithoutDirection(t *testing.T) {
	zero := &vectorTable{rows: 70, dim: 3, values: make([]float32, 70*3)}
	got, err := zero.nearest(t.Context(), nearestOptions{neighbors: 5, power: 3}, newStage(nil, "", 0))
	if err != nil || len(got.cols) != 0 || len(got.offsets) != 71 {
		t.Errorf("%d neighbors, %v", len(got.cols), err)
	}
}

func TestUnitsOfACosine(t *testing.T) {
	for _, tt := range []struct {
		cos       float32
		threshold float64
		want      uint16
	}{
		{1, 0, 65535},
		{1.0000001, 0, 65535}, // rounding of the dot product
		{0.5, 0, 8192},        // 0.125·65535 = 8191.875
		{0.5, 0.5, 0},
		{0.5, 0.49, 8192},
		{0, 0, 0},
		{-1, 0, 0},
		{0.01, 0, 0}, // 1e-6·65535 rounds to 0
		{float32(math.NaN()), 0, 0},
	} {
		if got := (nearestOptions{power: 3, threshold: tt.threshold}).units(tt.cos); got != tt.want {
			t.Errorf("cos %v over %v: %d units, want %d", tt.cos, tt.threshold, got, tt.want)
		}
	}
}

func TestNearestHeedsTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	last := 0
	st := newStage(func(_ string, done, _ int) {
		last = done
		if done > 0 {
			cancel()
		}
	}, "", 0)
	table := gridVectors(rand.New(rand.NewPCG(1, 1)), 64*100, 8)
	_, err := table.nearest(ctx, nearestOptions{neighbors: 3, power: 1}, st)
	if !errors.Is(err, context.Canceled) || last > 64*50 {
		t.Errorf("after %d rows: %v", last, err)
	}
}
