package form

// norm returns r in (0, 1], the factor that makes the largest possible score of
// a written clause equal to that of the original, or 1 if it is not wanted.
// With the mass of a field's terms
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
// of the text in the saturated one; x' is that of [Plan.times], and the forms
// explain the rest. B are the boosts times the engine's bound on a term's
// saturated frequency. So r = M/bound for one field, and the smallest of these
// for several. With fuzziness r may be too large.
func (w *builder) norm() float64 {
	r := 1.0
	if !w.plan.Normalize || w.plan.MatchOnly || w.scoring == Hard {
		return r
	}
	for i := range w.c.Fields {
		f := &w.c.Fields[i]
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
