package softcosine

import (
	"fmt"
	"slices"
)

// DefaultMaxNonZeros is a factor of 1.2 GB, and as much again while it is made.
const DefaultMaxNonZeros = 100_000_000

// BasisOptions are the settings of [NewSparseBasis].
type BasisOptions struct {
	// Ordering is the order in which terms are orthonormalized; the zero value
	// is [MinimumDegree].
	Ordering Ordering
	// MaxNonZeros is the largest number of entries of the factor, each of which
	// takes 12 bytes and 12 more while it is made; 0 is [DefaultMaxNonZeros].
	// They are counted before they are allocated.
	MaxNonZeros int
}

// A SparseBasis changes to an orthonormal basis by a sparse E = P·F, where P
// is a permutation of the terms and F the lower triangular Cholesky factor
// of PᵀSP:
//
//	S = P·PᵀSP·Pᵀ = P·F·Fᵀ·Pᵀ = (P·F)·(P·F)ᵀ = E·Eᵀ
//
// E is a row permutation of a triangular matrix and not triangular itself.
// It is immutable and safe for use by any number of goroutines.
type SparseBasis struct {
	space  *Space
	order  []int32
	places []int32
	factor *rowFactor
}

// NewSparseBasis returns the change of basis for a space. Time and memory
// depend on the entries of F, its fill, between those of S and n²/2. The error
// wraps [ErrTooLarge] where F has more than allowed, [ErrNotSymmetric], or
// [ErrNotPositiveDefinite] as a [*PivotError]. It panics with an unknown
// ordering.
func NewSparseBasis(sp *Space, opts BasisOptions) (*SparseBasis, error) {
	s := sp.Similarities()
	if err := checkSymmetric(s); err != nil {
		return nil, err
	}
	st := analyze(s, Order(s, opts.Ordering))
	limit := opts.MaxNonZeros
	if limit == 0 {
		limit = DefaultMaxNonZeros
	}
	if st.nonZeros > limit {
		return nil, fmt.Errorf("%w: it has %d entries by %v and may have %d; allow more, or give S fewer entries",
			ErrTooLarge, st.nonZeros, opts.Ordering, limit)
	}
	factor, err := factorize(s, st)
	if err != nil {
		return nil, err
	}
	return &SparseBasis{space: sp, order: st.order, places: st.places, factor: factor}, nil
}

// CountNonZeros returns how many entries the factor F of a symmetric S has by
// an ordering, in O(n) memory and time in proportion to the result.
func CountNonZeros(s *Similarities, ordering Ordering) (int, error) {
	if err := checkSymmetric(s); err != nil {
		return 0, err
	}
	return analyze(s, Order(s, ordering)).nonZeros, nil
}

// Len returns n, the number of dimensions.
func (b *SparseBasis) Len() int { return len(b.order) }

// NonZeros returns the number of entries of F and of E.
func (b *SparseBasis) NonZeros() int { return len(b.factor.cols) }

// Order returns P: the k-th vector of the orthonormal basis is made of those of
// the first k terms returned.
func (b *SparseBasis) Order() []int32 { return slices.Clone(b.order) }

// Row returns row i of E, the coordinates of term i's vector in the orthonormal
// basis. It panics unless 0 <= i < n.
func (b *SparseBasis) Row(i int32) Vector {
	cols, values := b.factor.row(int(b.places[i]))
	return Vector{Terms: cols, Values: values}.Scaled(1) // a copy without zeros
}

// Coordinates returns Φ₁(x) = Eᵀ·W·x, over the numbers of the orthonormal
// basis's vectors, in O(n) and the entries of E in the rows of x. It panics
// where x has a term not in [0, n) or a coordinate is not finite.
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
