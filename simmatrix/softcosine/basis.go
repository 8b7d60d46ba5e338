package softcosine

import (
	"cmp"
	"fmt"
)

// A PivotError says where S was found not to be positive definite. It wraps
// [ErrNotPositiveDefinite].
type PivotError struct {
	Row   int     // of S whose term's vector depends linearly on those before it, any of which may be the cause
	Pivot float64 // what was left of the square of its length: at most 0, within rounding of it, or not a number
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

// pivotFloor returns what a pivot of a factor of order n has to be above: the
// rounding error of that place, about n·2⁻⁵³·s_ii (Higham, Accuracy and
// Stability of Numerical Algorithms, 2002, theorem 10.3).
func pivotFloor(n int, diagonal float64) float64 { return float64(n) * 0x1p-52 * diagonal }

// DefaultMaxNonZeros is a factor of 1.2 GB, and as much again while it is made.
const DefaultMaxNonZeros = 100_000_000

// A Basis changes to an orthonormal basis, in which the inner product is the
// dot product, so that a vector store ranks as the inner product or the soft
// cosine does. It has an E with S = E·Eᵀ (Sidorov, section 2.5; the notes,
// theorem 3.2), and coordinates
//
//	Φ₁(x) = Eᵀ·W·x,    Φ₁(x)ᵀ·Φ₁(y) = (Wx)ᵀ·E·Eᵀ·(Wy) = ⟨x, y⟩
//
// The notes (lemma 3.3) and the thesis (sections 4.3 and 4.4.2) print E·W·x,
// which has the product (Wx)ᵀ·Eᵀ·E·(Wy), and EᵀE is not S unless S = I.
//
// E = P·F is sparse: P is a permutation of the terms and F the lower triangular
// Cholesky factor of PᵀSP, which has fewer entries than that of S:
//
//	S = P·PᵀSP·Pᵀ = P·F·Fᵀ·Pᵀ = (P·F)·(P·F)ᵀ = E·Eᵀ
//
// It is immutable and safe for use by any number of goroutines.
type Basis struct {
	space  *Space
	places []int32 // of the terms in the order
	factor *rowFactor
}

// NewBasis returns the change of basis for a space, with the terms in an order,
// such as [MinimumDegree]. Time and memory depend on the entries of F, its
// fill, between those of S and n²/2. F may have maxNonZeros of them, 12 bytes
// each and 12 more while it is made; 0 is [DefaultMaxNonZeros]. The error wraps
// [ErrTooLarge], [ErrNotSymmetric], or [ErrNotPositiveDefinite] as a
// [*PivotError].
func NewBasis(sp *Space, order Ordering, maxNonZeros int) (*Basis, error) {
	s := sp.Similarities()
	if err := checkSymmetric(s); err != nil {
		return nil, err
	}
	st := analyze(s, order(s))
	if maxNonZeros = cmp.Or(maxNonZeros, DefaultMaxNonZeros); st.nonZeros > maxNonZeros {
		return nil, fmt.Errorf("%w: it has %d entries and may have %d; allow more, or give S fewer entries", ErrTooLarge, st.nonZeros, maxNonZeros)
	}
	factor, err := factorize(s, st)
	if err != nil {
		return nil, err
	}
	return &Basis{space: sp, places: st.places, factor: factor}, nil
}

// Len returns n, the number of dimensions.
func (b *Basis) Len() int { return len(b.places) }

// Coordinates returns Φ₁(x) = Eᵀ·W·x, in O(n) and the entries of E in the rows
// of x.
func (b *Basis) Coordinates(x Vector) Vector {
	dense := make([]float64, b.Len())
	for k, i := range x.Terms {
		v := b.space.Weight(i) * x.Values[k]
		cols, values := b.factor.row(int(b.places[i]))
		for l, j := range cols {
			dense[j] += v * values[l]
		}
	}
	var out Vector
	for j, v := range dense {
		if v != 0 {
			out.Terms, out.Values = append(out.Terms, int32(j)), append(out.Values, v)
		}
	}
	return out.checked()
}
