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
	// Row is the row of S whose term's vector was found to depend linearly on
	// those before it. Any of them may be the cause.
	Row int
	// Pivot is what was left of the square of that vector's length: at most 0,
	// within rounding of it, or not a number.
	Pivot float64
}

// Error names the row and the way out.
func (e *PivotError) Error() string {
	return fmt.Sprintf("row %d: %v (pivot %.4g): make it symmetric and strictly diagonally dominant, Σ|s_ij| < 1 in every row "+
		"without the diagonal, which is sufficient (akin matrix build --symmetric --dominant)", e.Row, ErrNotPositiveDefinite, e.Pivot)
}

// Unwrap returns [ErrNotPositiveDefinite].
func (*PivotError) Unwrap() error { return ErrNotPositiveDefinite }

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

// pivotFloor returns what a pivot has to be above in a factor of order n, given
// s_ii: the rounding error of that place, about n·2⁻⁵³·s_ii (Higham, Accuracy
// and Stability of Numerical Algorithms, 2002, theorem 10.3).
func pivotFloor(n int, diagonal float64) float64 { return float64(n) * 0x1p-52 * diagonal }
