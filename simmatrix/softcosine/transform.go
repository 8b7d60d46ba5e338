package softcosine

import (
	"fmt"
	"math"
)

// DotQuery returns x' = Sᵀ·(Wx), for which x'ᵀ(Wy) = ⟨x, y⟩ for all y (the
// notes, theorem 4.1). With it a store of dot products finds the largest inner
// products, with documents stored as [Space.Weighted], and the largest soft
// cosines, with [Space.DotDocument] (theorem 4.2).
func (sp *Space) DotQuery(x Vector) Vector {
	sum, wx := map[int32]float64{}, sp.weigh(x)
	for k, i := range wx.Terms {
		v := wx.Values[k]
		sum[i] += v
		cols, sims := sp.s.Row(int(i))
		for l, j := range cols {
			sum[j] += v * sims[l]
		}
	}
	return NewVector(sum)
}

// DotDocument returns y' = Wy / √⟨y, y⟩, for which x'ᵀy' = √⟨x, x⟩·soft(x, y)
// with x' of [Space.DotQuery] (the notes, theorem 4.2). A document of norm 0
// becomes the zero vector. The error wraps [ErrNotReal] as in [Space.SoftNorm].
func (sp *Space) DotDocument(y Vector) (Vector, error) {
	norm, err := sp.SoftNorm(y)
	if err != nil || norm == 0 {
		return Vector{}, err
	}
	return sp.weigh(y).mapped(func(_ int32, v float64) float64 { return v / norm }).checked(), nil
}

// CosineQuery returns the vector of n+1 coordinates, of length 1,
//
//	x' = [ Sᵀ·(Wx) / ‖Sᵀ·(Wx)‖ , 0 ]
//
// for a store of cosines with documents stored as [Space.CosineDocument] (the
// notes, theorem 4.3); the zero vector if Sᵀ(Wx) = 0.
func (sp *Space) CosineQuery(x Vector) Vector {
	q := sp.DotQuery(x)
	norm := q.Norm()
	if norm == 0 {
		return Vector{}
	}
	return q.mapped(func(_ int32, v float64) float64 { return v / norm }).checked()
}

// CosineDocument returns the vector of n+1 coordinates, of length 1,
//
//	y'' = [ y' , √(1 − y'ᵀy') ]    with y' = Wy / √⟨y, y⟩
//
// With x' of [Space.CosineQuery] the cosine is soft(x, y)·√⟨x, x⟩ / ‖Sᵀ·(Wx)‖,
// so that cosines order documents as the soft cosine measure does (the notes,
// theorem 4.3). A document without a weighted term becomes [0, 1], whose cosine
// with every query is 0. The error wraps [ErrNegative] if S or y is negative.
func (sp *Space) CosineDocument(y Vector) (Vector, error) {
	if !sp.s.NonNegative() {
		return Vector{}, fmt.Errorf("%w in S, so that ⟨y, y⟩ may lie under ‖Wy‖²", ErrNegative)
	}
	for k, v := range y.Values {
		if v < 0 {
			return Vector{}, fmt.Errorf("%w in the document: %v of term %d", ErrNegative, v, y.Terms[k])
		}
	}
	scaled, err := sp.DotDocument(y)
	if err != nil {
		return Vector{}, err
	}
	square := scaled.Dot(scaled)
	if rest := 1 - square; rest > 0 { // below 0 it is a rounding error.
		scaled.Terms = append(scaled.Terms, int32(sp.Len())) //nolint:gosec // n is an int32
		scaled.Values = append(scaled.Values, math.Sqrt(rest))
	}
	return scaled, nil
}

// Expand returns x' = W⁻¹·((Wx)ᵀ·S)ᵀ, the expanded query, for which (Wx')ᵀ(Wy)
// = ⟨x, y⟩ for all y: an engine that scores (Wx')ᵀ(Wy)/‖Wy‖ ranks by the
// length-normalized measure. It omits terms of weight 0.
func (sp *Space) Expand(x Vector) Vector {
	return sp.DotQuery(x).mapped(func(term int32, v float64) float64 {
		if sp.weights[term] == 0 {
			return 0
		}
		return v / sp.weights[term]
	}).checked()
}
