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
