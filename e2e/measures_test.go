package e2e

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Measures of a ranking, or the means over the queries of a collection, each
// in [0, 1].
type measures struct {
	// MAP is average precision over all documents retrieved:
	//
	//	(1/R) Σ_k P@k · rel(k)    R: relevant documents of the collection
	MAP float64
	// NDCG10 is the normalized discounted cumulative gain of the first ten,
	// gain = grade, discount = 1/log2(rank+1), ideal = the best ten grades.
	NDCG10 float64
	// Recall100 is the share of relevant documents among the first hundred.
	Recall100 float64
	// MRR is the reciprocal rank of the first relevant document among the
	// first ten, 0 where there is none.
	MRR float64
}

// measureNames are the names of the measures in the order of all.
var measureNames = []string{"MAP", "nDCG@10", "recall@100", "MRR@10"}

// all returns the measures in the order of measureNames.
func (m measures) all() []float64 { return []float64{m.MAP, m.NDCG10, m.Recall100, m.MRR} }

// measure judges one ranking, best first, by the grades of the documents;
// those without a grade, or with one of zero or less, are not relevant. The
// measures are all 0 where no document is relevant.
func measure(ranking []string, grades map[string]int) measures {
	ideal := relevantGrades(grades)
	if len(ideal) == 0 {
		return measures{}
	}
	var m measures
	relevant := float64(len(ideal))
	found, gain := 0.0, 0.0
	for i, id := range ranking {
		grade := grades[id]
		if grade <= 0 {
			continue
		}
		found++
		m.MAP += found / float64(i+1) / relevant
		if i < 10 {
			gain += float64(grade) * discount(i)
		}
		if i < 100 {
			m.Recall100 += 1 / relevant
		}
		if i < 10 && found == 1 {
			m.MRR = 1 / float64(i+1)
		}
	}
	best := 0.0
	for i, grade := range ideal[:min(10, len(ideal))] {
		best += float64(grade) * discount(i)
	}
	m.NDCG10 = gain / best
	return m
}

// discount is the weight of the rank i, counted from 0.
func discount(i int) float64 { return 1 / math.Log2(float64(i)+2) }

// relevantGrades returns the grades above zero, largest first.
func relevantGrades(grades map[string]int) []int {
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

// meanMeasures returns the arithmetic means.
func meanMeasures(perQuery []measures) measures {
	var sum measures
	n := float64(len(perQuery))
	for _, m := range perQuery {
		sum.MAP += m.MAP / n
		sum.NDCG10 += m.NDCG10 / n
		sum.Recall100 += m.Recall100 / n
		sum.MRR += m.MRR / n
	}
	return sum
}

// gainOver returns by how many hundredths m's values exceed base's.
func gainOver(value, base float64) float64 { return 100 * (value/base - 1) }

func (m measures) String() string {
	return fmt.Sprintf("MAP %.4f, nDCG@10 %.4f, recall@100 %.4f, MRR@10 %.4f", m.MAP, m.NDCG10, m.Recall100, m.MRR)
}

// significance returns, for each measure, how likely differences of the means
// as large as these are where the two rankings are equally good: the share of
// 10,000 random signs of the differences that make their sum as large, and this
// one, after Smucker, Allan and Carterette (2007). It is 0 without queries to
// compare with.
func significance(perQuery, base []measures) measures {
	if len(base) == 0 {
		return measures{}
	}
	const permutations = 10_000
	random := rand.New(rand.NewPCG(14, 7))
	signs := make([][]uint64, permutations)
	for p := range signs {
		signs[p] = make([]uint64, (len(base)+63)/64)
		for i := range signs[p] {
			signs[p][i] = random.Uint64()
		}
	}
	var p [4]float64
	for m := range p {
		differences, sum := make([]float64, len(base)), 0.0
		for i := range base {
			differences[i] = perQuery[i].all()[m] - base[i].all()[m]
			sum += differences[i]
		}
		asLarge := 1
		for _, negative := range signs {
			flipped := sum
			for i, word := range negative {
				for ; word != 0; word &= word - 1 {
					if k := i*64 + bits.TrailingZeros64(word); k < len(differences) {
						flipped -= 2 * differences[k]
					}
				}
			}
			if math.Abs(flipped) >= math.Abs(sum)-1e-9 {
				asLarge++
			}
		}
		p[m] = float64(asLarge) / (permutations + 1)
	}
	return measures{p[0], p[1], p[2], p[3]}
}
