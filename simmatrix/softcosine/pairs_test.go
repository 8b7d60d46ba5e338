package softcosine

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// pairsByDefinition returns Σ_ij a_ij·b_ij over all n² pairs with the k_ij of a
// dense matrix, a_ij = √k_ij·(a_i + a_j)/2.
func pairsByDefinition(k [][]float64, a, b []float64) float64 {
	sum := 0.0
	for i := range k {
		for j := range k {
			root := math.Sqrt(k[i][j])
			sum += root * (a[i] + a[j]) / 2 * root * (b[i] + b[j]) / 2
		}
	}
	return sum
}

// dense returns Wx with its zeros.
func dense(sp *Space, x Vector) []float64 {
	v := make([]float64, sp.Len())
	for i := range v {
		v[i] = sp.Weight(int32(i)) * x.At(int32(i))
	}
	return v
}

func TestSoftCosine2IsTheFormulaAsPrinted(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: rng.IntN(2) == 0})
		p, err := NewPairs(sp)
		if err != nil {
			t.Fatal(err)
		}
		k := make([][]float64, sp.Len())
		for i := range k {
			k[i] = make([]float64, sp.Len())
			for j := range k[i] {
				k[i][j] = sp.s.At(i, j)
			}
		}
		x, y := randomDocument(rng, sp.Len()), randomDocument(rng, sp.Len())
		a, b := dense(sp, x), dense(sp, y)
		want := quotient(pairsByDefinition(k, a, b), math.Sqrt(pairsByDefinition(k, a, a)), math.Sqrt(pairsByDefinition(k, b, b)))
		if got := p.Cosine(x, y); !near(got, want, 1e-12) {
			t.Errorf("%v, want %v", got, want)
		}
		// Section 2.4: it is ½·Σ_ij (½(s_ij + s_ji) and, for i = j, the sum of
		// row i more)·a_i·b_j, for a symmetric S.
		sum := byDefinition(sp, x, y)
		for i := range a {
			for j := range a {
				sum += sp.s.At(i, j) * a[i] * b[i]
			}
		}
		if dot := p.Map(x).Dot(p.Map(y)); sp.s.Symmetric() && !near(dot, sum/2, 1e-12) {
			t.Errorf("dot product %v, want %v", dot, sum/2)
		}
		if got, cosine := mustPairs(t, mustSpace(t, sp.weights, Identity(sp.Len()))).Cosine(x, y), sp.Cosine(x, y); !near(got, cosine, 1e-12) {
			t.Errorf("with S = I: %v, want the cosine %v", got, cosine)
		}
	})
}

func mustPairs(t *testing.T, sp *Space) *Pairs {
	t.Helper()
	p, err := NewPairs(sp)
	if err != nil {
		t.Fatal(err)
	}
	return p
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
		if got, want := phi.Cosine(x, y), softByDefinition(sp, x, y); !near(got, want, 1e-12) {
			t.Errorf("cosine %v, soft cosine %v", got, want)
		}
	})
}

func TestPairsHaveAFeatureForEachSimilarity(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{})
		p := mustPairs(t, sp)
		if p.Len() != sp.Len()+sp.s.NonZeros() {
			t.Fatalf("%d features", p.Len())
		}
		x := randomDocument(rng, sp.Len())
		a, features := dense(sp, x), p.Map(x)
		var of [][2]int32 // (i, i) before the others of row i
		for i := range int32(sp.Len()) {
			of = append(of, [2]int32{i, i})
			cols, _ := sp.s.Row(int(i))
			for _, j := range cols {
				of = append(of, [2]int32{i, j})
			}
		}
		for f := range int32(p.Len()) {
			i, j := of[f][0], of[f][1]
			if want := math.Sqrt(sp.s.At(int(i), int(j))) * (a[i] + a[j]) / 2; !near(features.At(f), want, 1e-14) {
				t.Errorf("feature of (%d, %d) is %v, want %v", i, j, features.At(f), want)
			}
		}
	})
}

func TestTwoFeaturesOfSimilarityOneAsPairs(t *testing.T) {
	sp := mustSpace(t, ones(2), mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: 1, {1, 0}: 1}))
	a, b := NewVector(map[int32]float64{0: 1}), NewVector(map[int32]float64{1: 1})
	// Uncorrected: 1 for a itself and ½ for each of the mixed pairs, the same for
	// b: ½ over 3/2.
	if got := mustPairs(t, sp).Cosine(a, b); !near(got, 1.0/3, 1e-15) {
		t.Errorf("soft_cosine₂ %v, want 1/3", got)
	}
	// Corrected: c_ii = (1 - 1)/2 = 0, and the mixed pairs, √½ each, are all there is of both.
	phi, err := NewPhi2(sp)
	if err != nil {
		t.Fatal(err)
	}
	if got := phi.Cosine(a, b); !near(got, 1, 1e-15) {
		t.Errorf("corrected %v, want 1", got)
	}
}

func TestPairsRefuseWhatHasNoRoot(t *testing.T) {
	for _, c := range []struct {
		name, want string
		s          map[[2]int32]float64
		uncorrect  bool // NewPairs refuses it, too
	}{
		{"negative", "s(0, 1) = -0.5 is negative", map[[2]int32]float64{{0, 1}: -0.5, {1, 0}: -0.5}, true},
		{"not symmetric", ErrNotSymmetric.Error(), map[[2]int32]float64{{0, 1}: 0.5}, false},
		{
			"too similar to two", "c(1, 1) = -0.25 is negative: the similarities of term 1",
			map[[2]int32]float64{{0, 1}: 0.75, {1, 0}: 0.75, {1, 2}: 0.75, {2, 1}: 0.75},
			false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp := mustSpace(t, ones(3), mustSimilarities(t, 3, c.s))
			if _, err := NewPhi2(sp); !errors.Is(err, ErrPairs) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Φ₂: error %v, want one with %q", err, c.want)
			}
			if _, err := NewPairs(sp); (err != nil) != c.uncorrect || (err != nil && !errors.Is(err, ErrPairs)) {
				t.Errorf("as printed: error %v", err)
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
