package learn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/matrixtest"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
	"github.com/akin-search/akin/simmatrix/source"
)

// hides reports whether a row has a term that is not to be in one.
func hides(t *testing.T, m *simmatrix.Matrix, candidate func(string) bool) {
	t.Helper()
	for term, row := range m.Rows() {
		for n := range row.All() {
			if !candidate(n.Term) {
				t.Errorf("%s has %s", term, n.Term)
			}
		}
	}
}

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
	v, err := source.ReadVectors(strings.NewReader(text.String()), source.ReadVectorsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	even := func(word string) bool { return word[3]%2 == 0 }
	all, err := FromVectors(t.Context(), v, VectorOptions{Neighbors: n - 1, Power: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, recall := range []float64{0, 0.99} {
		m, err := FromVectors(t.Context(), v, VectorOptions{Neighbors: c, Power: 1, Candidate: even, Recall: recall}, nil)
		if err != nil {
			t.Fatal(err)
		}
		hides(t, m, even)
		same := 0
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
		if same < n*8/10 {
			t.Errorf("recall %v: %d of %d rows are right", recall, same, n)
		}
	}
}

func TestTermsThatNobodyCanFindTakeNoPlaces(t *testing.T) {
	terms := []simmatrix.Term{{Text: "xabcdefgh"}, {Text: "abcdefgh"}, {Text: "abcdefghij"}}
	opts := source.DefaultSpellingOptions()
	opts.Neighbors = 1
	opts.Candidate = func(term string) bool { return term[0] != 'x' }
	m, err := source.FromSpelling(t.Context(), terms, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	hides(t, m, opts.Candidate)
	for term, want := range map[string]string{"abcdefgh": "abcdefghij", "xabcdefgh": "abcdefgh", "abcdefghij": "abcdefgh"} {
		if row := matrixtest.Of(m.Row(term)); len(row) != 1 || row[0].Term != want {
			t.Errorf("%s has %v, want %s", term, row, want)
		}
	}
}

func TestProtectedPairsHaveAPlaceInAnEnsemble(t *testing.T) {
	a := matrixtest.New(t, simmatrix.Meta{}, []simmatrix.TermRow{
		{Term: "x", Neighbors: []simmatrix.Neighbor{{Term: "a", Similarity: 0.9}, {Term: "b", Similarity: 0.8}, {Term: "c", Similarity: 0.7}}},
		{Term: "a"},
		{Term: "b"},
		{Term: "c"},
	})
	opts := combine.DefaultOptions()
	opts.Neighbors = 2
	opts.Protect = func(term, neighbor string) bool { return term == "x" && neighbor == "c" }
	m, err := combine.Combine(t.Context(), []combine.Input{{Name: "a", Matrix: a}, {Name: "b", Matrix: a}}, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	if row := matrixtest.Of(m.Row("x")); len(row) != 2 || row[0].Term != "a" || row[1].Term != "c" {
		t.Errorf("row %v", row)
	}
}
