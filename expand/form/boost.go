package form

import (
	"github.com/akin-search/akin/expand/terms"
)

// Boost returns the factor of an added term before the boosts of clause and
// field, with v and w as in package terms:
//
//	linear, grouped  λ v_j / w_j²
//	saturated        β_ij = λ v_j / (x'_i idf_i), with x' of [Plan.times]
//	hard             v_j / (‖Wx‖·c·idf_j), without c·idf_j if a script scores
//
// For a term of the text that gets v_j from others, it is λ v_j / w_j² in all
// forms but hard.
func (p *Plan) Boost(s Scoring, f *Field, a *terms.Candidate) float64 {
	switch s {
	case Hard:
		return f.Exact.boost(a.V, f.idf(a.DocFreq))
	case Saturated:
		if a.Word {
			return a.Score(p.Strength.Saturated) / f.idf(a.DocFreq)
		}
		o := &f.Terms.Origins[a.Origin]
		return a.Score(p.Strength.Saturated) / (p.times(s, f, o) * o.IDF)
	case Grouped:
		wj := f.Weighting().Of(f.idf(a.DocFreq))
		return a.Score(p.Strength.Grouped) / (wj * wj)
	case Auto, Linear, Vectors:
	}
	return p.linearBoost(f, a, f.idf(a.DocFreq), p.FindOnly)
}

// times returns x'_i, how often a term of the text counts in the forms grouped
// and saturated: x_i, and without the fit also λ v_i / w_i².
func (p *Plan) times(s Scoring, f *Field, o *terms.Origin) float64 {
	x := o.X
	for k := range f.Added {
		if a := &f.Added[k]; a.Word && a.Term == o.Term {
			x += p.Boost(s, f, a)
		}
	}
	return x
}

// linearBoost returns the factor in the linear form, for the term's idf.
// finding says that the form only finds hits.
func (p *Plan) linearBoost(f *Field, a *terms.Candidate, idf float64, finding bool) float64 {
	wj := f.Weighting().Of(idf)
	return a.Score(p.lambda(finding)) / (wj * wj)
}

func (p *Plan) lambda(finding bool) float64 {
	if finding {
		return min(p.Recipe.FindFactor*p.Strength.Saturated, 1)
	}
	return min(p.Recipe.LinearFactor*p.Strength.Linear, 1)
}

// boost returns the factor of a term with value v, for the engine's idf.
func (x *Exact) boost(v, idf float64) float64 {
	if x.Scripted {
		return v / x.QueryNorm
	}
	return v / (x.QueryNorm * x.Factor * idf)
}
