// Package simmatrix holds the term-similarity matrix S: its rows, the builders
// that learn it, the file format that stores it.
//
// S is an n×n matrix over the index terms of a field, with s_ii = 1 and
// 0 < s_ij <= 1 for the stored entries off the diagonal. Only those are kept,
// at most C of them in a row, so a row is a term's list of neighbors. The
// matrix need not be symmetric: with the default recipe about half of the
// entries go one way only.
//
// The package is pure: it reads from an io.Reader and writes to an io.Writer,
// and knows nothing of clusters, Redis or files.
package simmatrix
