package softcosine

import (
	"errors"
	"fmt"
)

// Errors of a change of basis.
var (
	// ErrNotSymmetric says that S is not symmetric, so that no E has S = E·Eᵀ.
	ErrNotSymmetric = errors.New("the matrix S is not symmetric")
	// ErrNotPositiveDefinite says that S is not the matrix of the inner
	// products of linearly independent vectors, so that no orthonormal basis
	// can be made of them.
	ErrNotPositiveDefinite = errors.New("the matrix S is not positive definite")
	// ErrTooLarge says that a factor would have more entries than allowed.
	ErrTooLarge = errors.New("the Cholesky factor is too large")
)

// A PivotError says where S was found not to be positive definite. It wraps
// [ErrNotPositiveDefinite].
type PivotError struct {
	// Row is the row of S, which is the number of its term: the vector of that
	// term depends linearly on those that were orthonormalised before it, or S
	// is not a matrix of inner products at all. The others may be as much the
	// cause: any of two terms of similarity 1, for instance.
	Row int
	// Pivot is what was left of the square of that vector's length: at most 0,
	// or so small that it may be nothing but rounding, or not a number.
	Pivot float64
}

// Error names the row and the way out.
func (e *PivotError) Error() string {
	return fmt.Sprintf("row %d: %v (pivot %.4g): make it symmetric and strictly diagonally dominant, Σ|s_ij| < 1 in every row "+
		"without the diagonal, which is sufficient (akin matrix build --symmetric --dominant)", e.Row, ErrNotPositiveDefinite, e.Pivot)
}

// Unwrap returns [ErrNotPositiveDefinite].
func (*PivotError) Unwrap() error { return ErrNotPositiveDefinite }

// checkSymmetric returns an error that wraps [ErrNotSymmetric] and names a
// pair of terms that are not as similar one way as the other.
func checkSymmetric(s *Similarities) error {
	if s.Symmetric() {
		return nil
	}
	for i := range s.Len() {
		cols, sims := s.Row(i)
		for k, j := range cols {
			if back := s.At(int(j), i); back != sims[k] {
				return fmt.Errorf("%w: s(%d, %d) = %v and s(%d, %d) = %v; take ½(S + Sᵀ), or make S symmetric "+
					"(akin matrix build --symmetric)", ErrNotSymmetric, i, j, sims[k], j, i, back)
			}
		}
	}
	return ErrNotSymmetric
}

// pivotFloor returns what the pivot of a row has to be above, given the
// diagonal of S there, in a factor of order n. The computed factor is that
// of a matrix which differs from S by up to about n·2⁻⁵³·s_ii in s_ii
// (Higham, Accuracy and Stability of Numerical Algorithms, 2002, theorem
// 10.3), so that what is left after the subtraction of squares is nothing if
// it is no more than that.
func pivotFloor(n int, diagonal float64) float64 { return float64(n) * 0x1p-52 * diagonal }
