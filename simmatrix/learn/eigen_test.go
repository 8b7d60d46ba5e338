package learn

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/e2e/check"
)

// nearlyDependent returns columns of which each is the one before and a little,
// a share of it, of a direction of its own.
func nearlyDependent(random *rand.Rand, rows, cols int, share float64) blas64.General {
	a := newDense(rows, cols)
	for i := range rows {
		for j := range cols {
			a.Data[i*cols+j] = random.NormFloat64()
			if j > 0 {
				a.Data[i*cols+j] = a.Data[i*cols+j-1] + share*a.Data[i*cols+j]
			}
		}
	}
	return a
}

func TestOrthonormalBases(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 10))
	for _, tt := range []struct {
		name       string
		rows, cols int
		share      float64
	}{
		{"independent", 1000, 40, 1},
		{"as many columns as rows", 30, 30, 1},
		{"one column", 70, 1, 1},
		{"almost dependent", 1000, 40, 1e-3},
		{"dependent up to rounding", 1000, 12, 1e-12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := nearlyDependent(random, tt.rows, tt.cols, tt.share)
			before := mat.DenseCopyOf(mat.NewDense(tt.rows, tt.cols, a.Data))
			check.OK(t, orthonormalize(t.Context(), a))
			q := mat.NewDense(tt.rows, tt.cols, a.Data)
			var cross, back, diff mat.Dense
			cross.Mul(q.T(), q)
			for i := range tt.cols {
				cross.Set(i, i, cross.At(i, i)-1)
			}
			d := mat.Norm(&cross, 2)
			check.That(t, d <= 1e-12, "QᵀQ differs from 1 by %v", d)
			// What the columns were lies in the span of the basis.
			cross.Mul(q.T(), before)
			back.Mul(q, &cross)
			diff.Sub(&back, before)
			d = mat.Norm(&diff, 2) / mat.Norm(before, 2)
			check.That(t, d <= 1e-8, "a share of %v of the columns is outside the span", d)
		})
	}
}

func TestOrthonormalBasisOfZerosStaysZero(t *testing.T) {
	a := newDense(50, 3)
	for i := range 50 {
		a.Data[3*i+1] = float64(i)
	}
	check.OK(t, orthonormalize(t.Context(), a))
	lengths := [3]float64{}
	for i, x := range a.Data {
		lengths[i%3] += x * x
	}
	slices.Sort(lengths[:])
	check.That(t, lengths[1] == 0 && math.Abs(lengths[2]-1) <= 1e-12, "squares of the columns' lengths %v, want 0, 0, 1", lengths)
}

func TestDenseProductsHeedTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := newDense(1000, 10)
	check.Error(t, context.Canceled, orthonormalize(ctx, a))
	check.Error(t, context.Canceled, check.ErrOf(crossProduct(ctx, a, a)))
	check.Error(t, context.Canceled, check.ErrOf(timesSmall(ctx, a, newDense(10, 3))))
}
