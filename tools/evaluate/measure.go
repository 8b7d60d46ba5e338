package evaluate

import (
	"math"
	"slices"
)

// AveragePrecision is the mean of the precision at each relevant document, in
// [0, 1]; its mean over the queries is MAP:
//
//	(1/R) Σ_k P@k · rel(k)    R: relevant documents that are known
//
// It is 0 where no document is relevant, as all measures are.
func AveragePrecision(ranking []string, grades map[string]int) float64 {
	found, sum := 0.0, 0.0
	for i, id := range ranking {
		if grades[id] > 0 {
			found++
			sum += found / float64(i+1)
		}
	}
	return share(sum, float64(len(Relevant(grades))))
}

// NDCG is the normalized discounted cumulative gain of the first k documents,
// in [0, 1]: gain = grade, discount = 1/log2(rank+1), divided by that of the k
// best grades (Järvelin and Kekäläinen 2002, with trec_eval's discount).
func NDCG(ranking []string, grades map[string]int, k int) float64 {
	gain, best := 0.0, 0.0
	for i, id := range ranking[:min(k, len(ranking))] {
		gain += float64(max(0, grades[id])) * Discount(i)
	}
	ideal := Relevant(grades)
	for i, grade := range ideal[:min(k, len(ideal))] {
		best += float64(grade) * Discount(i)
	}
	return share(gain, best)
}

// Discount is the weight of the rank i, counted from 0.
func Discount(i int) float64 { return 1 / math.Log2(float64(i)+2) }

// ReciprocalRank is 1 by the rank of the first relevant document among the
// first k, and 0 where there is none; its mean is MRR.
func ReciprocalRank(ranking []string, grades map[string]int, k int) float64 {
	for i, id := range ranking[:min(k, len(ranking))] {
		if grades[id] > 0 {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// Precision is the share of relevant documents among the first k, in [0, 1]; a
// ranking that is shorter counts as if it went on with others.
func Precision(ranking []string, grades map[string]int, k int) float64 {
	return share(relevantIn(ranking, grades, k), float64(k))
}

// Recall is the share of the relevant documents that are among the first k, in
// [0, 1].
func Recall(ranking []string, grades map[string]int, k int) float64 {
	return share(relevantIn(ranking, grades, k), float64(len(Relevant(grades))))
}

// Unjudged is the share of documents without a grade among the first k that
// there are, in [0, 1].
func Unjudged(ranking []string, grades map[string]int, k int) float64 {
	first := ranking[:min(k, len(ranking))]
	unknown := 0.0
	for _, id := range first {
		if _, ok := grades[id]; !ok {
			unknown++
		}
	}
	return share(unknown, float64(len(first)))
}

func relevantIn(ranking []string, grades map[string]int, k int) float64 {
	found := 0.0
	for _, id := range ranking[:min(k, len(ranking))] {
		if grades[id] > 0 {
			found++
		}
	}
	return found
}

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

// share is part/whole, and 0 of nothing.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// Relevant returns the grades above zero, largest first.
func Relevant(grades map[string]int) []int {
	var relevant []int
	for _, g := range grades {
		if g > 0 {
			relevant = append(relevant, g)
		}
	}
	slices.Sort(relevant)
	slices.Reverse(relevant)
	return relevant
}
