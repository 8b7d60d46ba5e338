// Package rerank computes the soft cosine measure of a search and its hits,
// so that they can be ordered by it outside of the engine.
//
// With x the term frequencies of the text, y_f those of a field f of a
// document, W = diag(idf) and S the similarities of terms, symmetrised as
// ½(S+Sᵀ), the score of a document is
//
//	Σ_f b_f (W x_f)ᵀS(W y_f) / √(Σ_f b_f (W x_f)ᵀS(W x_f)) / √(Σ_f b_f (W y_f)ᵀS(W y_f))
//
// over the fields that are searched, b_f being their boosts: one vector
// space of the pairs of a field and a term, in which terms of different
// fields have nothing to do with each other and a term weighs √b_f·w. It is
// 0 where a document has none of these terms. With one field it is the soft
// cosine of Space.Soft of package softcosine.
//
// A [Reranker] remembers the documents' terms by index with its UUID, id,
// sequence number and primary term, which name one state of a document, and
// the rows of S by the version of the matrix, all of it bounded by bytes. Terms
// are numbered once, so that a score is sums over arrays.
package rerank
