package softcosine

import (
	"fmt"
	"math"
	"slices"
)

// Pairs maps vectors over n terms to vectors over the n + nnz pairs of similar
// terms (i, j), whose dot product and cosine need no S. Pairs are numbered row
// by row, (i, i) before the others of row i. The feature of a pair is
//
//	x_ij = √k_ij · (w_i·x_i + w_j·x_j) / 2
//
// with k_ij of [NewPairs] or [NewPhi2]. It is immutable.
type Pairs struct {
	sp         *Space
	transposed *Similarities
	diagonal   []float64 // √k_ii
	factor     float64   // k_ij = factor·s_ij for i ≠ j
}

// NewPairs returns the features of Sidorov, eq. 15, as printed: k_ij = s_ij.
// Their cosine is soft_cosine₂ (eq. 16), which is not the soft cosine measure:
// for a symmetric S,
//
//	x'ᵀy' = ½·(⟨x, y⟩ + Σ_i w_i²·x_i·y_i·Σ_j s_ij)
//
// The error wraps [ErrPairs] and names the first negative similarity.
func NewPairs(sp *Space) (*Pairs, error) {
	p, _, err := newPairs(sp, 1)
	return p, err
}

// NewPhi2 returns the corrected features, Sidorov, eq. 18 to 20, and Φ₂ of the
// thesis, eq. 4.4:
//
//	k_ij = 2·c_ij,  c_ii = (1 − Σ_{k≠i} s_ik) / 2,  c_ij = s_ij for i ≠ j
//
// for which x'ᵀy' = ⟨x, y⟩, so that their cosine is the soft cosine measure. S
// must be symmetric, not negative, and weakly diagonally dominant, Σ_{k≠i} s_ik
// ≤ 1. The error wraps [ErrPairs], and perhaps [ErrNotSymmetric].
func NewPhi2(sp *Space) (*Pairs, error) {
	if err := checkSymmetric(sp.s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPairs, err)
	}
	p, sums, err := newPairs(sp, 2)
	if err != nil {
		return nil, err
	}
	for i, sum := range sums {
		cols, _ := sp.s.Row(i)
		rounding := 0x1p-52 * float64(len(cols))
		if sum > 1+rounding {
			return nil, fmt.Errorf("%w: c(%d, %d) = %.4g is negative: the similarities of term %d to others add up to %.4g, more than 1",
				ErrPairs, i, i, (1-sum)/2, i, sum)
		}
		p.diagonal[i] = math.Sqrt(max(0, 1-sum))
	}
	return p, nil
}

// newPairs returns pairs with k_ii = 1, and the sums of the rows without s_ii.
func newPairs(sp *Space, factor float64) (p *Pairs, sums []float64, err error) {
	s := sp.s
	if int64(s.Len())+int64(s.NonZeros()) > math.MaxInt32 {
		return nil, nil, fmt.Errorf("%w: %d terms and %d similarities are more than 2³¹-1 pairs", ErrPairs, s.Len(), s.NonZeros())
	}
	sums = make([]float64, s.Len())
	for i := range sums {
		cols, sims := s.Row(i)
		for k, sim := range sims {
			if sim < 0 {
				return nil, nil, fmt.Errorf("%w: s(%d, %d) = %v is negative", ErrPairs, i, cols[k], sim)
			}
			sums[i] += sim
		}
	}
	return &Pairs{sp: sp, transposed: s.Transposed(), diagonal: slices.Repeat([]float64{1}, s.Len()), factor: factor}, sums, nil
}

// Map returns the features of x, in O(m·C·log(m·C)) for m coordinates and C
// entries in a row or column of S. It panics if a coordinate of Wx or of the
// result is not finite.
func (p *Pairs) Map(x Vector) Vector {
	s, wx := p.sp.s, p.sp.Weighted(x)
	features := make(map[int32]float64, 4*wx.Len())
	for k, i := range wx.Terms {
		half := wx.Values[k] / 2
		features[int32(s.offsets[i])+i] += p.diagonal[i] * wx.Values[k] //nolint:gosec // newPairs refuses more pairs than an int32 counts
		cols, sims := s.Row(int(i))
		for l := range cols { // the pairs (i, j)
			features[int32(s.offsets[i]+l)+i+1] += math.Sqrt(p.factor*sims[l]) * half //nolint:gosec // newPairs refuses more pairs than an int32 counts
		}
		rows, sims := p.transposed.Row(int(i))
		for l, j := range rows { // the pairs (j, i)
			cols, _ := s.Row(int(j))
			place, _ := slices.BinarySearch(cols, i)
			features[int32(s.offsets[j]+place)+j+1] += math.Sqrt(p.factor*sims[l]) * half //nolint:gosec // newPairs refuses more pairs than an int32 counts
		}
	}
	return NewVector(features)
}

// Cosine returns the cosine of the features of x and y, 0 if a norm is 0:
// soft_cosine₂ with [NewPairs], the soft cosine measure with [NewPhi2].
func (p *Pairs) Cosine(x, y Vector) float64 {
	a, b := p.Map(x), p.Map(y)
	return quotient(a.Dot(b), a.Norm(), b.Norm())
}
