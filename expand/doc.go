// Package expand rewrites searches: it finds the clauses of a search body
// that look for text in a field, asks for the neighbors of their terms in
// the similarity matrix S, and writes the neighbors in as clauses with
// fractional boosts, so that the engine ranks by x' = W⁻¹(Wx)ᵀS.
//
// A search goes one way, from values to values, and [Expander.Expand] reads
// in that order:
//
//	parse   body and parameters → clauses          package dsl
//	ask     clauses → analyses, rows, statistics   [Cluster], [Matrices]
//	select  → the terms to add                     package terms
//	plan    → the form of each clause, its phase
//	write   plan → body                            package form
//
// It does no I/O of its own: what it needs of the cluster and of the matrix
// it asks through interfaces.
package expand
