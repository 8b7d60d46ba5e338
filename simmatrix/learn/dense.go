package learn

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

func newDense(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
}

func rowOf(a blas64.General, i int) blas64.Vector {
	return blas64.Vector{N: a.Cols, Inc: 1, Data: a.Data[i*a.Stride : i*a.Stride+a.Cols]}
}

func rowsOf(a blas64.General, lo, hi int) blas64.General {
	return blas64.General{Rows: hi - lo, Cols: a.Cols, Stride: a.Stride, Data: a.Data[lo*a.Stride : (hi-1)*a.Stride+a.Cols]}
}

// denseRows is how many rows are multiplied at a time: few enough that the
// multiplication starts no goroutines of its own.
const denseRows = 64

// crossProduct returns aᵀb where it is symmetric. The rows are summed in a
// fixed number of parts, so that the result is always the same.
func crossProduct(ctx context.Context, a, b blas64.General) (*mat.SymDense, error) {
	const parts = 16
	size := max((a.Rows+parts-1)/parts, 1)
	sums := make([]blas64.Symmetric, (a.Rows+size-1)/size)
	err := parallel.EachBlock(ctx, a.Rows, size, func() func(lo, hi int) {
		return func(lo, hi int) {
			sum := blas64.Symmetric{N: a.Cols, Stride: a.Cols, Uplo: blas.Upper, Data: make([]float64, a.Cols*a.Cols)}
			for r := lo; r < hi && (r%denseRows != 0 || ctx.Err() == nil); r++ {
				x, y := rowOf(a, r).Data, rowOf(b, r).Data
				for i, v := range x {
					n := a.Cols - i
					blas64.Axpy(v, blas64.Vector{N: n, Inc: 1, Data: y[i:]}, blas64.Vector{N: n, Inc: 1, Data: sum.Data[i*sum.Stride+i:]})
				}
			}
			sums[lo/size] = sum
		}
	})
	if err != nil {
		return nil, err
	}
	total := mat.NewSymDense(a.Cols, nil)
	for _, s := range sums {
		for k, v := range s.Data {
			total.RawSymmetric().Data[k] += v
		}
	}
	return total, nil
}

// timesSmall returns a·m for a tall matrix a, in the memory of a where m is
// square.
func timesSmall(ctx context.Context, a, m blas64.General) (blas64.General, error) {
	out := a
	if m.Cols != a.Cols {
		out = newDense(a.Rows, m.Cols)
	}
	err := parallel.EachBlock(ctx, a.Rows, denseRows, func() func(lo, hi int) {
		room := newDense(denseRows, m.Cols)
		return func(lo, hi int) {
			product := rowsOf(room, 0, hi-lo)
			blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, rowsOf(a, lo, hi), m, 0, product)
			for i := lo; i < hi; i++ {
				copy(rowOf(out, i).Data, rowOf(product, i-lo).Data)
			}
		}
	})
	return out, err
}

// Settings of orthonormalize.
const (
	// machineEpsilon is the distance from 1 to the next larger float64.
	machineEpsilon = 0x1p-52
	// wellConditioned is the smallest eigenvalue of the cross product of
	// columns of length 1 with which one pass is enough.
	wellConditioned = 0.1
	// maxPasses bounds the passes. One is the rule, two follow the first
	// product; more are of no use for columns without a direction.
	maxPasses = 4
)

// orthonormalize replaces the columns of a by an orthonormal basis of their
// span, by the eigenvectors of their cross product (Stathopoulos and Wu, 2002,
// section 4.4): with D the inverse lengths of the columns and
//
//	D·aᵀa·D = V·Λ·Vᵀ,   a ← a·D·V·Λ^-½
//
// repeated until the cross product was well conditioned. An eigenvalue below
// the rounding error of the largest is raised to it, so that columns that
// depend on each other up to rounding become some directions instead of an
// error (as the shift in Fukaya et al., 2020). Zero columns stay zero.
func orthonormalize(ctx context.Context, a blas64.General) error {
	for range maxPasses {
		cross, err := crossProduct(ctx, a, a)
		if err != nil {
			return err
		}
		basis, smallest, err := inverseRoot(cross)
		if err != nil {
			return err
		}
		if _, err := timesSmall(ctx, a, basis); err != nil {
			return err
		}
		if smallest > wellConditioned {
			return nil
		}
	}
	return nil
}

// inverseRoot returns D·V·Λ^-½ and the smallest entry of Λ.
func inverseRoot(cross *mat.SymDense) (blas64.General, float64, error) {
	n := cross.SymmetricDim()
	inverse := make([]float64, n)
	for i := range inverse {
		if square := cross.At(i, i); square > 0 {
			inverse[i] = 1 / math.Sqrt(square)
		}
	}
	for i := range n {
		for j := i; j < n; j++ {
			cross.SetSym(i, j, inverse[i]*cross.At(i, j)*inverse[j])
		}
	}
	values, vectors, err := eigen(cross)
	if err != nil {
		return vectors, 0, err
	}
	least := float64(n) * machineEpsilon * values[n-1]
	for i := range n {
		row := rowOf(vectors, i).Data
		for j := range row {
			if root := math.Sqrt(max(values[j], least)); root > 0 {
				row[j] *= inverse[i] / root
			}
		}
	}
	return vectors, values[0], nil
}

// eigen returns the eigenvalues of a, ascending, and the eigenvectors as the
// columns of a matrix.
func eigen(a *mat.SymDense) ([]float64, blas64.General, error) {
	var e mat.EigenSym
	if !e.Factorize(a, true) {
		return nil, blas64.General{}, errSVD
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors)
	return e.Values(nil), vectors.RawMatrix(), nil
}
