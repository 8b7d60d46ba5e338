package evaluate

import (
	"math"
	"slices"
)

// Overlap is the share of documents that the first k of two rankings have in
// common, in [0, 1], of as many as the longer of the two has there; it is 1 of
// two empty rankings.
func Overlap(a, b []string, k int) float64 {
	a, b = a[:min(k, len(a))], b[:min(k, len(b))]
	longer := max(len(a), len(b))
	if longer == 0 {
		return 1
	}
	common := 0
	for _, id := range b {
		if slices.Contains(a, id) {
			common++
		}
	}
	return float64(common) / float64(longer)
}

// RankBiasedOverlap is how alike two rankings are if each next rank counts p
// times the one before, p in (0, 1), extrapolated from what is there of both:
// with X_d common documents of the first d and D the shorter length,
//
//	(1−p)/p · Σ_{d≤D} X_d/d · p^d + X_D/D · p^D
//
// (Webber, Moffat and Zobel 2010, RBO_EXT of equation 32 for rankings of one
// length). It is in [0, 1], 1 of two empty rankings, and 0 where one is empty.
func RankBiasedOverlap(a, b []string, p float64) float64 {
	depth := min(len(a), len(b))
	if depth == 0 {
		if len(a) == len(b) {
			return 1
		}
		return 0
	}
	inA, inB := map[string]bool{}, map[string]bool{}
	common, sum, agreement := 0.0, 0.0, 0.0
	for d, x := range a[:depth] {
		y := b[d]
		inA[x], inB[y] = true, true
		if inB[x] {
			common++
		}
		if x != y && inA[y] {
			common++
		}
		agreement = common / float64(d+1)
		sum += agreement * math.Pow(p, float64(d+1))
	}
	return (1-p)/p*sum + agreement*math.Pow(p, float64(depth))
}
