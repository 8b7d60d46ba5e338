// Package plots draws what is in a similarity matrix: how its similarities are
// distributed, and how dense it would be with fewer neighbors.
//
// The density of a matrix over n terms is the share of its n² cells that are
// not zero, the diagonal counted, in percent:
//
//	100·(entries off the diagonal + n) / n²
//
// as in the figures 4.1 to 4.5 of Novotný, Vector Space Representations in
// Information Retrieval (2017). It tells what S costs: the room of the rows,
// and the terms that there are to choose from in a search.
//
// A [Summary] counts in one pass all that the figures show, and [Write] draws
// it as SVG or PNG. The package is pure; its letters come with the program.
package plots
