package softcosine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Errors of a change of basis.
var (
	ErrNotDefinite = errors.New("the matrix S is not positive definite") // so that no E has S = E·Eᵀ
	ErrTooLarge    = errors.New("the Cholesky factor is too large")      // for the limits
)

// A PivotError says where S was found not to be positive definite: in the order
// of the factor, the terms before Term are, and together with Term they are
// not. It wraps [ErrNotDefinite].
type PivotError struct {
	Term  int32   // a number of the space
	Done  int     // how many terms come before it
	Pivot float64 // the square of what is left of its vector: negative, or 0 up to rounding
}

// Error names the term by its number.
func (e *PivotError) Error() string {
	return fmt.Sprintf("%v: it fails at term %d, after %d others (pivot %.4g)", ErrNotDefinite, e.Term, e.Done, e.Pivot)
}

// Unwrap returns [ErrNotDefinite].
func (*PivotError) Unwrap() error { return ErrNotDefinite }

// A LimitError says how far the factor came within its limits. It wraps
// [ErrTooLarge].
type LimitError struct{ Done, Terms int } // rows made, of how many

// Error says how many rows there are.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: %d of %d rows are within the limits", ErrTooLarge, e.Done, e.Terms)
}

// Unwrap returns [ErrTooLarge].
func (*LimitError) Unwrap() error { return ErrTooLarge }

// Limits bound the work on a factor.
type Limits struct {
	Entries  int // of F, 12 bytes each
	Products int // of two numbers, some 10⁹ a second
}

// A Basis changes to an orthonormal basis, in which the inner product is the
// dot product and the soft cosine measure the cosine. It has an E with S = E·Eᵀ
// (the notes, theorem 3.2; Sidorov, section 2.5; the thesis, section 4.4.2):
//
//	Φ₁(x) = Eᵀ·W·x,    Φ₁(x)ᵀ·Φ₁(y) = (Wx)ᵀ·E·Eᵀ·(Wy) = ⟨x, y⟩
//
// E = P·F is sparse: P puts the terms in an order of minimum degree, and F is
// the lower triangular Cholesky factor of PᵀSP, which has fewer entries than
// that of S. It is immutable and safe for concurrent use.
type Basis struct {
	sp     *Space
	places []int32  // of the terms in the order
	rows   []Vector // of F, by place; the last coordinate of each is on the diagonal
}

// NewBasis returns the change of basis of a space. Time and memory depend on
// the entries of F, between those of S and n²/2. The error wraps
// [ErrNotSymmetric] and names a place; is a [*PivotError] if S is not positive
// definite, a [*LimitError] if the limits are too low to say, or that of ctx.
//
// Row k of F solves F·y = the k-th column of PᵀSP, by the rows before it
// (Davis: Direct Methods for Sparse Linear Systems, 2006, section 4.7). A pivot
// within n·2⁻⁵² of 0, the rounding error (Higham: Accuracy and Stability of
// Numerical Algorithms, 2002, theorem 10.3), counts as 0.
func NewBasis(ctx context.Context, sp *Space, limits Limits) (*Basis, error) {
	s, n := sp.s, sp.Len()
	if err := checkSymmetric(s); err != nil {
		return nil, err
	}
	order, err := minimumDegree(ctx, s, limits)
	if err != nil {
		return nil, err
	}
	b := &Basis{sp: sp, places: make([]int32, n), rows: make([]Vector, 0, n)}
	for k, i := range order {
		b.places[i] = int32(k)
	}
	var (
		row     []int32                           // columns of row k of F, without k
		y       = make([]float64, n)              // row k of F
		reached = make([]int32, n)                // the last row with the column, from 1
		parents = slices.Repeat([]int32{none}, n) // the first row below the diagonal with the column
		entries = 0
		work    = 0
	)
	for k, i := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// A column of row k is one of PᵀSP, or the parent of one: F fills in.
		row = row[:0]
		cols, sims := s.Row(int(i))
		for l, term := range cols {
			if int(b.places[term]) > k {
				continue
			}
			y[b.places[term]] = sims[l]
			for j := b.places[term]; int(j) != k && int(reached[j]) != k+1; j = parents[j] {
				reached[j] = int32(k) + 1
				row = append(row, j)
				if parents[j] == none {
					parents[j] = int32(k)
				}
			}
		}
		slices.Sort(row)
		entries += len(row) + 1
		if entries > limits.Entries {
			return nil, &LimitError{Done: k, Terms: n}
		}
		f := Vector{Terms: make([]int32, 0, len(row)+1), Values: make([]float64, 0, len(row)+1)}
		pivot := 1.0
		for _, j := range row {
			above := b.rows[j]
			last := len(above.Terms) - 1
			v := (y[j] - dense(above.Terms[:last], above.Values[:last], y)) / above.Values[last]
			y[j] = v
			pivot -= v * v
			work += last
			if v != 0 {
				f.Terms, f.Values = append(f.Terms, j), append(f.Values, v)
			}
		}
		if work > limits.Products {
			return nil, &LimitError{Done: k, Terms: n}
		}
		if !(pivot > float64(n)*0x1p-52) { // so written that NaN fails
			return nil, &PivotError{Term: i, Done: k, Pivot: pivot}
		}
		f.Terms, f.Values = append(f.Terms, int32(k)), append(f.Values, math.Sqrt(pivot))
		b.rows = append(b.rows, f)
		for _, j := range row {
			y[j] = 0
		}
	}
	return b, nil
}

const none = -1

// dense returns the dot product of a sparse row with a dense one.
func dense(cols []int32, values, y []float64) float64 {
	sum := 0.0
	values = values[:len(cols)]
	for l, j := range cols {
		sum += values[l] * y[j]
	}
	return sum
}

// checkSymmetric names the first s_ij ≠ s_ji.
func checkSymmetric(s *Similarities) error {
	for i := range s.Len() {
		cols, sims := s.Row(i)
		for k, j := range cols {
			if back := s.At(int(j), i); back != sims[k] {
				return fmt.Errorf("%w: s(%d, %d) = %v and s(%d, %d) = %v", ErrNotSymmetric, i, j, sims[k], j, i, back)
			}
		}
	}
	return nil
}

// NonZeros returns the number of entries of E that are not 0.
func (b *Basis) NonZeros() int {
	sum := 0
	for _, row := range b.rows {
		sum += row.Len()
	}
	return sum
}

// Row returns row i of E, the coordinates of term i in the orthonormal basis,
// read-only. It panics unless 0 <= i < n.
func (b *Basis) Row(i int32) Vector { return b.rows[b.places[i]] }

// Map returns Φ₁(x) = Eᵀ·W·x, in time in proportion to the entries of E in the
// rows of x. It panics if a coordinate is not finite.
func (b *Basis) Map(x Vector) Vector {
	sum, wx := map[int32]float64{}, b.sp.Weighted(x)
	for k, i := range wx.Terms {
		row := b.Row(i)
		for l, j := range row.Terms {
			sum[j] += wx.Values[k] * row.Values[l]
		}
	}
	return NewVector(sum)
}

// DenseBasis returns the lower triangular E with S = E·Eᵀ and a positive
// diagonal, for a matrix without many zeros: n²/2 numbers, in O(n³) (the notes,
// theorem 3.2). Coordinates are EᵀWx. The error wraps [ErrNotSymmetric] and
// names a place, or [ErrNotDefinite] without one: use [NewBasis] to find it.
func DenseBasis(s *Similarities) (*mat.TriDense, error) {
	if err := checkSymmetric(s); err != nil {
		return nil, err
	}
	e := new(mat.TriDense)
	n := s.Len()
	if n == 0 {
		return e, nil
	}
	full := mat.NewSymDense(n, nil)
	for i := range n {
		full.SetSym(i, i, 1)
		cols, sims := s.Row(i)
		for k, j := range cols {
			full.SetSym(i, int(j), sims[k])
		}
	}
	var c mat.Cholesky
	if !c.Factorize(full) {
		return nil, ErrNotDefinite
	}
	c.LTo(e)
	return e, nil
}
