package evaluate

import (
	"math"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	check.That(t, math.Abs(got-want) <= 1e-12, "%s = %v, want %v", what, got, want)
}

func TestPrecisionCountsMissingRanks(t *testing.T) {
	grades := map[string]float64{"a": 1, "b": 2, "x": 0}
	near(t, "P@5 of two relevant among three", Precision([]string{"a", "x", "b"}, grades, 5), 2./5)
	near(t, "P@1", Precision([]string{"x", "a"}, grades, 1), 0)
}

// Of three relevant documents two are found, at ranks 2 and 4.
func TestRanksOfRelevantDocuments(t *testing.T) {
	ranking, grades := []string{"x", "a", "y", "b"}, map[string]float64{"a": 1, "b": 2, "c": 1, "x": 0}
	near(t, "MAP", AveragePrecision(ranking, grades), (1./2+2./4)/3)
	near(t, "MRR", ReciprocalRank(ranking, grades, 10), 1./2)
	near(t, "recall@3", Recall(ranking, grades, 3), 1./3)
}

func TestUnjudgedIsOfWhatIsThere(t *testing.T) {
	grades := map[string]float64{"a": 1, "x": 0}
	near(t, "one of three", Unjudged([]string{"a", "x", "new"}, grades, 10), 1./3)
	near(t, "nothing", Unjudged(nil, grades, 10), 0)
}

func TestOverlapIsOfTheLongerRanking(t *testing.T) {
	near(t, "two of three", Overlap([]string{"a", "b"}, []string{"b", "c", "a"}, 10), 2./3)
	near(t, "of the first", Overlap([]string{"a", "b"}, []string{"b", "a"}, 1), 0)
	near(t, "empty", Overlap(nil, nil, 10), 1)
}

// The example has p-values 0.01, 0.04, 0.03 and 0.005: times 4, 3, 2 and 1 in
// ascending order these are 0.02, 0.03, 0.06 and 0.04, the last raised to 0.06.
func TestHolmRaisesByRank(t *testing.T) {
	got := Holm([]float64{.01, .04, .03, .005})
	for i, want := range []float64{.03, .06, .06, .02} {
		near(t, "corrected", got[i], want)
	}
	all := Holm([]float64{.9, .8})
	check.That(t, all[0] == 1 && all[1] == 1, "above 1: %v", all)
}

// All ten signs alike are 2 of 1024 tosses.
func TestRandomizationOfEqualDifferences(t *testing.T) {
	same := []float64{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1}
	p := Randomization(same)
	check.That(t, math.Abs(p-2./1024) <= .001, "p = %v, want about %v", p, 2./1024)
	check.Equal(t, 1, Randomization(nil))
	check.Equal(t, 1, Randomization([]float64{.1, -.1}))
}

// The means of n draws from {0, 1} have a standard deviation of 1/(2√n).
func TestBootstrapHoldsTheMean(t *testing.T) {
	var half []float64
	for i := range 400 {
		half = append(half, float64(i%2))
	}
	low, high := Bootstrap(half, .95)
	check.That(t, math.Abs(low-(.5-1.96/40)) <= .01 && math.Abs(high-(.5+1.96/40)) <= .01, "interval [%v, %v], want about [0.451, 0.549]", low, high)
	if low, high := Bootstrap(nil, .95); low != 0 || high != 0 {
		t.Errorf("of nothing: [%v, %v]", low, high)
	}
}

// Worked out by hand: grades 2, 0, 1 at ranks 1 to 3 of judged 2, 1, 1.
// DCG = 2/1 + 1/2 = 2.5, ideal 2/1 + 1/log2(3) + 1/2 = 3.13093.
func TestNDCGIsNormalizedByTheBestOrder(t *testing.T) {
	got := NDCG([]string{"a", "x", "b"}, map[string]float64{"a": 2, "b": 1, "c": 1}, 10)
	check.That(t, got >= 0.79848 && got <= 0.79849, "nDCG = %v, want 2.5/3.13093 = 0.798484", got)
	check.Equal(t, 0, NDCG(nil, map[string]float64{"a": 1}, 10))
	// A model's grades .7 at rank 2 and .3 at rank 1: (.3 + .7/log2(3)) / (.7 + .3/log2(3)).
	got = NDCG([]string{"b", "a"}, map[string]float64{"a": 0.7, "b": 0.3}, 10)
	check.That(t, got >= 0.83399 && got <= 0.834, "nDCG of fractions = %v, want 0.741651/0.889279 = 0.833991", got)
}
