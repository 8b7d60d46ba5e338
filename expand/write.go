package expand

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The sources of the two scripts of the saturated form. They never change and
// take params, so that an engine compiles each of them once.
const (
	// scriptInvert turns a BM25 score s = m·tf/(tf+K), m = scale·idf, back
	// into b·tf/K. c < 1 bounds s/m from above, where the inverse has a pole.
	scriptInvert = "double r = Math.min(_score / params.m, params.c); return params.b * r / (1 - r)"
	// scriptSaturate is BM25's saturation of y = Σ b·tf/K: m·y/(1+y).
	scriptSaturate = "return params.m * _score / (1 + _score)"
)

// maxRatio is the param c of [scriptInvert]. Scores are 32-bit floats, so that
// beyond it the inverse would lose more than three digits; it stands for
// tf = 999·K, which no text reaches.
const maxRatio = 0.999

// The tie breakers of the grouped form, measured on judged collections.
const (
	// tieOrigin combines a term with its neighbors as a whole.
	tieOrigin = 0.1
	// tieNeighbors combines the neighbors of one term.
	tieNeighbors = 0.35
)

// A writer appends JSON to out. The queries that it writes are the same for
// all engines.
type writer struct {
	out      []byte
	strength Strength
	matching Matching
	// normalize divides scores, see [Options.NormalizeScores].
	normalize bool
	// unscored says that matching alone counts.
	unscored bool
	// candidates says that the query finds what a rescore orders anew: clauses
	// in the saturated form are written in the linear one.
	candidates bool
	// found says that the query finds what is ordered anew outside of the
	// engine, and rerank that [Result.Reranks] orders the hits of this page.
	found, rerank bool
	// form is that of the clause being written, and few says that it is written
	// for [writer.candidates].
	form Form
	few  bool
	// leaves counts the queries written that have no queries in them, as the
	// engines count them.
	leaves int
}

func (w *writer) raw(s string) { w.out = append(w.out, s...) }

func (w *writer) string(s string) {
	// AppendQuote fails on invalid UTF-8 alone and then has written it mended;
	// such a term is not in the index and finds nothing.
	w.out, _ = jsontext.AppendQuote(w.out, s)
}

// number writes v as the 32-bit number that the engines read.
func (w *writer) number(v float64) {
	w.out = strconv.AppendFloat(w.out, min(v, math.MaxFloat32), 'g', -1, 32)
}

// comma writes a comma unless the last byte opens a list.
func (w *writer) comma() {
	if last := w.out[len(w.out)-1]; last != '[' {
		w.out = append(w.out, ',')
	}
}

// term writes a term query with its boost.
func (w *writer) term(field, term string, boost float64) {
	w.raw(`{"term":{`)
	w.string(field)
	w.raw(`:{"value":`)
	w.string(term)
	if boost != 1 {
		w.raw(`,"boost":`)
		w.number(boost)
	}
	w.raw(`}}}`)
	w.leaves++
}

// original writes the clause as it came.
func (w *writer) original(c *clause, original []byte) {
	w.out = append(w.out, original...)
	w.leaves += c.leaves()
}

// clause writes what takes the place of c, whose bytes are original.
func (w *writer) clause(c *clause, original []byte) {
	w.form, w.few = c.form, w.candidates && c.rescored || w.found
	if w.few {
		w.form = FormLinear
	}
	switch {
	case w.unscored:
		w.unscoredClause(c, original)
		return
	case w.form == FormLinear:
		w.linearClause(c, original)
		return
	case w.same(c):
		w.raw(`{"bool":{"filter":[`)
		w.original(c, original)
		w.raw(`],"should":[`)
	case c.rescored && !c.groups():
		// The hits are found already, and whatever the original matches has one
		// of its terms.
		w.raw(`{"bool":{"should":[`)
	default:
		// Inside a filter of its own the original finds what it finds and adds
		// nothing to the score.
		w.raw(`{"bool":{"should":[{"bool":{"filter":[`)
		w.original(c, original)
		w.raw(`]}}`)
	}
	if w.form == FormHard {
		w.hard(c)
	} else {
		w.scoring(c)
	}
	w.end(c)
}

// end closes a clause behind its queries.
func (w *writer) end(c *clause) {
	w.raw(`]`)
	if w.normalize && !w.unscored && w.form != FormHard {
		if r := w.norm(c); r < 1 {
			w.raw(`,"boost":`)
			w.number(r)
		}
	}
	w.raw(`}}`)
}

// unscoredClause writes the original and what else is to be found. The search
// asks for no scores, so nothing stands there to score by.
func (w *writer) unscoredClause(c *clause, original []byte) {
	w.raw(`{"bool":{"should":[`)
	w.original(c, original)
	if c.groups() {
		w.matchGroups(c)
	} else {
		w.terms(c)
	}
	w.end(c)
}

// terms writes the terms added to c as queries that only match.
func (w *writer) terms(c *clause) {
	for i := range c.targets {
		t := &c.targets[i]
		sel := c.selection(t)
		for k := range sel.candidates {
			if cand := &sel.candidates[k]; cand.in(i) {
				w.comma()
				w.term(t.field, cand.term, 1)
			}
		}
	}
}

// in reports whether the term is to be looked for in field i of its clause.
func (c *candidate) in(i int) bool { return c.fieldIDFs == nil || c.fieldIDFs[i] > 0 }

// same reports whether c has to match what its original matches.
func (w *writer) same(c *clause) bool { return c.same || w.matching == MatchingSame }

// linearClause writes the original as a scoring clause and the terms beside it.
func (w *writer) linearClause(c *clause, original []byte) {
	switch {
	case w.same(c):
		w.raw(`{"bool":{"must":[`)
		w.original(c, original)
		w.raw(`],"should":[`)
	case c.groups():
		w.raw(`{"bool":{"filter":[{"bool":{"should":[`)
		w.original(c, original)
		w.matchGroups(c)
		w.raw(`]}}],"should":[`)
		w.original(c, original)
	default:
		w.raw(`{"bool":{"should":[`)
		w.original(c, original)
	}
	if c.termwise {
		w.everywhere(c)
	} else {
		w.scoring(c)
	}
	w.end(c)
}

// everywhere writes each term added to a termwise clause once: the best of its
// fields, combined as the clause combines them.
func (w *writer) everywhere(c *clause) {
	sel := &c.targets[0].sel
	for k := range sel.candidates {
		cand := &sel.candidates[k]
		fields := 0
		for i := range c.targets {
			if cand.in(i) {
				fields++
			}
		}
		w.beginFields(c, fields)
		for i := range c.targets {
			if t := &c.targets[i]; cand.in(i) {
				w.comma()
				w.term(t.field, cand.term, c.boost*t.boost*w.fieldBoost(t, cand, i))
			}
		}
		w.endFields(fields)
	}
}

// fieldBoost returns the factor of a term of a termwise clause in field i,
// whose own idf the engine multiplies by: λ v_j / w_j².
func (w *writer) fieldBoost(t *target, c *candidate, i int) float64 {
	wj := t.analysis.Weighting.of(c.fieldIDFs[i])
	return w.linear() * c.v / (wj * wj)
}

// scoring writes the scoring part of a clause as one or more queries: the
// targets combined as the clause combines its fields.
func (w *writer) scoring(c *clause) {
	n := 0
	for i := range c.targets {
		if w.written(&c.targets[i]) {
			n++
		}
	}
	w.beginFields(c, n)
	for i := range c.targets {
		t := &c.targets[i]
		if !w.written(t) {
			continue
		}
		// Where the original decides what is found, a single field needs no
		// count of its own; of several, one may match and another must not score.
		count := w.form != FormLinear && c.groups() && (n > 1 || !w.same(c))
		if n > 1 || count {
			w.comma()
			w.raw(`{"bool":{"should":[`)
		}
		w.target(c, t, count)
		if n > 1 || count {
			w.raw(`]`)
			if count {
				w.minimum(c, groupCount(t))
			}
			w.raw(`}}`)
		}
	}
	w.endFields(n)
}

// beginFields begins the queries of n fields of a clause, which are combined as
// the clause combines its fields.
func (w *writer) beginFields(c *clause, n int) {
	if n < 2 {
		return
	}
	w.comma()
	w.raw(`{"dis_max":{"tie_breaker":`)
	w.number(c.tieBreaker)
	w.raw(`,"queries":[`)
}

// endFields ends what [writer.beginFields] began.
func (w *writer) endFields(n int) {
	if n > 1 {
		w.raw(`]}}`)
	}
}

// added returns the terms that are written for t.
func (w *writer) added(t *target) []candidate {
	if w.few {
		return t.sel.candidates[:min(t.found, len(t.sel.candidates))]
	}
	return t.sel.candidates
}

// written reports whether the target has a part in the scoring: in the linear
// form where terms are added, in the others always, because its terms have to
// score there.
func (w *writer) written(t *target) bool {
	return w.form != FormLinear || len(w.added(t)) > 0
}

// target writes the queries of one target; repeat says that a term which the
// text repeats is written as often, to be counted as often.
func (w *writer) target(c *clause, t *target, repeat bool) {
	boost := c.boost * t.boost
	if w.form == FormLinear {
		added := w.added(t)
		for k := range added {
			w.comma()
			w.term(t.field, added[k].term, boost*w.boost(w.form, t, &added[k]))
		}
		return
	}
	for i := range t.sel.origins {
		times, x := 1, t.sel.origins[i].x
		if repeat {
			times, x = int(x), 1
		}
		for range times {
			w.comma()
			w.group(t, i, x*boost)
		}
	}
}

// group writes one origin term with its neighbors; boost multiplies its score.
func (w *writer) group(t *target, i int, boost float64) {
	o := &t.sel.origins[i]
	switch {
	case !t.sel.has(i):
		w.term(t.field, o.term, boost)
	case w.form == FormSaturated:
		w.raw(`{"script_score":{"query":{"bool":{"should":[`)
		w.inverted(t, o.term, o.idf, 1)
		for k := range t.sel.candidates {
			if cand := &t.sel.candidates[k]; cand.origin == i {
				w.comma()
				w.inverted(t, cand.term, idf(cand.docFreq, t.stats.DocCount), w.boost(w.form, t, cand))
			}
		}
		w.raw(`]}},"script":{"source":"` + scriptSaturate + `","params":{"m":`)
		w.number(boost * t.stats.Scale * o.idf)
		w.raw(`}}}}`)
	default:
		w.raw(`{"dis_max":{"tie_breaker":`)
		w.number(tieOrigin)
		w.raw(`,"queries":[`)
		w.term(t.field, o.term, boost)
		w.raw(`,{"dis_max":{"tie_breaker":`)
		w.number(tieNeighbors)
		w.raw(`,"queries":[`)
		for k := range t.sel.candidates {
			if cand := &t.sel.candidates[k]; cand.origin == i {
				w.comma()
				w.term(t.field, cand.term, boost/o.x*w.boost(w.form, t, cand))
			}
		}
		w.raw(`]}}]}}`)
	}
}

// has reports whether terms were added for origin i.
func (sel *selection) has(i int) bool {
	for k := range sel.candidates {
		if sel.candidates[k].origin == i {
			return true
		}
	}
	return false
}

// inverted writes a term whose score is b·tf/K, see [scriptInvert].
func (w *writer) inverted(t *target, term string, idf, b float64) {
	w.raw(`{"script_score":{"query":`)
	w.term(t.field, term, 1)
	w.raw(`,"script":{"source":"` + scriptInvert + `","params":{"m":`)
	w.number(t.stats.Scale * idf)
	w.raw(`,"c":`)
	w.number(maxRatio)
	w.raw(`,"b":`)
	w.number(b)
	w.raw(`}}}}`)
}

// boost returns the factor of an added term before the boosts of clause and
// field, with v and w as in [selection]:
//
//	linear, grouped  λ v_j / w_j²
//	saturated        β_ij = λ v_j / (x_i idf_i)
//	hard             see [ModeHard]
func (w *writer) boost(form Form, t *target, c *candidate) float64 {
	switch form {
	case FormHard:
		return t.exact.boost(c.v, idf(c.docFreq, t.stats.DocCount))
	case FormSaturated:
		o := &t.sel.origins[c.origin]
		return w.strength.Saturated * c.v / (o.x * o.idf)
	case FormGrouped:
		wj := t.analysis.Weighting.of(idf(c.docFreq, t.stats.DocCount))
		return w.strength.Grouped * c.v / (wj * wj)
	case FormAuto, FormLinear:
		wj := t.analysis.Weighting.of(idf(c.docFreq, t.stats.DocCount))
		return w.linear() * c.v / (wj * wj)
	default:
		panic(fmt.Sprintf("expand: no such form: %d", form))
	}
}

// linear returns λ of the linear form.
func (w *writer) linear() float64 {
	if w.few {
		return min(candidateRatio*w.strength.Saturated, 1)
	}
	return w.strength.Linear
}
