package expand

// norm returns r in (0, 1], the factor of a written clause that makes its
// largest possible score that of the original. With the mass of a field's
// original terms
//
//	M = Σ_i x_i w_i²
//
// (of terms that share a position, the smallest, as the engines score them) and
// v and λ as in [selection], the scores in that field are below
//
//	original   B·M
//	linear     B·(M + λ Σ_j v_j)
//	grouped    B·Σ_i D₁(x_i w_i², D₂(λ v_j of i))
//	saturated  B·M
//
// times one factor that all have: boosts, and the engine's bound on a term's
// saturated frequency. D is the largest plus the tie breaker times the others.
// So r = M/bound for one field, and for several the smallest of theirs, because
// whatever combines fields grows with each of them.
//
// With fuzziness the engine may score less than M; then r is above what it
// should be.
func (w *writer) norm(c *clause) float64 {
	r := 1.0
	for i := range c.targets {
		t := &c.targets[i]
		if t.reason != "" || len(t.sel.candidates) == 0 {
			continue
		}
		mass := t.mass()
		r = min(r, mass/max(w.bound(t, mass), mass))
	}
	return r
}

// mass returns M, see [writer.norm].
func (t *target) mass() float64 {
	sum, a := 0.0, t.analysis
	for k := 0; k < len(a.Terms); {
		position, least := a.Positions[k], t.sel.squaredWeight(a.Terms[k])
		for k++; k < len(a.Terms) && a.Positions[k] == position; k++ {
			least = min(least, t.sel.squaredWeight(a.Terms[k]))
		}
		sum += least
	}
	return sum
}

// squaredWeight returns w² of an origin.
func (sel *selection) squaredWeight(term string) float64 {
	for i := range sel.origins {
		if o := &sel.origins[i]; o.term == term {
			return o.w * o.w
		}
	}
	return 0
}

// bound returns the bound of the written form, see [writer.norm].
func (w *writer) bound(t *target, mass float64) float64 {
	switch w.form {
	case FormSaturated:
		return mass
	case FormGrouped:
		sum := 0.0
		for i := range t.sel.origins {
			o := &t.sel.origins[i]
			var near best
			for k := range t.sel.candidates {
				if c := &t.sel.candidates[k]; c.origin == i {
					near.take(w.strength.Grouped * c.v)
				}
			}
			var both best
			both.take(o.x * o.w * o.w)
			both.take(near.score(tieNeighbors))
			sum += both.score(tieOrigin)
		}
		return sum
	case FormAuto, FormLinear, FormHard: // the last is not normalized
	}
	sum := 0.0
	for _, c := range w.added(t) {
		sum += c.v
	}
	return mass + w.linear()*sum
}

// best is what a dis_max makes of scores.
type best struct{ most, sum float64 }

func (b *best) take(score float64) {
	b.most = max(b.most, score)
	b.sum += score
}

func (b *best) score(tie float64) float64 { return b.most + tie*(b.sum-b.most) }
