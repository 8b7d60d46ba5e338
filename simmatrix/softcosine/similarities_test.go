package softcosine

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

func TestSimilaritiesHoldWhatTheyAreGiven(t *testing.T) {
	s := mustSimilarities(t, 4, map[[2]int32]float64{{2, 0}: 0.5, {0, 3}: 0.25, {0, 1}: -2, {3, 3}: 1, {1, 2}: 0})
	check.That(t, s.Len() == 4 && s.NonZeros() == 3, "%d terms, %d entries", s.Len(), s.NonZeros())
	cols, sims := s.Row(0)
	check.That(t, slices.Equal(cols, []int32{1, 3}) && slices.Equal(sims, []float64{-2, 0.25}), "row 0 is %v %v", cols, sims)
	for _, e := range []struct {
		i, j int
		want float64
	}{{0, 1, -2}, {1, 0, 0}, {2, 0, 0.5}, {2, 2, 1}, {3, 3, 1}} {
		check.Equal(t, e.want, s.At(e.i, e.j), e.i, e.j)
	}
	check.That(t, !s.NonNegative() && Identity(3).NonNegative(), "NonNegative")
}

func TestSimilaritiesNameWhatTheyRefuse(t *testing.T) {
	type entry struct {
		i, j int32
		sim  float64
	}
	for _, c := range []struct {
		name, want string
		n          int
		entries    []entry
	}{
		{"size", "-1 terms", -1, nil},
		{"too many", "2147483648 terms", math.MaxInt32 + 1, nil},
		{"row", "s(2, 0)", 2, []entry{{2, 0, 1}}},
		{"column", "s(0, -1)", 2, []entry{{0, -1, 1}}},
		{"NaN", "s(0, 1) = NaN", 2, []entry{{0, 1, math.NaN()}}},
		{"infinite", "s(0, 1) = +Inf", 2, []entry{{0, 1, math.Inf(1)}}},
		{"diagonal", "s(1, 1) = 0.5", 2, []entry{{1, 1, 0.5}}},
		{"twice", "s(0, 1) occurs twice", 2, []entry{{0, 1, 0.5}, {1, 0, 0.5}, {0, 1, 0.5}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewSimilarities(c.n, func(yield func([2]int32, float64) bool) {
				for _, e := range c.entries {
					if !yield([2]int32{e.i, e.j}, e.sim) {
						return
					}
				}
			})
			check.That(t, errors.Is(err, ErrSimilarities) && strings.Contains(err.Error(), c.want), "error %v, want one with %q", err, c.want)
		})
	}
}

func TestTransposedAndSymmetrizedAreWhatTheySay(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		n := 1 + rng.IntN(12)
		s := randomSimilarities(t, rng, n, form{negative: rng.IntN(2) == 0, symmetric: rng.IntN(3) == 0})
		transposed, symmetrized := s.Transposed(), s.Symmetrized()
		symmetric := true
		for i := range n {
			for j := range n {
				symmetric = symmetric && s.At(i, j) == s.At(j, i)
				check.Equal(t, s.At(j, i), transposed.At(i, j), i, j)
				check.Equal(t, s.At(i, j)/2+s.At(j, i)/2, symmetrized.At(i, j), "symmetrized", i, j)
			}
		}
		check.That(t, s.Symmetric() == symmetric && symmetrized.Symmetric(), "symmetric: %v, want %v", s.Symmetric(), symmetric)
	})
}

func TestSymmetrizedDropsWhatCancels(t *testing.T) {
	s := mustSimilarities(t, 3, map[[2]int32]float64{{0, 1}: 0.5, {1, 0}: -0.5, {2, 0}: 1})
	got := s.Symmetrized()
	check.That(t, got.NonZeros() == 2 && got.At(0, 1) == 0 && got.At(0, 2) == 0.5, "%d entries, s(0, 2) = %v", got.NonZeros(), got.At(0, 2))
}

func TestAnEmptyMatrixHasNothing(t *testing.T) {
	s := Identity(0)
	check.That(t, s.Len() == 0 && s.Symmetric() && s.Symmetrized().Len() == 0 && s.Transposed().Len() == 0, "the matrix of no terms")
	sp := mustSpace(t, nil, s)
	check.That(t, sp.InnerProduct(Vector{}, Vector{}) == 0 && sp.Expand(Vector{}).Len() == 0, "the space of no terms")
}

func TestVectorKeepsTermsInOrderWithoutZeros(t *testing.T) {
	v := NewVector(map[int32]float64{7: 2, 3: -1, 5: 0, 0: 4})
	check.That(t, slices.Equal(v.Terms, []int32{0, 3, 7}) && slices.Equal(v.Values, []float64{4, -1, 2}), "got %v", v)
	check.That(t, v.Len() == 3 && v.At(7) == 2 && v.At(5) == 0 && v.At(100) == 0 && (Vector{}).At(0) == 0, "Len and At of %v", v)
}

func TestVectorRefusesWhatIsNoCoordinate(t *testing.T) {
	for name, values := range map[string]map[int32]float64{
		"negative term": {-1: 1}, "NaN": {0: math.NaN()}, "infinity": {0: math.Inf(-1)},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				check.That(t, recover() != nil, "no panic")
			}()
			NewVector(values)
		})
	}
}

func testMatrix(t *testing.T) *simmatrix.Matrix {
	t.Helper()
	m := check.Got(simmatrix.New(simmatrix.Meta{Source: "by hand", Docs: 10}, []simmatrix.TermRow{
		{Term: "killed", DocFreq: 4, Neighbors: []simmatrix.Neighbor{{Term: "dead", Similarity: 0.5}, {Term: "found", Similarity: 0.75}}},
		{Term: "dead", DocFreq: 3, Neighbors: []simmatrix.Neighbor{{Term: "killed", Similarity: 1}}},
		{Term: "found", DocFreq: 2},
	}))(t)
	return m
}

func TestFromMatrixNumbersTermsAndThenTheExtraOnes(t *testing.T) {
	v, s := FromMatrix(testMatrix(t), "when", "dead", "antony", "when")
	for i, want := range []string{"dead", "found", "killed", "when", "antony"} {
		number, ok := v.Number(want)
		check.That(t, ok && int(number) == i && v.Term(number) == want, "%q is %d, %v", want, number, ok)
	}
	_, ok := v.Number("caesar")
	check.That(t, !ok && v.Len() == 5 && s.Len() == 5 && s.NonZeros() == 3, "%d terms, %d rows, %d entries", v.Len(), s.Len(), s.NonZeros())
	for _, e := range []struct {
		i, j int
		want float32
	}{{0, 2, 1}, {2, 0, simmatrix.QuantizeSimilarity(0.5)}, {2, 1, simmatrix.QuantizeSimilarity(0.75)}, {1, 2, 0}, {3, 0, 0}} {
		check.Equal(t, float64(e.want), s.At(e.i, e.j), e.i, e.j, e.want)
	}
}
