package softcosine

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/mat"
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

// Matrix returns E. It takes 8·n² bytes more.
func (b *DenseBasis) Matrix() mat.Triangular { return b.factors.lower() }

// DefaultMaxNonZeros is a factor of 1.2 GB, and as much again while it is made.
const DefaultMaxNonZeros = 100_000_000

// BasisOptions are the settings of [NewSparseBasis].
type BasisOptions struct {
	Ordering    Ordering // in which terms are orthonormalized
	MaxNonZeros int      // most entries of the factor, 12 bytes each and 12 more while it is made; 0 is [DefaultMaxNonZeros]
}

// A SparseBasis is made by a sparse E = P·F, where P is a permutation of the
// terms and F the lower triangular Cholesky factor of PᵀSP:
//
//	S = P·PᵀSP·Pᵀ = P·F·Fᵀ·Pᵀ = (P·F)·(P·F)ᵀ = E·Eᵀ
//
// It is immutable and safe for use by any number of goroutines.
type SparseBasis struct {
	space  *Space
	order  []int32
	places []int32
	factor *rowFactor
}

// NewSparseBasis returns the change of basis for a space. Time and memory
// depend on the entries of F, its fill, between those of S and n²/2. The error
// wraps [ErrTooLarge], [ErrNotSymmetric], or [ErrNotPositiveDefinite] as a
// [*PivotError]. It panics with an unknown ordering.
func NewSparseBasis(sp *Space, opts BasisOptions) (*SparseBasis, error) {
	s := sp.Similarities()
	if err := checkSymmetric(s); err != nil {
		return nil, err
	}
	st := analyze(s, Order(s, opts.Ordering))
	limit := cmp.Or(opts.MaxNonZeros, DefaultMaxNonZeros)
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

// Order returns P: vector k of the basis is made of the first k terms of it.
func (b *SparseBasis) Order() []int32 { return slices.Clone(b.order) }

// Row returns row i of E, the coordinates of term i, which is in [0, n).
func (b *SparseBasis) Row(i int32) Vector {
	cols, values := b.factor.row(int(b.places[i]))
	return Vector{Terms: cols, Values: values}.Scaled(1) // a copy without zeros
}

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

// Orthonormalize returns the lower triangular E with positive diagonal and S =
// E·Eᵀ by the algorithm of Sidorov, section 2.5, row by row:
//
//	Σ_{i≤j} e_ji·x_i = s_jk    for j < k           (eq. 23)
//	x_k = √(1 − Σ_{i<k} x_i²)                      (eq. 25)
//
// [Cholesky] makes the same in a fraction of the time, with the same errors.
func Orthonormalize(s *Similarities) (*mat.TriDense, error) {
	if !s.Symmetric() {
		return nil, fmt.Errorf("orthonormalize: %w", ErrNotSymmetric)
	}
	n := s.Len()
	if n == 0 {
		return new(mat.TriDense), nil
	}
	e := mat.NewTriDense(n, mat.Lower, nil)
	raw := e.RawTriangular()
	for k := range n {
		row := raw.Data[k*raw.Stride : k*raw.Stride+k+1]
		cols, sims := s.Row(k)
		for l := 0; l < len(cols) && int(cols[l]) < k; l++ {
			row[cols[l]] = sims[l]
		}
		square := 1.0 // of what is left of the vector's length
		for j := range k {
			known := raw.Data[j*raw.Stride : j*raw.Stride+j+1]
			rest := row[j]
			for i, v := range known[:j] {
				rest -= v * row[i]
			}
			row[j] = rest / known[j]
			square -= row[j] * row[j]
		}
		if !(square > pivotFloor(n, 1)) { // written so that NaN fails
			return nil, &PivotError{Row: k, Pivot: square}
		}
		row[k] = math.Sqrt(square)
	}
	return e, nil
}
