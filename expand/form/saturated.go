package form

import (
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
)

// The saturated form counts the neighbors' scaled occurrences as occurrences of
// the term inside one BM25 saturation:
//
//	in    {"match":{"f":"a b"}}, c for a
//	out   {"bool":{"should":[{"bool":{"filter":[the original]}},
//	      saturate({"bool":{"should":[invert(a),invert(c)]}}),b]}}
//
// where both functions are script_score, and words are counted and fields
// combined as in the grouped form. If the engine rescores, this is the rescore,
// and the query is the linear form with few terms. The params b are those of
// [Plan.Boost].

// saturatedLambda is the λ of the saturated form with the strength 1.
const saturatedLambda = 0.25

// The two scripts of the saturated form. They never change and take params, so
// an engine compiles each once.
var (
	// invert turns a BM25 score s = m·tf/(tf+K), m = scale·idf, into b·tf/K. c < 1
	// is an upper bound for s/m, because the inverse has a pole at 1. Scores are
	// 32-bit floats: above this bound the inverse would lose more than three
	// digits. It corresponds to tf = 999·K, which no text reaches.
	invert = &query.Script{Source: "double r = Math.min(_score / params.m, params.c); return params.b * r / (1 - r)", Bound: 0.999}
	// saturate is BM25's saturation of y = Σ b·tf/K: m·y/(1+y).
	saturate = &query.Script{Source: "return params.m * _score / (1 + _score)"}
)

// saturated returns origin k of field i with the neighbors in added.
func (w *builder) saturated(i, k int, added []terms.Candidate, boost float64) *query.Query {
	f := &w.c.Fields[i]
	o, scale := &f.Terms.Origins[k], f.Stats.Scale
	sum := w.Bool().Should(w.Script(invert, w.Term(f.Name, o.Term, 1, ""), scale*o.IDF, 1))
	for n := range added {
		if a := &added[n]; a.CountsAs(k) {
			sum.Should(w.Script(invert, w.added(f.Name, a.Term, 1), scale*f.idf(a.DocFreq), w.plan.saturatedBoost(f, a)))
		}
	}
	f.hostedBy(k, func(a *terms.Alternative) {
		sum.Should(w.Script(invert, w.namedAlternative(i, a, 1), scale*a.IDF, a.Similarity))
	})
	return w.Script(saturate, sum, boost*scale*o.IDF, 0)
}

func (p *Plan) saturatedBoost(f *Field, a *terms.Candidate) float64 {
	if a.Word {
		return a.Score(p.Strength.Saturated) / f.idf(a.DocFreq)
	}
	o := &f.Terms.Origins[a.Origin]
	return a.Score(p.Strength.Saturated) / (p.times(Saturated, f, o) * o.IDF)
}

// saturatedBound returns Σ_j λ v_j of the terms of the text.
func (w *builder) saturatedBound(i int) float64 {
	sum := 0.0
	for k := range w.c.Fields[i].Added {
		if a := &w.c.Fields[i].Added[k]; a.Word {
			sum += a.Score(w.plan.Strength.Saturated)
		}
	}
	return sum
}
