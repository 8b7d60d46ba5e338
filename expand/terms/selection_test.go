package terms

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/simmatrix"
)

// TestSelectionAgreesWithSortingAll holds the quick selection against a plain
// sort, with many ties.
func TestSelectionAgreesWithSortingAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var sel, all Selection
		for k := range rng.IntN(60) {
			c := Candidate{Term: fmt.Sprint(rng.IntN(1000), k), V: float64(rng.IntN(6))}
			sel.Candidates = append(sel.Candidates, c)
			all.Candidates = append(all.Candidates, c)
		}
		n := rng.IntN(40)
		all.KeepBest(math.MaxInt)
		sel.KeepBest(n)
		want := all.Candidates[:min(n, len(all.Candidates))]
		if fmt.Sprint(want) != fmt.Sprint(sel.Candidates) {
			t.Fatalf("best %d: got %v, want %v", n, sel.Candidates, want)
		}
	}
}

func TestShareIsTheSameForAllThatCanUseIt(t *testing.T) {
	for _, tt := range []struct {
		sizes              []int
		total, quota, left int
	}{
		{[]int{5, 5, 5}, 30, 30 - 5 - 5, 0},
		{[]int{1, 50, 50}, 30, 14, 1},
		{[]int{50, 2, 50, 3}, 30, 12, 1},
		{[]int{50, 50, 50}, 2, 0, 2},
		{nil, 7, 7, 0},
	} {
		if quota, left := Share(tt.sizes, tt.total); quota != tt.quota || left != tt.left {
			t.Errorf("%v of %d: %d and %d, want %d and %d", tt.sizes, tt.total, quota, left, tt.quota, tt.left)
		}
	}
}

// Of "high blood pressure" the neighbor "hypertension" is close to two words and
// "low" very close to one, so that v_j alone would prefer "low".
func TestANeighborOfTheWholeTextIsPreferred(t *testing.T) {
	neighbor := func(term string, cosine float64) simmatrix.Neighbor {
		return simmatrix.Neighbor{Term: term, Similarity: simmatrix.QuantizeSimilarity(cosine * cosine * cosine), DocFreq: 10}
	}
	var sel Selection
	sel.Start(Read([]string{"high", "blood", "pressure"}, []int{0, 1, 2}))
	for i, neighbors := range [][]simmatrix.Neighbor{
		{neighbor("low", 0.9)},
		{neighbor("hypertension", 0.7), neighbor("vein", 0.5)},
		{neighbor("hypertension", 0.7)},
	} {
		row, err := simmatrix.PackRow(10, neighbors)
		if err != nil {
			t.Fatal(err)
		}
		sel.Origins[i].Row = row
	}
	const power = 3
	sel.Propose(SqrtIDF, 100, power, 1, 3)
	sel.Settle(SqrtIDF, 100, slices.Repeat([]int64{10}, 6), 1)
	settled := slices.Clone(sel.Candidates)
	sel.Choose(2)
	var terms []string
	var mass float64
	for _, c := range sel.Candidates {
		terms = append(terms, c.Term)
		mass += c.V
	}
	if diff := cmp.Diff([]string{"hypertension", "low"}, terms); diff != "" {
		t.Fatalf("added (-want +got):\n%s", diff)
	}
	// All words have the same idf, so that ctx_j is Σ_i c_ij / √3.
	for k, want := range []float64{2 * 0.7 / math.Sqrt(3), 0.9 / math.Sqrt(3)} {
		if got := sel.Candidates[k].Fit; math.Abs(got-want) > 1e-4 {
			t.Errorf("fit of %s: %v, want %v", terms[k], got, want)
		}
	}
	if want := sel.Origins[0].IDF * (0.9*0.9*0.9 + 2*0.7*0.7*0.7); math.Abs(mass-want) > 1e-4 {
		t.Errorf("all together %v, want that of the two largest v_j, %v", mass, want)
	}
	sel.Candidates = settled // one term is left to this clause, the others to another one
	sel.Choose(1)
	if got, want := sel.Candidates[0].V, sel.Origins[0].IDF*0.9*0.9*0.9; math.Abs(got-want) > 1e-4 {
		t.Errorf("weight of the only one %v, want that of the largest v_j, %v", got, want)
	}
}

func TestGatherKeepsTheClosestOfTooManyNeighbors(t *testing.T) {
	row := func(neighbors ...simmatrix.Neighbor) simmatrix.Row {
		r, err := simmatrix.PackRow(1, neighbors)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var sel Selection
	sel.Start(Read([]string{"a", "b", "a"}, []int{0, 1, 2}))
	sel.Origins[0].Row = row(simmatrix.Neighbor{Term: "b", Similarity: 0.9}, simmatrix.Neighbor{Term: "c", Similarity: 0.5}, simmatrix.Neighbor{Term: "d", Similarity: 0.25})
	sel.Origins[1].Row = row(simmatrix.Neighbor{Term: "e", Similarity: 0.75}, simmatrix.Neighbor{Term: "d", Similarity: 0.375})
	if sel.Gather(0); len(sel.Candidates) != 3 {
		t.Errorf("gathered %v, want c, d and e", sel.Candidates)
	}
	sel.KeepBest(2)
	norm := sel.SettleFrozen(1, func(int) int64 { return 0 }, 1, []int64{1, 1, 1, 1})
	w := math.Log(4.0 / 3)
	if want := math.Sqrt(5) * w; math.Abs(norm-want) > 1e-12 {
		t.Errorf("norm %v, want %v", norm, want)
	}
	got := map[string]float64{}
	for _, o := range sel.Origins {
		got[o.Term] = math.Round(o.V / (w * w) * 1e4)
	}
	for _, c := range sel.Candidates {
		got[c.Term] = math.Round(c.V / (w * w) * 1e4)
	}
	if diff := cmp.Diff(map[string]float64{"a": 20000, "b": 28000, "c": 10000, "d": 8750}, got); diff != "" {
		t.Errorf("v (-want +got):\n%s", diff)
	}
}
