package simmatrix

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// The randomised method of Halko, Martinsson and Tropp (2011), algorithms 4.4
// and 5.1, with 20 directions more than asked for. Three passes are enough for
// the leading 100 singular values of text matrices to three digits, but not
// for the last of the vectors: with three, a third of a term's 200 neighbors
// change with the seed, and the gain in nDCG with them (standard deviation
// 0.39 points on one judged collection, 0.13 with twelve).
const (
	oversampling    = 20
	powerIterations = 12
	// svdProducts is how often truncatedSVD multiplies by the matrix.
	svdProducts = 2 + 2*powerIterations
)

// rankTolerance is the smallest singular value, as a share of the largest,
// that is not taken for the rounding of the float32 entries.
const rankTolerance = 1e-7

var errSVD = errors.New("the singular value decomposition did not converge")

// truncatedSVD returns the leading k left singular vectors of a, as the columns
// of a matrix with a.rows rows, and the singular values, descending. There are
// fewer where the rank of a is less than k, and none where a is zero.
func truncatedSVD(ctx context.Context, a *sparse, k int, random *rand.Rand, st *stage) (blas64.General, []float64, error) {
	at := a.transpose()
	width := min(k+oversampling, a.rows, a.cols)
	q, z := newDense(a.rows, width), newDense(a.cols, width)
	for i := range z.Data {
		z.Data[i] = random.NormFloat64()
	}
	multiply := func(s *sparse, dst, src blas64.General) error {
		defer st.add(1)
		return s.mul(ctx, dst, src)
	}
	if err := multiply(a, q, z); err != nil {
		return blas64.General{}, nil, err
	}
	for range powerIterations {
		orthonormalize(q)
		if err := multiply(at, z, q); err != nil {
			return blas64.General{}, nil, err
		}
		if err := multiply(a, q, z); err != nil {
			return blas64.General{}, nil, err
		}
	}
	orthonormalize(q)
	if err := multiply(at, z, q); err != nil {
		return blas64.General{}, nil, err
	}
	return project(q, z, k)
}

// project returns the leading k left singular vectors and values of q·zᵀ, where
// q has orthonormal columns. With z = PR, P orthonormal, they are q times
// those of the small matrix Rᵀ.
func project(q, z blas64.General, k int) (blas64.General, []float64, error) {
	width := z.Cols
	factorizeQR(z)
	rt := mat.NewDense(width, width, nil)
	for i := range width {
		for j := i; j < width; j++ {
			rt.Set(j, i, z.Data[i*z.Stride+j])
		}
	}
	var svd mat.SVD
	if !svd.Factorize(rt, mat.SVDThinU) {
		return blas64.General{}, nil, errSVD
	}
	sigma := svd.Values(nil)
	rank := 0
	for rank < min(k, width) && sigma[rank] > rankTolerance*sigma[0] {
		rank++
	}
	if rank == 0 {
		return blas64.General{Rows: q.Rows}, nil, nil
	}
	var small mat.Dense
	svd.UTo(&small)
	leading := small.RawMatrix()
	leading.Cols = rank
	u := newDense(q.Rows, rank)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, q, leading, 0, u)
	return u, sigma[:rank], nil
}

// orthonormalize replaces the columns of a, which has at least as many rows,
// by an orthonormal basis whose span holds theirs.
func orthonormalize(a blas64.General) {
	tau := factorizeQR(a)
	size := []float64{0}
	lapack64.Orgqr(a, tau, size, -1) // asks how much room it wants
	lapack64.Orgqr(a, tau, make([]float64, int(size[0])), int(size[0]))
}

// factorizeQR replaces a by R in the upper triangle and the reflectors of Q,
// whose factors it returns.
func factorizeQR(a blas64.General) (tau []float64) {
	tau = make([]float64, a.Cols)
	size := []float64{0}
	lapack64.Geqrf(a, tau, size, -1)
	lapack64.Geqrf(a, tau, make([]float64, int(size[0])), int(size[0]))
	return tau
}

// partOptions are the settings of one part of the term vectors.
type partOptions struct {
	dimensions   int
	sigmaPower   float64 // vectors are U·σ^sigmaPower
	seed, stream uint64  // of the random projection
}

// addPart appends the vectors that a gives its rows: U·σ^sigmaPower of the
// truncated decomposition, each scaled to length 1/√2, so that the dot product
// of two terms over both parts is the mean of the two cosines. A row of zeros
// stays zero.
func (t *vectorTable) addPart(ctx context.Context, a *sparse, opts partOptions, st *stage) error {
	random := rand.New(rand.NewPCG(opts.seed, opts.stream)) //nolint:gosec // has to give the same numbers every time
	u, sigma, err := truncatedSVD(ctx, a, opts.dimensions, random, st)
	if err != nil {
		return err
	}
	for j, s := range sigma {
		sigma[j] = math.Pow(s, opts.sigmaPower)
	}
	wider := vectorTable{rows: t.rows, dim: t.dim + len(sigma)}
	wider.values = make([]float32, wider.rows*wider.dim)
	for i := range t.rows {
		copy(wider.row(i), t.row(i))
		if len(sigma) > 0 {
			part := rowOf(u, i).Data
			for j := range part {
				part[j] *= sigma[j]
			}
			scaleTo(wider.row(i)[t.dim:], part, math.Sqrt2/2)
		}
	}
	*t = wider
	return nil
}

// shortest is the length under which a vector counts as zero: rounding would
// give it its direction.
const shortest = 1e-9

// scaleTo sets dst to src scaled to the given length, or to zero.
func scaleTo(dst []float32, src []float64, length float64) {
	norm := blas64.Nrm2(blas64.Vector{N: len(src), Inc: 1, Data: src})
	for j, x := range src {
		if norm > shortest {
			dst[j] = float32(x / norm * length)
		} else {
			dst[j] = 0
		}
	}
}
