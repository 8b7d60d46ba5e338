package softcosine

import (
	"cmp"
	"fmt"
	"runtime"
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

// MaxDenseTerms is the largest n of a [DenseBasis]: 4·n² bytes are 400 MB, and
// n³/6 multiplications take about ten seconds.
const MaxDenseTerms = 10_000

// A DenseBasis changes to an orthonormal basis, in which the inner product is
// the dot product, so that a vector store ranks as the inner product or the
// soft cosine does. It has the E of [Cholesky], S = E·Eᵀ (Sidorov, section 2.5;
// the notes, theorem 3.2), and coordinates
//
//	Φ₁(x) = Eᵀ·W·x,    Φ₁(x)ᵀ·Φ₁(y) = (Wx)ᵀ·E·Eᵀ·(Wy) = ⟨x, y⟩
//
// The notes (lemma 3.3) and the thesis (sections 4.3 and 4.4.2) print E·W·x,
// which has the product (Wx)ᵀ·Eᵀ·E·(Wy), and EᵀE is not S unless S = I.
// It is immutable and safe for use by any number of goroutines.
type DenseBasis struct {
	space   *Space
	factors *panels
}

// NewDenseBasis returns the change of basis for a space, in O(n³). The error
// wraps [ErrTooLarge] for more than [MaxDenseTerms] terms, [ErrNotSymmetric],
// or [ErrNotPositiveDefinite] as a [*PivotError].
func NewDenseBasis(sp *Space) (*DenseBasis, error) {
	s := sp.Similarities()
	if s.Len() > MaxDenseTerms {
		return nil, fmt.Errorf("%w: %d terms, a dense one has room for %d; take a sparse one", ErrTooLarge, s.Len(), MaxDenseTerms)
	}
	if err := checkSymmetric(s); err != nil {
		return nil, err
	}
	p := newPanels(s.Len())
	for i := range s.Len() {
		p.set(i, i, 1)
		cols, sims := s.Row(i)
		for k, j := range cols {
			if int(j) < i {
				p.set(i, int(j), sims[k])
			}
		}
	}
	if err := p.factor(runtime.GOMAXPROCS(0)); err != nil {
		return nil, err
	}
	return &DenseBasis{space: sp, factors: p}, nil
}

// Len returns n, the number of dimensions.
func (b *DenseBasis) Len() int { return b.factors.n }

// Coordinates returns Φ₁(x) = Eᵀ·W·x, n numbers, in O(m·n) for m coordinates of
// x. It panics where x has a term not in [0, n) or a result is not finite.
func (b *DenseBasis) Coordinates(x Vector) []float64 {
	out := make([]float64, b.Len())
	for k, i := range x.Terms {
		v := b.space.Weight(i) * x.Values[k]
		row := b.factors.panel(int(i)/edge, int(i)/edge+1)[int(i)%edge:]
		for j := range out[:i+1] {
			out[j] += v * row[edge*j]
		}
	}
	return Vector{Values: out}.checked().Values
}

// DefaultMaxNonZeros is a factor of 1.2 GB, and as much again while it is made.
const DefaultMaxNonZeros = 100_000_000

// A SparseBasis is made by a sparse E = P·F, where P is a permutation of the
// terms and F the lower triangular Cholesky factor of PᵀSP:
//
//	S = P·PᵀSP·Pᵀ = P·F·Fᵀ·Pᵀ = (P·F)·(P·F)ᵀ = E·Eᵀ
//
// It is immutable and safe for use by any number of goroutines.
type SparseBasis struct {
	space  *Space
	places []int32 // of the terms in the order
	factor *rowFactor
}

// NewSparseBasis returns the change of basis for a space. The order of the terms
// is that of least degree (George and Liu, 1989), which keeps F sparse. Time and
// memory depend on the entries of F, its fill, between those of S and n²/2. F
// may have maxNonZeros of them, 12 bytes each and 12 more while it is made; 0 is
// [DefaultMaxNonZeros]. The error wraps [ErrTooLarge], [ErrNotSymmetric], or
// [ErrNotPositiveDefinite] as a [*PivotError].
func NewSparseBasis(sp *Space, maxNonZeros int) (*SparseBasis, error) {
	return newSparseBasis(sp, minimumDegree, cmp.Or(maxNonZeros, DefaultMaxNonZeros))
}

func newSparseBasis(sp *Space, order func(*Similarities) []int32, maxNonZeros int) (*SparseBasis, error) {
	s := sp.Similarities()
	if err := checkSymmetric(s); err != nil {
		return nil, err
	}
	st := analyze(s, order(s))
	if st.nonZeros > maxNonZeros {
		return nil, fmt.Errorf("%w: it has %d entries and may have %d; allow more, or give S fewer entries", ErrTooLarge, st.nonZeros, maxNonZeros)
	}
	factor, err := factorize(s, st)
	if err != nil {
		return nil, err
	}
	return &SparseBasis{space: sp, places: st.places, factor: factor}, nil
}

// Len returns n, the number of dimensions.
func (b *SparseBasis) Len() int { return len(b.places) }

// Coordinates returns Φ₁(x) = Eᵀ·W·x, in O(n) and the entries of E in the rows
// of x.
func (b *SparseBasis) Coordinates(x Vector) Vector {
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
