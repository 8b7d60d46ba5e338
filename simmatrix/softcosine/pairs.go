package softcosine

import (
	"fmt"
	"math"
	"slices"
)

// Pairs maps vectors over n terms to vectors over the n + nnz pairs of terms
// (i, j) that are similar, in which the cosine needs no S. They are numbered
// row by row, (i, i) before the others of row i. The feature of a pair is
//
//	x_ij = √k_ij · (w_i·x_i + w_j·x_j) / 2
//
// with k_ij of [NewPairs] or [NewPhi2]. It is immutable.
type Pairs struct {
	sp       *Space
	diagonal []float64 // √k_ii
	entries  []float64 // √k_ij by the place of s_ij in S
	byColumn columns
}

// NewPairs returns the features of Sidorov, eq. 15, as printed: k_ij = s_ij.
// Their cosine is soft_cosine₂ (eq. 16), which is not the soft cosine measure:
// the coefficient of x_i·y_i has the sum of row i of S as an extra summand.
// [NewPhi2] has the corrected form. S need not be symmetric; the error wraps
// [ErrPairs] and names the first negative similarity.
func NewPairs(sp *Space) (*Pairs, error) {
	p, err := newPairs(sp, 1)
	if err != nil {
		return nil, err
	}
	copy(p.diagonal, slices.Repeat([]float64{1}, len(p.diagonal)))
	return p, nil
}

// NewPhi2 returns the corrected features, Sidorov, eq. 18 to 20, thesis, 4.4:
//
//	k_ij = 2·c_ij,  c_ii = (1 − Σ_{k≠i} s_ik) / 2,  c_ij = s_ij for i ≠ j
//
// for which x'ᵀy' = ⟨x, y⟩, so that the cosine is the soft cosine measure. S
// has to be symmetric, not negative, and weakly diagonally dominant, Σ_{k≠i}
// s_ik ≤
// 1. The error wraps [ErrPairs], and perhaps [ErrNotSymmetric].
func NewPhi2(sp *Space) (*Pairs, error) {
	if !sp.s.Symmetric() {
		return nil, fmt.Errorf("%w: %w", ErrPairs, ErrNotSymmetric)
	}
	p, err := newPairs(sp, 2)
	if err != nil {
		return nil, err
	}
	for i := range p.diagonal {
		_, sims := sp.s.Row(i)
		sum := 0.0
		for _, sim := range sims {
			sum += sim
		}
		rounding := 0x1p-52 * float64(len(sims))
		if sum > 1+rounding {
			return nil, fmt.Errorf("%w: c(%d, %d) = %.4g is negative: the similarities of term %d to others add up to %.4g, more than 1",
				ErrPairs, i, i, (1-sum)/2, i, sum)
		}
		p.diagonal[i] = math.Sqrt(max(0, 1-sum))
	}
	return p, nil
}

// newPairs returns the features with k_ij = factor·s_ij off the diagonal.
func newPairs(sp *Space, factor float64) (*Pairs, error) {
	s := sp.s
	if int64(s.Len())+int64(s.NonZeros()) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d terms and %d similarities are more than 2³¹-1 pairs", ErrPairs, s.Len(), s.NonZeros())
	}
	p := &Pairs{sp: sp, diagonal: make([]float64, s.Len()), entries: make([]float64, s.NonZeros())}
	for i := range s.Len() {
		cols, sims := s.Row(i)
		for k, sim := range sims {
			if sim < 0 {
				return nil, fmt.Errorf("%w: s(%d, %d) = %v is negative", ErrPairs, i, cols[k], sim)
			}
			p.entries[s.offsets[i]+k] = math.Sqrt(factor * sim)
		}
	}
	p.byColumn = s.columns()
	return p, nil
}

// Len returns the number of features, n + nnz.
func (p *Pairs) Len() int { return len(p.diagonal) + len(p.entries) }

func (p *Pairs) first(i int) int { return i + p.sp.s.offsets[i] }

// Map returns the features of x, a vector over 0 to p.Len()-1, in
// O(m·C·log(m·C)) for m coordinates and C entries in rows and columns of S. It
// panics where a coordinate of Wx or of the result is not finite.
func (p *Pairs) Map(x Vector) Vector {
	s, wx := p.sp.s, p.sp.Weighted(x)
	features := make(map[int32]float64, 4*wx.Len())
	for k, i := range wx.Terms {
		half := wx.Values[k] / 2
		features[int32(p.first(int(i)))] += p.diagonal[i] * wx.Values[k] //nolint:gosec // newPairs has seen to it
		for at := s.offsets[i]; at < s.offsets[i+1]; at++ {              // the pairs (i, j)
			features[int32(at+int(i)+1)] += p.entries[at] * half //nolint:gosec // as above
		}
		for l := p.byColumn.offsets[i]; l < p.byColumn.offsets[i+1]; l++ { // the pairs (j, i)
			at, j := p.byColumn.places[l], p.byColumn.rows[l]
			features[int32(at+int(j)+1)] += p.entries[at] * half //nolint:gosec // as above
		}
	}
	return NewVector(features)
}

// Cosine returns the cosine of the features of x and y, 0 where a norm is 0.
func (p *Pairs) Cosine(x, y Vector) float64 {
	a, b := p.Map(x), p.Map(y)
	return quotient(a.Dot(b), a.Norm(), b.Norm())
}
