package softcosine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/e2e/check"
)

// BenchmarkProduct is of one (Wx)ᵀS(Wy), with 20,000 terms of 100 neighbors
// each and texts of 100 terms: by algorithm 1 of the notes, and as the sum over
// all pairs of their terms.
func BenchmarkProduct(b *testing.B) {
	const n, c, m, texts = 20_000, 100, 100, 64
	rng := rand.New(rand.NewPCG(1, 2))
	s := check.Got(NewSimilarities(n, func(yield func([2]int32, float64) bool) {
		for i := range int32(n) {
			for k := range int32(c) {
				if !yield([2]int32{i, (i + 1 + k*(n/c-1)) % n}, rng.Float64()) {
					return
				}
			}
		}
	}))(b)
	sp := mustSpace(b, ones(n), s)
	docs := make([]Vector, texts)
	for k := range docs {
		values := map[int32]float64{}
		for _, i := range rng.Perm(n)[:m] {
			values[int32(i)] = 1
		}
		docs[k] = NewVector(values)
	}
	pairs := func(x, y Vector) float64 {
		sum := 0.0
		for k, i := range x.Terms {
			for l, j := range y.Terms {
				sum += sp.weights[i] * x.Values[k] * s.At(int(i), int(j)) * sp.weights[j] * y.Values[l]
			}
		}
		return sum
	}
	check.Must(b, near(pairs(docs[0], docs[1]), sp.InnerProduct(docs[0], docs[1]), 1e-12), "two products of the same")
	for _, way := range []struct {
		name    string
		product func(x, y Vector) float64
	}{{"algorithm 1", sp.InnerProduct}, {"all pairs", pairs}} {
		b.Run(way.name, func(b *testing.B) {
			for k := 0; b.Loop(); k++ {
				way.product(docs[k%texts], docs[(k+1)%texts])
			}
		})
	}
}

// BenchmarkBasis is table 1 of the notes: E of a dense S by Cholesky's method,
// and by the algorithm of Sidorov, section 2.5, with a Gaussian elimination for
// each row.
func BenchmarkBasis(b *testing.B) {
	for _, n := range []int{100, 500, 1000} {
		s := denseSimilarities(b, n)
		for _, way := range []struct {
			name  string
			basis func(*Similarities) (*mat.TriDense, error)
		}{{"Cholesky", DenseBasis}, {"Gauss", iteratedGauss}} {
			b.Run(fmt.Sprintf("%d terms, %s", n, way.name), func(b *testing.B) {
				for b.Loop() {
					check.OK(b, check.ErrOf(way.basis(s)))
				}
			})
		}
	}
}

// denseSimilarities returns the cosines of n random vectors, all of them alike
// a little.
func denseSimilarities(tb testing.TB, n int) *Similarities {
	tb.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	vectors := make([]mat.VecDense, n)
	for i := range vectors {
		values := make([]float64, 2*n)
		for k := range values {
			values[k] = rng.Float64()
		}
		v := mat.NewVecDense(2*n, values)
		vectors[i].ScaleVec(1/mat.Norm(v, 2), v)
	}
	entries := map[[2]int32]float64{}
	for i := range vectors {
		for j := range i {
			sim := mat.Dot(&vectors[i], &vectors[j])
			entries[[2]int32{int32(i), int32(j)}], entries[[2]int32{int32(j), int32(i)}] = sim, sim
		}
	}
	return mustSimilarities(tb, n, entries)
}

// iteratedGauss returns E row by row, each by a system of equations of its own
// (Sidorov, eq. 23 to 25): in O(n⁴).
func iteratedGauss(s *Similarities) (*mat.TriDense, error) {
	n := s.Len()
	e := mat.NewTriDense(n, mat.Lower, nil)
	e.SetTri(0, 0, 1)
	for k := 1; k < n; k++ {
		var known, row mat.VecDense
		above := mat.DenseCopyOf(e.SliceTri(0, k))
		known.ReuseAsVec(k)
		for j := range k {
			known.SetVec(j, s.At(j, k))
		}
		var lu mat.LU
		lu.Factorize(above)
		if err := lu.SolveVecTo(&row, false, &known); err != nil {
			return nil, err
		}
		rest := 1.0
		for j := range k {
			e.SetTri(k, j, row.AtVec(j))
			rest -= row.AtVec(j) * row.AtVec(j)
		}
		e.SetTri(k, k, math.Sqrt(rest))
	}
	return e, nil
}

func TestBasisIsThatOfIteratedGauss(t *testing.T) {
	s := denseSimilarities(t, 40)
	gauss, cholesky := check.Got(iteratedGauss(s))(t), check.Got(DenseBasis(s))(t)
	check.That(t, mat.EqualApprox(gauss, cholesky, 1e-12), "E by Gauss %v, by Cholesky %v", mat.Formatted(gauss), mat.Formatted(cholesky))
}
