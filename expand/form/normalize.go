package form

import (
	"math"

	"github.com/akin-search/akin/expand/terms"
)

// norm returns r in (0, 1], the factor that makes the largest possible score of
// a written clause equal to that of the original. With the mass of a field's
// terms
//
//	M = Σ_i x_i w_i²
//
// (of terms that share a position only the smallest, as the engines score them)
// and v as in package terms, the scores in a field are below
//
//	original   B·M
//	linear     B·(M + λ Σ_j v_j + Σ_g max(0, β_g H_g - h_g))
//	grouped    B·Σ_i D₁(x'_i w_i², D₂(λ v_j of i))
//	saturated  B·(M + λ Σ_j v_j)
//
// where the sum over j has all added terms in the linear form, and only those
// of the text in the saturated one; x' is that of [Plan.times].
// B are the boosts times the engine's bound on a term's saturated frequency. D
// is the largest value plus the tie breaker times the others. β_g is the
// largest of alternatives for the same words, which have the mass H_g, the
// smallest of them h_g. So r = M/bound for one field, and the smallest of these
// for several. With fuzziness r may be too large.
func (w *clauseWriter) norm() float64 {
	c := w.c
	r := 1.0
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Reason != "" || len(f.Added)+len(f.Alternatives) == 0 {
			continue
		}
		mass := f.mass()
		r = min(r, mass/max(w.bound(i, mass), mass))
	}
	return r
}

func (f *Field) mass() float64 {
	squaredWeight := func(term string) float64 {
		o := &f.Terms.Origins[f.Terms.Origins.Index(term)]
		return o.W * o.W
	}
	sum, a := 0.0, f.Analysis
	for k := 0; k < len(a.Terms); {
		position, least := a.Positions[k], squaredWeight(a.Terms[k])
		for k++; k < len(a.Terms) && a.Positions[k] == position; k++ {
			least = min(least, squaredWeight(a.Terms[k]))
		}
		sum += least
	}
	return sum
}

func (w *clauseWriter) bound(i int, mass float64) float64 {
	f, divided := &w.c.Fields[i], &w.divided[i]
	sum, set := 0.0, 0.0
	if w.role != ordering {
		set = divided.setScore()
	}
	switch w.scoring {
	case Saturated:
		for k := range f.Added {
			if a := &f.Added[k]; a.Word {
				sum += a.Score(w.plan.Strength.Saturated)
			}
		}
		return mass + sum + set
	case Grouped:
		for n := range f.Terms.Origins {
			o := &f.Terms.Origins[n]
			var most, all float64
			for k := range divided.scored {
				if a := &divided.scored[k]; a.CountsAs(n) {
					v := a.Score(w.plan.Strength.Grouped)
					most, all = max(most, v), all+v
				}
			}
			own, neighbors := w.plan.times(Grouped, f, o)*o.W*o.W, most+tieNeighbors*(all-most)
			f.hostedBy(n, func(a *terms.Alternative) { sum += tieOrigin * a.Similarity * own })
			sum += max(own, neighbors) + tieOrigin*min(own, neighbors)
		}
		return sum + set
	case Auto, Linear, Hard, Vectors: // the last two are not normalized
	}
	for i := range divided.scored {
		sum += divided.scored[i].Score(w.plan.lambda(w.role == finding))
	}
	if w.c.Phrase {
		return mass + sum + set
	}
	for _, g := range f.hosted() { // a document may have all of the words but one
		all, least, most := 0.0, math.Inf(1), 0.0
		for _, o := range g.hosts {
			all, least = all+o.X*o.W*o.W, min(least, o.X*o.W*o.W)
		}
		for _, a := range g.by {
			most = max(most, a.Similarity)
		}
		sum += max(0, most*all-least)
	}
	return mass + sum + set
}

// The tie breakers of the grouped form, measured on judged collections.
const (
	// tieOrigin combines a term with all its neighbors.
	tieOrigin = 0.1
	// tieNeighbors combines the neighbors of one term.
	tieNeighbors = 0.35
)
