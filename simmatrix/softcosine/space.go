// Package softcosine holds the soft vector space model: documents as vectors of
// term frequencies x, a diagonal matrix W of term weights, and a matrix S of
// term similarities. They define
//
//	⟨x, y⟩    = (Wx)ᵀ·S·(Wy)                              inner product
//	hard(x,y) = ⟨x, y⟩ / (‖Wx‖·‖Wy‖)                      length-normalized
//	soft(x,y) = ⟨x, y⟩ / √⟨x, x⟩ / √⟨y, y⟩                soft cosine measure
//	cos(x,y)  = (Wx)ᵀ(Wy) / (‖Wx‖·‖Wy‖)                   cosine
//
// If S is the identity, hard and soft are the cosine.
//
// # Conventions
//
// Terms are numbers from 0 to n-1, assigned by a [Vocabulary]. A [Vector], a
// [Similarities] and a [Space] are immutable and safe for concurrent use.
// Functions panic for a term not in [0, n).
//
// The inner product takes any S. The soft cosine requires that no ⟨x, x⟩ is
// negative; otherwise it returns [ErrNotReal]. It is in [-1, 1] if S is
// positive semi-definite and symmetric. A norm of 0 gives 0. Overflow of a
// float64 gives ±Inf or NaN, and a panic in a [Vector].
//
// # Stores
//
// A store of vectors that does not know S finds what a [Space] would, given the
// right vectors in place of documents and query:
//
//	a store that finds the largest  finds the largest  documents               query
//	dot products (theorem 4.1)      inner products     [Space.Weighted]        [Space.DotQuery]
//	dot products (theorem 4.2)      soft cosines       [Space.DotDocument]     [Space.DotQuery]
//	cosines (theorem 4.3)           soft cosines       [Space.CosineDocument]  [Space.CosineQuery]
//	(Wx)ᵀ(Wy)/‖Wy‖, as an engine    length-normalized    as they are             [Space.Expand]
//
// In the first and last, S may change while the documents stay. Other ways are
// [NewBasis] and [NewPhi2].
//
// # Sources
//
// Sidorov, Gelbukh, Gómez-Adorno, Pinto: Soft Similarity and Soft Cosine
// Measure, Computación y Sistemas 18(3), 2014 (called Sidorov here). Novotný:
// Vector Space Representations in Information Retrieval, Masaryk University,
// 2017 (the thesis). Novotný: Implementation Notes for the Soft Cosine Measure,
// CIKM 2018 (the notes).
//
// The package has no I/O.
package softcosine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Errors of the package, wrapped by more specific ones.
var (
	ErrWeights      = errors.New("bad term weights")
	ErrWeighting    = errors.New("bad term weighting")
	ErrNotReal      = errors.New("the norm is not real: ⟨x, x⟩ is negative") // for an S that is not positive semi-definite
	ErrNegative     = errors.New("negative entries")                         // in S or a document
	ErrPairs        = errors.New("no features of pairs")                     // that are real and correct
	ErrNotSymmetric = errors.New("the matrix S is not symmetric")
)

// A Space is the soft vector space model (ℝⁿ, W, S) of the notes, definition
// 3.1. It is immutable and safe for concurrent use.
type Space struct {
	weights []float64 // the diagonal of W
	s       *Similarities
	scratch sync.Pool // of *[]float64 over terms, all 0
}

// NewSpace returns the space of the terms 0 to n-1 with the diagonal of W. The
// error wraps [ErrWeights] if there are not as many weights as terms in S, or
// one is negative or not finite.
func NewSpace(weights []float64, s *Similarities) (*Space, error) {
	if len(weights) != s.Len() {
		return nil, fmt.Errorf("%w: %d for %d terms", ErrWeights, len(weights), s.Len())
	}
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) { // so written that NaN fails
			return nil, fmt.Errorf("%w: %v of term %d is not in [0, ∞)", ErrWeights, w, i)
		}
	}
	sp := &Space{weights: slices.Clone(weights), s: s}
	sp.scratch.New = func() any { return new(make([]float64, s.Len())) }
	return sp, nil
}

// Len returns n, the number of terms.
func (sp *Space) Len() int { return len(sp.weights) }

// Weight returns w_i. It panics unless 0 <= i < n.
func (sp *Space) Weight(i int32) float64 { return sp.weights[i] }

// Similarities returns S.
func (sp *Space) Similarities() *Similarities { return sp.s }

// Weighted returns Wx, without coordinates that are 0 or too small for a
// float64. It panics if one is too large.
func (sp *Space) Weighted(x Vector) Vector { return sp.weigh(x).checked() }

// weigh is Weighted without the panic.
func (sp *Space) weigh(x Vector) Vector {
	return x.mapped(func(term int32, v float64) float64 { return sp.weights[term] * v })
}

// InnerProduct returns ⟨x, y⟩ = (Wx)ᵀ·S·(Wy), in O(m·C) for m coordinates of x
// and C entries in a row of S, by algorithm 1 of the notes: the sum of
// w_i·x_i·s_ij·w_j·y_j over i with x_i ≠ 0 and j with s_ij ≠ 0, with Wy in a
// dense array.
func (sp *Space) InnerProduct(x, y Vector) float64 {
	wy := sp.scratch.Get().(*[]float64)
	for l, j := range y.Terms {
		(*wy)[j] = sp.weights[j] * y.Values[l]
	}
	r := 0.0
	for k, i := range x.Terms {
		row := (*wy)[i] // s_ii = 1
		cols, sims := sp.s.Row(int(i))
		for l, j := range cols {
			row += sims[l] * (*wy)[j]
		}
		r += sp.weights[i] * x.Values[k] * row
	}
	for _, j := range y.Terms {
		(*wy)[j] = 0
	}
	sp.scratch.Put(wy)
	return r
}

// HardNorm returns ‖Wx‖.
func (sp *Space) HardNorm(x Vector) float64 { return sp.weigh(x).Norm() }

// roundingShare of ‖Wx‖² is how far ⟨x, x⟩ may be below 0 and still count as 0:
// some 10,000 products of 53 bits are added.
const roundingShare = 1e-12

// SoftNorm returns √⟨x, x⟩, at least 0. The error wraps [ErrNotReal] if ⟨x, x⟩
// is negative by more than 10⁻¹²·‖Wx‖², the rounding error.
func (sp *Space) SoftNorm(x Vector) (float64, error) {
	square, hard := sp.InnerProduct(x, x), sp.HardNorm(x)
	if square+roundingShare*hard*hard < 0 {
		return 0, ErrNotReal
	}
	return math.Sqrt(max(square, 0)), nil
}

// Hard returns the length-normalized similarity ⟨x, y⟩ / (‖Wx‖·‖Wy‖), 0 if a
// norm is 0. It takes any S and is in [-‖S‖₂, ‖S‖₂].
func (sp *Space) Hard(x, y Vector) float64 {
	return quotient(sp.InnerProduct(x, y), sp.HardNorm(x), sp.HardNorm(y))
}

// Soft returns the soft cosine measure ⟨x, y⟩ / (√⟨x, x⟩·√⟨y, y⟩), 0 if a norm
// is 0 (Sidorov, eq. 14; the notes, remark to lemma 3.3). It is not clamped.
// Errors are those of [Space.SoftNorm].
func (sp *Space) Soft(x, y Vector) (float64, error) {
	nx, err := sp.SoftNorm(x)
	if err != nil {
		return 0, err
	}
	ny, err := sp.SoftNorm(y)
	if err != nil {
		return 0, err
	}
	return quotient(sp.InnerProduct(x, y), nx, ny), nil
}

// Cosine returns (Wx)ᵀ(Wy) / (‖Wx‖·‖Wy‖), 0 if a norm is 0.
func (sp *Space) Cosine(x, y Vector) float64 {
	u, v := sp.weigh(x), sp.weigh(y)
	return quotient(u.Dot(v), u.Norm(), v.Norm())
}

// quotient returns a / (b·c), 0 if b or c is 0.
func quotient(a, b, c float64) float64 {
	if b == 0 || c == 0 {
		return 0
	}
	return a / b / c // not b·c, which may overflow
}
