package learn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
)

// TestWordsThatNobodyCanFindTakeNoPlaces compares the search among candidates
// with one over all words whose rows are long enough to pick from.
func TestWordsThatNobodyCanFindTakeNoPlaces(t *testing.T) {
	const n, dim, c = 700, 8, 5
	random := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "w%03d", i)
		for range dim {
			fmt.Fprintf(&text, " %.4f", random.NormFloat64())
		}
		text.WriteString("\n")
	}
	v := mustRead(t, text.String())
	even := func(word string) bool { return word[3]%2 == 0 }
	all := check.Got(FromVectors(t.Context(), v, VectorOptions{Neighbors: n - 1, Power: 1}, nil))(t)
	for _, recall := range []float64{0, 0.99} {
		m := check.Got(FromVectors(t.Context(), v, VectorOptions{Neighbors: c, Power: 1, Candidate: even, Recall: recall}, nil))(t)
		same := 0
		for _, row := range m.Rows() {
			for neighbor := range row.All() {
				check.Must(t, even(neighbor.Term), "recall %v: %s is a neighbor", recall, neighbor.Term)
			}
		}
		for term := range all.Terms() {
			var want []simmatrix.Neighbor
			for neighbor := range all.Row(term).All() {
				if even(neighbor.Term) && len(want) < c {
					want = append(want, neighbor)
				}
			}
			if got := matrixtest.Of(m.Row(term)); slices.Equal(got, want) {
				same++
			} else if recall == 0 {
				t.Fatalf("%s: %v, want %v", term, got, want)
			}
		}
		check.That(t, same >= n*8/10, "recall %v: %d of %d rows are right", recall, same, n)
	}
}
