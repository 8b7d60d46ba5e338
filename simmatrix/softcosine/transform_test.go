package softcosine

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestTheorem41DotProductsAreInnerProducts(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{negative: rng.IntN(2) == 0, symmetric: rng.IntN(2) == 0}) // S is arbitrary
		x, y := randomDocument(rng, sp.Len()), randomDocument(rng, sp.Len())
		got, want := sp.DotQuery(x).Dot(sp.Weighted(y)), byDefinition(sp, x, y)
		check.That(t, near(got, want, 1e-12), "dot product %v, inner product %v", got, want)
	})
}

func TestTheorem42DotProductsOrderAsTheSoftCosine(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		f := form{symmetric: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			f = form{symmetric: true, negative: true, dominant: true} // positive definite
		}
		sp := randomSpace(t, rng, f)
		x, docs := randomDocument(rng, sp.Len()), randomDocuments(rng, sp.Len(), 5)
		query := sp.DotQuery(x)
		var got, want []float64
		for _, y := range docs {
			stored := check.Got(sp.DotDocument(y))(t)
			got, want = append(got, query.Dot(stored)), append(want, softByDefinition(sp, x, y))
		}
		_, square := normsByDefinition(sp, x)
		for k := range docs {
			check.That(t, near(got[k], want[k]*math.Sqrt(square), 1e-12), "dot product %v, want √⟨x, x⟩ = %v times %v", got[k], math.Sqrt(square), want[k])
		}
		if square > 0 {
			sameOrder(t, "dot products", got, want)
		}
	})
}

func TestTheorem43CosinesOrderAsTheSoftCosine(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: rng.IntN(2) == 0}) // S is not negative
		x, docs := randomDocument(rng, sp.Len()), randomDocuments(rng, sp.Len(), 5)
		query := sp.CosineQuery(x)
		check.That(t, sp.HardNorm(x) <= 0 || near(query.Norm(), 1, 1e-12), "the query has length %v", query.Norm())
		check.Equal(t, 0, query.At(int32(sp.Len())))
		var got, want []float64
		for _, y := range docs {
			stored := check.Got(sp.CosineDocument(y))(t)
			check.That(t, near(stored.Norm(), 1, 1e-12), "a document has length %v", stored.Norm())
			cosine := quotient(query.Dot(stored), query.Norm(), stored.Norm())
			got, want = append(got, cosine), append(want, softByDefinition(sp, x, y))
		}
		_, square := normsByDefinition(sp, x)
		if square == 0 {
			return
		}
		factor := math.Sqrt(square) / sp.DotQuery(x).Norm()
		for k := range docs {
			check.That(t, near(got[k], want[k]*factor, 1e-12), "cosine %v, want %v times %v", got[k], factor, want[k])
		}
		sameOrder(t, "cosines", got, want)
	})
}

func TestExpandedQueriesOrderAsTheLengthNormalizedMeasure(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{negative: rng.IntN(2) == 0}) // S is arbitrary, weights may be 0
		x, docs := randomDocument(rng, sp.Len()), randomDocuments(rng, sp.Len(), 5)
		// An engine that knows nothing of S scores (Wx')ᵀ(Wy)/‖Wy‖.
		expanded := sp.Weighted(sp.Expand(x))
		norm, _ := normsByDefinition(sp, x)
		var got, want []float64
		for _, y := range docs {
			square, _ := normsByDefinition(sp, y)
			score, hard := 0.0, 0.0
			if square > 0 && norm > 0 {
				score = expanded.Dot(sp.Weighted(y)) / math.Sqrt(square)
				hard = byDefinition(sp, x, y) / math.Sqrt(square*norm)
			}
			check.That(t, near(score, hard*math.Sqrt(norm), 1e-12), "score %v, want ‖Wx‖ = %v times %v", score, math.Sqrt(norm), hard)
			got, want = append(got, score), append(want, hard)
		}
		if norm > 0 {
			sameOrder(t, "scores", got, want)
		}
	})
}

func TestExpandAddsWhatTheFormulaSays(t *testing.T) {
	// x'_j = x_j + Σ_{i≠j} x_i·w_i·s_ij / w_j. A term of weight 0 is left out.
	sp := mustSpace(t, []float64{2, 4, 0}, mustSimilarities(t, 3, map[[2]int32]float64{{0, 1}: 0.5, {0, 2}: 1, {1, 0}: 0.25}))
	got := sp.Expand(NewVector(map[int32]float64{0: 3, 1: 1, 2: 5}))
	check.That(t, got.Len() == 2 && got.At(0) == 3+1*4*0.25/2 && got.At(1) == 1+3*2*0.5/4, "got %v", got)
}

func TestStoresRefuseWhatBreaksTheirTheorem(t *testing.T) {
	negative := mustSpace(t, ones(2), mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: -2, {1, 0}: -2}))
	x := NewVector(map[int32]float64{0: 1, 1: 1})
	check.Error(t, ErrNotReal, check.ErrOf(negative.DotDocument(x)))
	if _, err := negative.CosineDocument(x); !errors.Is(err, ErrNegative) || !strings.Contains(err.Error(), "in S") {
		t.Errorf("theorem 4.3 with a negative S: error %v", err)
	}
	positive := mustSpace(t, ones(2), mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: 0.5}))
	_, err := positive.CosineDocument(NewVector(map[int32]float64{0: 1, 1: -1}))
	check.That(t, errors.Is(err, ErrNegative) && strings.Contains(err.Error(), "term 1"), "theorem 4.3 with a negative document: error %v", err)
}

func TestVectorsThatWouldNotBeFinitePanic(t *testing.T) {
	s := mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: 0.5, {1, 0}: 0.5})
	sp := mustSpace(t, []float64{1e200, 1}, s)
	x := NewVector(map[int32]float64{0: 1e200, 1: 1})
	pairs := check.Got(NewPhi2(sp))(t)
	for name, call := range map[string]func(){
		"Weighted": func() { sp.Weighted(x) },
		"DotQuery": func() { sp.DotQuery(x) },
		"Expand":   func() { sp.Expand(x) },
		"Map":      func() { pairs.Map(x) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				check.Equal(t, panicFinite, recover())
			}()
			call()
		})
	}
}
