// Package plots draws what is in a similarity matrix, as SVG or PNG: how its
// similarities are distributed, and how dense it would be with fewer neighbors
// (as in figures 4.1 to 4.5 of Novotný, Vector Space Representations in
// Information Retrieval, 2017). The density of a matrix of n terms is the share
// of its n² cells that are not zero, in percent:
//
//	100·(entries off the diagonal + n) / n²
package plots
