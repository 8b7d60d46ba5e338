package e2e

import (
	"fmt"

	"github.com/akin-search/akin/tools/evaluate"
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

// judge measures one ranking, best first, by the grades of the documents;
// the measures are all 0 where no document is relevant.
func judge(ranking []string, grades map[string]float64) measures {
	return measures{
		MAP:       evaluate.AveragePrecision(ranking, grades),
		NDCG10:    evaluate.NDCG(ranking, grades, 10),
		Recall100: evaluate.Recall(ranking, grades, 100),
		MRR:       evaluate.ReciprocalRank(ranking, grades, 10),
	}
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
// as large as these are where the two rankings are equally good. It is 0 without
// queries to compare with.
func significance(perQuery, base []measures) measures {
	if len(base) == 0 {
		return measures{}
	}
	var p [4]float64
	for m := range p {
		differences := make([]float64, len(base))
		for i := range base {
			differences[i] = perQuery[i].all()[m] - base[i].all()[m]
		}
		p[m] = evaluate.Randomization(differences)
	}
	return measures{p[0], p[1], p[2], p[3]}
}
