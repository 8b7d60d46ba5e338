package softcosine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// propertyCases is how many random cases a property is tried on.
const propertyCases = 1000

// A form says which random S a test needs.
type form struct {
	symmetric, negative, dominant bool
}

// randomSimilarities returns a sparse random matrix of n terms.
func randomSimilarities(tb testing.TB, rng *rand.Rand, n int, f form) *Similarities {
	tb.Helper()
	entries := map[[2]int32]float64{}
	rows := make([]float64, n)
	for range rng.IntN(3*n + 1) {
		i, j := int32(rng.IntN(n)), int32(rng.IntN(n))
		sim := rng.Float64()
		if f.negative && rng.IntN(2) == 0 {
			sim = -sim
		}
		_, known := entries[[2]int32{i, j}]
		if known || i == j {
			continue
		}
		if f.dominant {
			sim *= 1 - max(rows[i], rows[j])
			sim *= rng.Float64()
		}
		rows[i] += math.Abs(sim)
		entries[[2]int32{i, j}] = sim
		if f.symmetric {
			rows[j] += math.Abs(sim)
			entries[[2]int32{j, i}] = sim
		}
	}
	return mustSimilarities(tb, n, entries)
}

func mustSimilarities(tb testing.TB, n int, entries map[[2]int32]float64) *Similarities {
	tb.Helper()
	s := check.Got(NewSimilarities(n, func(yield func([2]int32, float64) bool) {
		for at, sim := range entries {
			if !yield(at, sim) {
				return
			}
		}
	}))(tb)
	return s
}

func mustSpace(tb testing.TB, weights []float64, s *Similarities) *Space {
	tb.Helper()
	return check.Got(NewSpace(weights, s))(tb)
}

// ones returns n weights of 1.
func ones(n int) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = 1
	}
	return w
}

// randomSpace returns a space of up to 20 terms, some of them of weight 0.
func randomSpace(tb testing.TB, rng *rand.Rand, f form) *Space {
	tb.Helper()
	n := 1 + rng.IntN(20)
	weights := make([]float64, n)
	for i := range weights {
		if rng.IntN(8) > 0 {
			weights[i] = 5 * rng.Float64()
		}
	}
	return mustSpace(tb, weights, randomSimilarities(tb, rng, n, f))
}

// randomDocument returns term frequencies of up to 8 terms, now and then of none.
func randomDocument(rng *rand.Rand, n int) Vector {
	values := map[int32]float64{}
	for range rng.IntN(9) {
		values[int32(rng.IntN(n))] = float64(1 + rng.IntN(5))
	}
	return NewVector(values)
}

func randomDocuments(rng *rand.Rand, n, count int) []Vector {
	docs := make([]Vector, count)
	for k := range docs {
		docs[k] = randomDocument(rng, n)
	}
	return docs
}

// byDefinition returns Σ_i Σ_j w_i·x_i·s_ij·w_j·y_j over all pairs of terms.
func byDefinition(sp *Space, x, y Vector) float64 {
	sum := 0.0
	for i := range int32(sp.Len()) {
		for j := range int32(sp.Len()) {
			sum += sp.Weight(i) * x.At(i) * sp.Similarities().At(int(i), int(j)) * sp.Weight(j) * y.At(j)
		}
	}
	return sum
}

// normsByDefinition returns ‖Wx‖² and ⟨x, x⟩.
func normsByDefinition(sp *Space, x Vector) (hard, soft float64) {
	for i := range int32(sp.Len()) {
		v := sp.Weight(i) * x.At(i)
		hard += v * v
	}
	return hard, byDefinition(sp, x, x)
}

// softByDefinition returns the soft cosine of two vectors whose norms are real.
func softByDefinition(sp *Space, x, y Vector) float64 {
	_, xx := normsByDefinition(sp, x)
	_, yy := normsByDefinition(sp, y)
	if xx == 0 || yy == 0 {
		return 0
	}
	return byDefinition(sp, x, y) / math.Sqrt(xx) / math.Sqrt(yy)
}

// near reports whether a and b differ by at most tolerance, of 1 or of the
// larger.
func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(1, math.Abs(a), math.Abs(b))
}

// eachCase calls fn with a random source of its own for each case.
func eachCase(t *testing.T, fn func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	for seed := range uint64(propertyCases) {
		fn(t, rand.New(rand.NewPCG(seed, 6)))
		check.Must(t, !t.Failed(), "case %d", seed)
	}
}

// sameOrder fails where two measures order documents in different ways by more
// than rounding.
func sameOrder(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for a := range want {
		for b := range want {
			// Of what the theorems call ≤ iff ≤, rounding leaves what is clearly less.
			if want[a] < want[b]-1e-9 && got[a] >= got[b] {
				t.Errorf("%s: documents %d and %d: %v and %v, but the measure is %v and %v", what, a, b, got[a], got[b], want[a], want[b])
			}
		}
	}
}
