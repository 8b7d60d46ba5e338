package softcosine

import (
	"fmt"
	"runtime"

	"gonum.org/v1/gonum/mat"
)

// MaxDenseTerms is the largest n of a [DenseBasis]. It takes 4·n² bytes,
// here 400 MB, and n³/6 multiplications, here those of about ten seconds.
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
// Sidorov's x·E, for rows x, is right.
//
// A DenseBasis is immutable and safe for use by any number of goroutines.
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
