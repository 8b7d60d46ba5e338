package softcosine

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// dense returns Wx with its zeros.
func dense(sp *Space, x Vector) []float64 {
	v := make([]float64, sp.Len())
	for i := range v {
		v[i] = sp.Weight(int32(i)) * x.At(int32(i))
	}
	return v
}

func TestPhi2MakesDotProductsOfInnerProducts(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: true, dominant: true})
		phi, err := NewPhi2(sp)
		if err != nil {
			t.Fatal(err)
		}
		x, y := randomDocument(rng, sp.Len()), randomDocument(rng, sp.Len())
		if got, want := phi.Map(x).Dot(phi.Map(y)), byDefinition(sp, x, y); !near(got, want, 1e-12) {
			t.Errorf("dot product %v, inner product %v", got, want)
		}
		a, b := phi.Map(x), phi.Map(y)
		if got, want := quotient(a.Dot(b), a.Norm(), b.Norm()), softByDefinition(sp, x, y); !near(got, want, 1e-12) {
			t.Errorf("cosine %v, soft cosine %v", got, want)
		}
	})
}

func TestPairsHaveAFeatureForEachSimilarity(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: true, dominant: true})
		phi, err := NewPhi2(sp)
		if err != nil {
			t.Fatal(err)
		}
		x := randomDocument(rng, sp.Len())
		a, features := dense(sp, x), phi.Map(x)
		feature := int32(0) // (i, i) before the others of row i
		compare := func(i, j int, k float64) {
			if want := math.Sqrt(k) * (a[i] + a[j]) / 2; !near(features.At(feature), want, 1e-14) {
				t.Errorf("feature of (%d, %d) is %v, want %v", i, j, features.At(feature), want)
			}
			feature++
		}
		for i := range sp.Len() {
			cols, sims := sp.s.Row(i)
			sum := 0.0
			for _, sim := range sims {
				sum += sim
			}
			compare(i, i, 1-sum)
			for l, j := range cols {
				compare(i, int(j), 2*sims[l])
			}
		}
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
			if _, err := NewPhi2(sp); !errors.Is(err, ErrPairs) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Φ₂: error %v, want one with %q", err, c.want)
			}
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
	if _, err := NewPhi2(mustSpace(t, ones(21), mustSimilarities(t, 21, sims))); err != nil {
		t.Errorf("similarities that add up to 1: %v", err)
	}
}
