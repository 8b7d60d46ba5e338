package enrich

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/simmatrix"
)

// TestDenseVectorsAreTheAnalysisInAnOrthonormalBasis computes them the long
// way (the thesis, sections 4.4.2 and 4.6.2): E of S = E·Eᵀ by Cholesky, and V
// of EᵀB = V·Σ·Uᵀ by the singular value decomposition, of documents that have
// all terms but two, some of them twice.
func TestDenseVectorsAreTheAnalysisInAnOrthonormalBasis(t *testing.T) {
	const terms, docs, total = 18, 40, 50
	random := rand.New(rand.NewPCG(17, 17))
	dot := func(x, y []float32) (sum float64) {
		for i, v := range x {
			sum += float64(v) * float64(y[i])
		}
		return sum
	}
	termOf := func(i int) string { return fmt.Sprintf("term%02d", i) }
	rows := make([]simmatrix.TermRow, terms)
	s, w := mat.NewSymDense(terms, nil), mat.NewDiagDense(terms, nil)
	for i := range rows {
		df := 1 + random.IntN(40)
		rows[i] = simmatrix.TermRow{Term: termOf(i), DocFreq: uint32(df)}
		w.SetDiag(i, math.Log(1+(total-float64(df)+0.5)/(float64(df)+0.5)))
		s.SetSym(i, i, 1)
		for j := range i {
			if random.IntN(3) == 0 {
				similarity := simmatrix.FromUnits(uint16(4000 + random.IntN(6000)))
				s.SetSym(i, j, float64(similarity))
				rows[i].Neighbors = append(rows[i].Neighbors, simmatrix.Neighbor{Term: termOf(j), Similarity: similarity})
				rows[j].Neighbors = append(rows[j].Neighbors, simmatrix.Neighbor{Term: termOf(i), Similarity: similarity})
			}
		}
	}
	matrix, err := simmatrix.New(simmatrix.Meta{Docs: total}, rows)
	var cholesky mat.Cholesky
	check.Must(t, err == nil && cholesky.Factorize(s), "%v, or the matrix is not positive definite", err)
	var e mat.TriDense
	cholesky.LTo(&e)
	// A text is WY in the space, and EᵀWY in the orthonormal basis.
	type text struct {
		y            []vectors.Coordinate
		inSpace, inE mat.VecDense
	}
	newText := func() *text {
		counts, x := mat.NewVecDense(terms, nil), &text{}
		for range 1 + random.IntN(9) {
			i := random.IntN(terms - 2)
			counts.SetVec(i, counts.AtVec(i)+1)
		}
		for i := range terms {
			if n := counts.AtVec(i); n > 0 {
				x.y = append(x.y, vectors.Coordinate{Term: termOf(i), Value: n})
			}
		}
		x.inSpace.MulVec(w, counts)
		x.inE.MulVec(e.T(), &x.inSpace)
		return x
	}
	var sample []*text
	var frequencies [][]vectors.Coordinate
	for i := range docs {
		y := newText()
		if i%5 == 4 {
			y = sample[i-1]
		}
		sample, frequencies = append(sample, y), append(frequencies, y.y)
	}
	for _, n := range []vectors.Normalization{vectors.None, vectors.Hard, vectors.Soft} {
		length := func(x *text) float64 {
			return map[vectors.Normalization]float64{vectors.None: 1, vectors.Hard: mat.Norm(&x.inSpace, 2), vectors.Soft: mat.Norm(&x.inE, 2)}[n]
		}
		b := mat.NewDense(terms, docs, nil)
		for d, y := range sample {
			for i := range terms {
				b.Set(i, d, y.inE.AtVec(i)/length(y))
			}
		}
		var svd mat.SVD
		var v mat.Dense
		svd.Factorize(b, mat.SVDThin)
		svd.UTo(&v)
		for rank, dims := range map[int]int{1: 1, 5: 5, terms - 2: 100} {
			if n == vectors.Soft {
				dims++ // for the last coordinate
			}
			m := check.Got(LearnVectors(t.Context(), vectors.Meta{Store: vectors.DenseVector, Normalization: n, Strength: 1, Dims: dims}, matrix, matrix, frequencies, nil))(t)
			meta := m.Meta()
			check.Must(t, meta.Rank() == rank, "%s: rank %d, want %d", n, meta.Rank(), rank)
			reduce := func(x *text) *mat.VecDense {
				var z mat.VecDense
				z.MulVec(v.Slice(0, terms, 0, rank).T(), &x.inE)
				return &z
			}
			for range 10 {
				x := newText()
				zx, q := reduce(x), m.DenseQuery(x.y)
				for _, y := range sample {
					zy := reduce(y)
					want, by := mat.Dot(zx, zy)/length(y), length(x)
					if n == vectors.Soft {
						by = mat.Norm(zx, 2)
					}
					vector, share := m.Documents().Dense(y.y)
					got := dot(q, vector)
					check.Must(t, math.Abs(got-want/by) <= 2e-6*max(1, math.Abs(want/by)), "%s, rank %d: the score is %v, want %v", n, rank, got, want/by)
					if n == vectors.Soft { // a store by cosine has the same score
						cosine := got / math.Sqrt(dot(q, q)*dot(vector, vector))
						check.Must(t, math.Abs(cosine-got) <= 1e-6, "rank %d: the cosine is %v, the product %v", rank, cosine, got)
					}
					of := math.Pow(mat.Norm(zy, 2)/mat.Norm(&y.inE, 2), 2)
					check.Must(t, math.Abs(share-of) <= 1e-5, "%s, rank %d: the share is %v, want %v", n, rank, share, of)
				}
			}
		}
	}
}
