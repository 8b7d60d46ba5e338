package combine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// holds reports whether the header says what is counted here.
func holds(r *Inspection) bool {
	symmetric, dominant := r.Pairs.OneWay+r.Pairs.Unequal == 0, r.Rows.NotDominant == 0
	return r.Meta.Symmetric == symmetric && r.Meta.Dominant == dominant && float64(r.Meta.MaxNeighbors) == r.Rows.Lengths.Max
}

func TestInspectByHand(t *testing.T) {
	m := parse(t, handMade)
	r := Inspect(m)
	check.That(t, holds(r), "header %+v", r.Meta)
	// 9 entries and 5 on the diagonal, of 25.
	if r.Density != 14.0/25 || r.Rows.Empty != 1 || r.Rows.NoDocFreq != 1 {
		t.Errorf("density %v, %d empty rows, %d without df", r.Density, r.Rows.Empty, r.Rows.NoDocFreq)
	}
	// Row lengths 0 2 2 2 3; nearest ranks of 5 numbers: 10 % is the 1st, 25 %
	// the 2nd, 50 % the 3rd, 75 % the 4th, 90 % and 99 % the 5th.
	check.Equal(t, Distribution{Min: 0, P10: 0, P25: 2, Median: 2, P75: 2, P90: 3, P99: 3, Max: 3, Mean: 1.8}, r.Rows.Lengths)
	// Sums: a 1.6, b 1.4, c 1.3, d 0.4.
	if math.Abs(r.Rows.LargestSum-1.6) > 1e-4 || r.Rows.LargestSumTerm != "a" || r.Rows.NotDominant != 3 {
		t.Errorf("largest sum %v of %q, %d rows not dominant", r.Rows.LargestSum, r.Rows.LargestSumTerm, r.Rows.NotDominant)
	}
	check.Equal(t, 0, r.Rows.Saturated)
	check.Equal(t, 1, Inspect(parse(t, "a: b 0.99 c 0.99\nb: a 0.98\nc:")).Rows.Saturated)
	// a-b, a-c and c-d go both ways, of which a-c has the same in both; a→d,
	// b→c and d→e go one way.
	if r.Pairs.All != 6 || r.Pairs.OneWay != 3 || r.Pairs.Unequal != 2 {
		t.Errorf("%d pairs, %d one-way, %d unequal", r.Pairs.All, r.Pairs.OneWay, r.Pairs.Unequal)
	}
	if s := r.Entries.Similarities; math.Abs(s.Min-0.1) > 1e-4 || math.Abs(s.Median-0.6) > 1e-4 || math.Abs(s.Max-0.9) > 1e-4 || math.Abs(s.Mean-4.7/9) > 1e-4 {
		t.Errorf("similarities %+v", s)
	}
	// c is in the rows of a, b and d; a of b and c; b of a; d of a and c; e of d.
	check.Equal(t, []Hub{{"c", 5, 3}, {"a", 9, 2}, {"d", 0, 2}, {"b", 3, 1}, {"e", 4, 1}}, r.Hubs.Top)
	if len(r.Samples) != 4 || len(r.Samples[0].Neighbors) != 3 { // e has no neighbors
		t.Errorf("samples %+v", r.Samples)
	}
}

func TestInspectOfAlmostNothing(t *testing.T) {
	none := Inspect(matrixtest.New(t, simmatrix.Meta{}, nil))
	check.That(t, holds(none) && none.Density == 0 && len(none.Hubs.Top)+len(none.Samples) == 0, "no terms: %+v", none)
	single := Inspect(matrixtest.New(t, simmatrix.Meta{}, []simmatrix.TermRow{{Term: "a"}}))
	if !holds(single) || single.Density != 1 || single.Rows.Empty != 1 || single.Rows.LargestSumTerm != "" || len(single.Hubs.Top) != 0 {
		t.Errorf("one term: %+v", single)
	}
}

func TestInspectCountsOrigins(t *testing.T) {
	r := Inspect(parse(t, "a: b 0.75/1 c 0.50/110\nb: a 0.25/10\nc:"))
	want := []OriginCount{{Name: "x", Entries: 1}, {Name: "y", Entries: 2}, {Name: "z", Entries: 1}}
	check.Equal(t, want, r.Entries.Origins)
}

func TestSamplesAreDistinctAndAlwaysTheSame(t *testing.T) {
	m := matrixtest.New(t, simmatrix.Meta{}, matrixtest.Rows(rand.New(rand.NewPCG(1, 1)), 60))
	draw := func() (terms []string) {
		for _, row := range Inspect(m).Samples {
			terms = append(terms, row.Term)
			check.Equal(t, matrixtest.Of(m.Row(row.Term)), row.Neighbors)
		}
		return terms
	}
	first := draw()
	check.That(t, len(first) == 5 && slices.IsSorted(first) && len(slices.Compact(slices.Clone(first))) == 5, "drawn: %q", first)
	check.Equal(t, draw(), first, "others are drawn the second time")
}
