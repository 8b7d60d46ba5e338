// Package expand rewrites searches: it finds the clauses of a search body that
// look for text in a field, asks for the neighbors of their terms in the
// similarity matrix S, and splices the neighbors in as clauses with fractional
// boosts, so that the engine ranks by x' = W⁻¹(Wx)ᵀS.
//
// It does no I/O of its own: what it needs of the cluster and of the matrix it
// asks through the interfaces [Cluster] and [Matrices].
package expand
