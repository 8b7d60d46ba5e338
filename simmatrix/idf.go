package simmatrix

import "math"

// IDF returns the engines' inverse document frequency of a term that docFreq of
// docs documents hold,
//
//	ln(1 + (N − df + 0.5)/(df + 0.5)),
//
// with df at least 1 and at most N: a term that no document holds is taken for
// the rarest one, and a count that lags behind for the largest. It is positive.
// Source: Lucene's BM25Similarity.
func IDF(docFreq, docs int64) float64 {
	df := float64(max(docFreq, 1))
	n := max(float64(docs), df)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}
