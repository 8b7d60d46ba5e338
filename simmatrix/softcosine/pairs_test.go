package softcosine

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestPhi2MakesDotProductsOfInnerProducts(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: true, dominant: true})
		phi := check.Got(NewPhi2(sp))(t)
		x, y := randomDocument(rng, sp.Len()), randomDocument(rng, sp.Len())
		got, want := phi.Map(x).Dot(phi.Map(y)), byDefinition(sp, x, y)
		check.That(t, near(got, want, 1e-12), "dot product %v, inner product %v", got, want)
		a, b := phi.Map(x), phi.Map(y)
		got, want = quotient(a.Dot(b), a.Norm(), b.Norm()), softByDefinition(sp, x, y)
		check.That(t, near(got, want, 1e-12), "cosine %v, soft cosine %v", got, want)
	})
}

func TestPairsRefuseWhatHasNoRoot(t *testing.T) {
	for _, c := range []struct {
		name, want string
		s          map[[2]int32]float64
	}{
		{"negative", "s(0, 1) = -0.5 is negative", map[[2]int32]float64{{0, 1}: -0.5, {1, 0}: -0.5}},
		{"not symmetric", ErrNotSymmetric.Error(), map[[2]int32]float64{{0, 1}: 0.5}},
		{
			"too similar to two", "c(1, 1) = -0.25 is negative: the similarities of term 1",
			map[[2]int32]float64{{0, 1}: 0.75, {1, 0}: 0.75, {1, 2}: 0.75, {2, 1}: 0.75},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp := mustSpace(t, ones(3), mustSimilarities(t, 3, c.s))
			_, err := NewPhi2(sp)
			check.That(t, errors.Is(err, ErrPairs) && strings.Contains(err.Error(), c.want), "Φ₂: error %v, want one with %q", err, c.want)
		})
	}
}

func TestPhi2ForgivesRounding(t *testing.T) {
	// 20 times 0.05, added one by one, is 1 + 2⁻⁵²: c_ii would be negative.
	sims := map[[2]int32]float64{}
	for i := range int32(21) {
		for j := range int32(21) {
			if i != j {
				sims[[2]int32{i, j}] = 0.05
			}
		}
	}
	_, err := NewPhi2(mustSpace(t, ones(21), mustSimilarities(t, 21, sims)))
	check.That(t, err == nil, "similarities that add up to 1: %v", err)
}
