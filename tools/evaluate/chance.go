package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const trials = 10_000

// Randomization returns the probability, in (0, 1], that the mean of the
// differences is at least as far from zero by chance, if a coin toss decided
// which ranking of each query comes from which arm. It is the share of sums
// that are as large among 10,000 random signs and the observed ones (Smucker,
// Allan and Carterette 2007). differences has one value for each query; without
// any the result is 1. Every call draws the same numbers.
func Randomization(differences []float64) float64 {
	random := rand.New(rand.NewPCG(14, 7)) //nolint:gosec // must give the same numbers every time
	least := math.Abs(floats.Sum(differences)) - 1e-9
	asLarge := 1
	for range trials {
		sum, coins := 0.0, uint64(0)
		for i, d := range differences {
			if i%64 == 0 {
				coins = random.Uint64()
			}
			if coins&1 == 1 {
				d = -d
			}
			sum, coins = sum+d, coins>>1
		}
		if math.Abs(sum) >= least {
			asLarge++
		}
	}
	return float64(asLarge) / (trials + 1)
}

// Bootstrap returns the confidence interval of the mean of the differences: the
// outer percentiles of the means of 10,000 samples of the same size, drawn with
// replacement (Efron 1979). confidence is in (0, 1). Every call draws the same
// numbers. Without differences it returns (0, 0).
func Bootstrap(differences []float64, confidence float64) (low, high float64) {
	if len(differences) == 0 {
		return 0, 0
	}
	random := rand.New(rand.NewPCG(15, 1)) //nolint:gosec // must give the same numbers every time
	means := make([]float64, trials)
	for i := range means {
		for range differences {
			means[i] += differences[random.IntN(len(differences))]
		}
		means[i] /= float64(len(differences))
	}
	slices.Sort(means)
	outside := int((1 - confidence) / 2 * trials)
	return means[outside], means[trials-1-outside]
}

// Holm corrects the probabilities of several tests that are considered
// together, and returns them in the same order: the k-th smallest of n times
// n+1−k, at least the corrected value of each smaller one, and at most 1 (Holm
// 1979).
func Holm(probabilities []float64) []float64 {
	sorted := slices.Clone(probabilities)
	order := make([]int, len(probabilities))
	corrected := make([]float64, len(probabilities))
	floats.ArgsortStable(sorted, order)
	least := 0.0
	for k, p := range sorted {
		least = max(least, min(1, p*float64(len(order)-k)))
		corrected[order[k]] = least
	}
	return corrected
}
