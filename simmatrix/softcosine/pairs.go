package softcosine

import (
	"fmt"
	"math"
	"slices"
)

// A Phi2 maps vectors over n terms to vectors over the n + nnz pairs of similar
// terms (i, j), in which the cosine needs no S. Pairs are numbered row by row,
// (i, i) before the others of row i. The feature of a pair is
//
//	x_ij = √k_ij · (w_i·x_i + w_j·x_j) / 2
//
// It is immutable.
type Phi2 struct {
	sp       *Space
	diagonal []float64 // √k_ii
	entries  []float64 // √k_ij, by the place of s_ij in S
}

// NewPhi2 returns the corrected features, Sidorov, eq. 18 to 20, thesis, 4.4:
//
//	k_ij = 2·c_ij,  c_ii = (1 − Σ_{k≠i} s_ik) / 2,  c_ij = s_ij for i ≠ j
//
// for which x'ᵀy' = ⟨x, y⟩, so that their cosine is the soft cosine measure. S
// must be symmetric, not negative, and weakly diagonally dominant, Σ_{k≠i} s_ik
// ≤ 1. The error wraps [ErrPairs], and perhaps [ErrNotSymmetric].
func NewPhi2(sp *Space) (*Phi2, error) {
	s := sp.s
	if !s.Symmetric() {
		return nil, fmt.Errorf("%w: %w", ErrPairs, ErrNotSymmetric)
	}
	if int64(s.Len())+int64(s.NonZeros()) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d terms and %d similarities are more than 2³¹-1 pairs", ErrPairs, s.Len(), s.NonZeros())
	}
	p := &Phi2{sp: sp}
	for i := range s.Len() {
		cols, sims := s.Row(i)
		sum := 0.0
		for k, sim := range sims {
			if sim < 0 {
				return nil, fmt.Errorf("%w: s(%d, %d) = %v is negative", ErrPairs, i, cols[k], sim)
			}
			sum += sim
			p.entries = append(p.entries, math.Sqrt(2*sim))
		}
		rounding := 0x1p-52 * float64(len(sims))
		if sum > 1+rounding {
			return nil, fmt.Errorf("%w: c(%d, %d) = %.4g is negative: the similarities of term %d to others add up to %.4g, more than 1",
				ErrPairs, i, i, (1-sum)/2, i, sum)
		}
		p.diagonal = append(p.diagonal, math.Sqrt(max(0, 1-sum)))
	}
	return p, nil
}

// Map returns the features of x, in O(m·C·log(m·C)) for m coordinates and C
// entries in a row of S. It panics if a coordinate of Wx or of the result is
// not finite.
func (p *Phi2) Map(x Vector) Vector {
	s, wx := p.sp.s, p.sp.Weighted(x)
	features := make(map[int32]float64, 4*wx.Len())
	for k, i := range wx.Terms {
		half := wx.Values[k] / 2
		features[int32(s.offsets[i])+i] += p.diagonal[i] * wx.Values[k] //nolint:gosec // NewPhi2 refuses more pairs than an int32 counts
		cols, _ := s.Row(int(i))
		for l, j := range cols {
			place, _ := slices.BinarySearch(s.cols[s.offsets[j]:s.offsets[j+1]], i)
			at, transposed := s.offsets[i]+l, s.offsets[j]+place
			features[int32(at)+i+1] += p.entries[at] * half                 //nolint:gosec // NewPhi2 refuses more pairs than an int32 counts
			features[int32(transposed)+j+1] += p.entries[transposed] * half //nolint:gosec // NewPhi2 refuses more pairs than an int32 counts
		}
	}
	return NewVector(features)
}
