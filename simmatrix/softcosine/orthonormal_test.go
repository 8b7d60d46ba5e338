package softcosine

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func TestOrthonormalizeMakesTheBasisOfSidorov(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: true, negative: rng.IntN(2) == 0, dominant: true})
		n := sp.Len()
		e, err := Orthonormalize(sp.s)
		if err != nil {
			t.Fatal(err)
		}
		s := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				s.SetSym(i, j, sp.s.At(i, j))
			}
		}
		var product mat.Dense
		product.Mul(e, e.T())
		if !mat.EqualApprox(&product, s, 1e-12) { // eq. 22
			t.Errorf("E·Eᵀ = %v, want %v", mat.Formatted(&product), mat.Formatted(s))
		}
		var cholesky mat.Cholesky
		if !cholesky.Factorize(s) {
			t.Fatal("gonum finds S not positive definite")
		}
		var lower mat.TriDense
		cholesky.LTo(&lower)
		if !mat.EqualApprox(e, &lower, 1e-12) {
			t.Errorf("E = %v, Cholesky factor %v", mat.Formatted(e), mat.Formatted(&lower))
		}
		// In the orthonormal basis, with coordinates Eᵀ·(Wx), the dot product is the
		// inner product.
		x, y := randomDocument(rng, n), randomDocument(rng, n)
		var a, b mat.VecDense
		a.MulVec(e.T(), mat.NewVecDense(n, dense(sp, x)))
		b.MulVec(e.T(), mat.NewVecDense(n, dense(sp, y)))
		if got, want := mat.Dot(&a, &b), byDefinition(sp, x, y); !near(got, want, 1e-12) {
			t.Errorf("dot product %v, inner product %v", got, want)
		}
	})
}

func TestOrthonormalizeBeginsAsEquation26(t *testing.T) {
	// s_12 = ½: e₁ = (1, 0), e₂ = (½, √(1 - ¼)).
	e, err := Orthonormalize(mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: 0.5, {1, 0}: 0.5}))
	if err != nil || e.At(0, 0) != 1 || e.At(1, 0) != 0.5 || !near(e.At(1, 1), math.Sqrt(0.75), 1e-15) {
		t.Errorf("%v, %v", mat.Formatted(e), err)
	}
	if e, err := Orthonormalize(Identity(0)); err != nil || e == nil {
		t.Errorf("of no terms: %v", err)
	}
}

func TestOrthonormalizeNamesWhereThereIsNoBasis(t *testing.T) {
	symmetric := func(n int, sims map[[2]int32]float64) *Similarities {
		both := map[[2]int32]float64{}
		for at, sim := range sims {
			both[at], both[[2]int32{at[1], at[0]}] = sim, sim
		}
		return mustSimilarities(t, n, both)
	}
	for _, c := range []struct {
		name string
		s    *Similarities
		row  int
	}{
		{"the same term twice", symmetric(3, map[[2]int32]float64{{1, 2}: 1}), 2},
		// The distances √(2-2s) of 0.63, 0.63 and 1.22 obey the triangle inequality,
		// which Sidorov assumes, but det S = 1 + 2·0.8·0.8·0.25 - 2·0.64 - 0.0625 < 0.
		{"triangle inequality", symmetric(3, map[[2]int32]float64{{0, 1}: 0.8, {0, 2}: 0.8, {1, 2}: 0.25}), 2},
		{"above 1", symmetric(3, map[[2]int32]float64{{0, 1}: 2}), 1},
	} {
		var pivot *PivotError
		if _, err := Orthonormalize(c.s); !errors.As(err, &pivot) || pivot.Row != c.row || !errors.Is(err, ErrNotPositiveDefinite) {
			t.Errorf("%s: error %v, want one of row %d", c.name, err, c.row)
		}
	}
	if _, err := Orthonormalize(mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: 0.5})); !errors.Is(err, ErrNotSymmetric) {
		t.Errorf("not symmetric: error %v", err)
	}
}
