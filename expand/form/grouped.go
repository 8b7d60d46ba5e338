package form

import (
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
)

// The grouped form takes the better score of each term of the text and its
// neighbors:
//
//	in    {"match":{"f":"a b"}}, c and d for a
//	out   {"bool":{"should":[{"bool":{"filter":[the original]}},
//	      {"dis_max":{"queries":[a,{"dis_max":{"queries":[c,d]}}]}},b]}}
//	in    with the operator "and" or minimum_should_match
//	out   the groups in a bool of their own, with the same option
//	in    several fields
//	out   such a bool for each, in a dis_max
//
// The boosts are x'_i for terms of the text, and λ v_j / w_j² for neighbors.

// groupedLambda is the λ of the grouped form with the strength 1.
const groupedLambda = 0.5

// The tie breakers of the grouped form, measured on judged collections.
const (
	// tieOrigin combines a term with all its neighbors.
	tieOrigin = 0.1
	// tieNeighbors combines the neighbors of one term.
	tieNeighbors = 0.35
)

// grouped returns origin k of field i with the neighbors in added.
func (w *builder) grouped(i, k int, added []terms.Candidate, boost float64) *query.Query {
	f := &w.c.Fields[i]
	o := &f.Terms.Origins[k]
	q := w.DisMax(tieOrigin).Should(w.Term(f.Name, o.Term, boost, ""))
	f.hostedBy(k, func(a *terms.Alternative) {
		q.Should(w.namedAlternative(i, a, boost*a.Similarity*f.weight(o.IDF)/f.weight(a.IDF)))
	})
	neighbors, related := w.DisMax(tieNeighbors), false
	for n := range added {
		if a := &added[n]; a.CountsAs(k) {
			neighbors.Should(w.added(f.Name, a.Term, boost/w.plan.times(Grouped, f, o)*linearBoost(f, a, f.idf(a.DocFreq), w.plan.Strength.Grouped)))
			related = true
		}
	}
	if related {
		q.Should(neighbors)
	}
	return q
}

// groupedBound returns Σ_i D₁(x'_i w_i², D₂(λ v_j of i)), where D is the
// largest value plus the tie breaker times the others.
func (w *builder) groupedBound(i int) float64 {
	f := &w.c.Fields[i]
	scored := w.divided[i].scored
	sum := 0.0
	for n := range f.Terms.Origins {
		o := &f.Terms.Origins[n]
		var most, all float64
		for k := range scored {
			if a := &scored[k]; a.CountsAs(n) {
				v := a.Score(w.plan.Strength.Grouped)
				most = max(most, v)
				all += v
			}
		}
		own, neighbors := w.plan.times(Grouped, f, o)*o.W*o.W, most+tieNeighbors*(all-most)
		f.hostedBy(n, func(a *terms.Alternative) { sum += tieOrigin * a.Similarity * own })
		sum += max(own, neighbors) + tieOrigin*min(own, neighbors)
	}
	return sum
}
