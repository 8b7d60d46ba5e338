// Package softcosine holds the soft vector space model: documents that are
// vectors of term frequencies x, a diagonal matrix W of term weights, and a
// matrix S of term similarities, of which follow
//
//	⟨x, y⟩    = (Wx)ᵀ·S·(Wy)                              inner product
//	hard(x,y) = ⟨x, y⟩ / (‖Wx‖·‖Wy‖)                      hard-normalized
//	soft(x,y) = ⟨x, y⟩ / √⟨x, x⟩ / √⟨y, y⟩                soft cosine measure
//	cos(x,y)  = (Wx)ᵀ(Wy) / (‖Wx‖·‖Wy‖)                   cosine
//
// The cosine is the other two where S is the identity.
//
// # Conventions
//
// Terms are numbers from 0 to n-1, assigned by a [Vocabulary]. A [Vector], a
// [Similarities] and a [Space] are immutable and safe for use by any number of
// goroutines. The functions panic over a term not in [0, n) and over
// coordinates that are not finite.
//
// The inner product takes any S. The soft cosine takes one for which no ⟨x, x⟩
// is negative, as of every S that is positive semi-definite or not negative;
// else it returns [ErrNotReal]. It is known to lie in [-1, 1] only where S is
// positive semi-definite and symmetric. A vector of norm 0 has similarity 0
// with all.
//
// Norms are scaled where their squares leave the range of a float64, so that
// similarities do not depend on the lengths of the vectors. A result that is
// itself out of range is an error that wraps [ErrRange] where there is an error
// to return, ±Inf where a number is returned, and a panic where a [Vector] is.
//
// # Stores
//
// A store of vectors that knows nothing of S finds what a [Space] would,
// given the right vectors in place of the documents and the query:
//
//	a store that finds the largest  finds the largest  documents               query
//	dot products (theorem 4.1)      inner products     [Space.Weighted]        [Space.DotQuery]
//	dot products (theorem 4.2)      soft cosines       [Space.DotDocument]     [Space.DotQuery]
//	cosines (theorem 4.3)           soft cosines       [Space.CosineDocument]  [Space.CosineQuery]
//	(Wx)ᵀ(Wy)/‖Wy‖, as an engine    hard-normalized    as they are             [Space.Expand]
//
// In the first and the last, S may change while the documents stay. Other ways
// are a change of basis, [NewDenseBasis] and [NewSparseBasis], and [NewPhi2].
//
// # Sources
//
// Sidorov, Gelbukh, Gómez-Adorno, Pinto: Soft Similarity and Soft Cosine
// Measure, Computación y Sistemas 18(3), 2014 (called Sidorov here).
// Novotný: Vector Space Representations in Information Retrieval, Masaryk
// University, 2017 (the thesis). Novotný: Implementation Notes for the Soft
// Cosine Measure, CIKM 2018 (the notes).
//
// The package is pure: it reads no file and asks no server.
package softcosine
