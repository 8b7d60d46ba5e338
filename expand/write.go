package expand

import (
	"fmt"
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
}

func (w *writer) raw(s string) { w.out = append(w.out, s...) }

func (w *writer) string(s string) {
	// AppendQuote fails on invalid UTF-8 alone and then has written it mended;
	// such a term is not in the index and finds nothing.
	w.out, _ = jsontext.AppendQuote(w.out, s)
}

func (w *writer) number(v float64) { w.out = strconv.AppendFloat(w.out, v, 'g', -1, 32) }

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
}

// clause writes what takes the place of c, whose bytes are original.
func (w *writer) clause(c *clause, original []byte) {
	if c.form == FormLinear {
		w.linearClause(c, original)
		return
	}
	if w.same(c) {
		w.raw(`{"bool":{"filter":[`)
		w.out = append(w.out, original...)
		w.raw(`],"should":[`)
	} else {
		// Inside a filter of its own the original finds what it finds and adds
		// nothing to the score.
		w.raw(`{"bool":{"should":[{"bool":{"filter":[`)
		w.out = append(w.out, original...)
		w.raw(`]}}`)
	}
	w.scoring(c)
	w.raw(`]}}`)
}

// same reports whether c has to match what its original matches.
func (w *writer) same(c *clause) bool { return c.same || w.matching == MatchingSame }

// linearClause writes the original as a scoring clause and the terms beside it.
func (w *writer) linearClause(c *clause, original []byte) {
	switch {
	case w.same(c):
		w.raw(`{"bool":{"must":[`)
		w.out = append(w.out, original...)
		w.raw(`],"should":[`)
	case c.groups():
		w.raw(`{"bool":{"filter":[{"bool":{"should":[`)
		w.out = append(w.out, original...)
		for i := range c.targets {
			w.matchGroups(c, &c.targets[i])
		}
		w.raw(`]}}],"should":[`)
		w.out = append(w.out, original...)
	default:
		w.raw(`{"bool":{"should":[`)
		w.out = append(w.out, original...)
	}
	w.scoring(c)
	w.raw(`]}}`)
}

// scoring writes the scoring part of a clause as one or more queries: the
// targets combined as the clause combines its fields.
func (w *writer) scoring(c *clause) {
	n := 0
	for i := range c.targets {
		if c.written(&c.targets[i]) {
			n++
		}
	}
	if n > 1 {
		w.comma()
		w.raw(`{"dis_max":{"tie_breaker":`)
		w.number(c.tieBreaker)
		w.raw(`,"queries":[`)
	}
	for i := range c.targets {
		t := &c.targets[i]
		if !c.written(t) {
			continue
		}
		// Where the original decides what is found, a single field needs no
		// count of its own; of several, one may match and another must not score.
		count := c.form != FormLinear && c.groups() && (n > 1 || !w.same(c))
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
	if n > 1 {
		w.raw(`]}}`)
	}
}

// written reports whether the target has a part in the scoring: in the linear
// form where terms are added, in the others always, because its terms have to
// score there.
func (c *clause) written(t *target) bool {
	return c.form != FormLinear || len(t.sel.candidates) > 0
}

// target writes the queries of one target; repeat says that a term which the
// text repeats is written as often, to be counted as often.
func (w *writer) target(c *clause, t *target, repeat bool) {
	boost := c.boost * t.boost
	if c.form == FormLinear {
		for k := range t.sel.candidates {
			w.comma()
			cand := &t.sel.candidates[k]
			w.term(t.field, cand.term, boost*w.boost(c.form, t, cand))
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
			w.group(c, t, i, x*boost)
		}
	}
}

// group writes one origin term with its neighbors; boost multiplies its score.
func (w *writer) group(c *clause, t *target, i int, boost float64) {
	o := &t.sel.origins[i]
	switch {
	case !t.sel.has(i):
		w.term(t.field, o.term, boost)
	case c.form == FormSaturated:
		w.raw(`{"script_score":{"query":{"bool":{"should":[`)
		w.inverted(t, o.term, o.idf, 1)
		for k := range t.sel.candidates {
			if cand := &t.sel.candidates[k]; cand.origin == i {
				w.comma()
				w.inverted(t, cand.term, idf(cand.docFreq, t.stats.DocCount), w.boost(c.form, t, cand))
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
				w.term(t.field, cand.term, boost/o.x*w.boost(c.form, t, cand))
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
func (w *writer) boost(form Form, t *target, c *candidate) float64 {
	switch form {
	case FormSaturated:
		o := &t.sel.origins[c.origin]
		return w.strength.Saturated * c.v / (o.x * o.idf)
	case FormGrouped:
		wj := t.analysis.Weighting.of(idf(c.docFreq, t.stats.DocCount))
		return w.strength.Grouped * c.v / (wj * wj)
	case FormAuto, FormLinear:
		wj := t.analysis.Weighting.of(idf(c.docFreq, t.stats.DocCount))
		return w.strength.Linear * c.v / (wj * wj)
	default:
		panic(fmt.Sprintf("expand: no such form: %d", form))
	}
}

// matchGroups writes a query that finds documents with as many words of the
// text as the clause asks for, each by itself or by a neighbor.
func (w *writer) matchGroups(c *clause, t *target) {
	if t.analysis == nil {
		return
	}
	w.comma()
	w.raw(`{"bool":{"should":[`)
	for k := range t.analysis.Terms {
		if k > 0 && t.analysis.Positions[k] == t.analysis.Positions[k-1] {
			continue // written with the first term of the position
		}
		w.comma()
		w.raw(`{"bool":{"should":[`)
		for m := k; m < len(t.analysis.Terms) && t.analysis.Positions[m] == t.analysis.Positions[k]; m++ {
			w.either(t, t.analysis.Terms[m])
		}
		w.raw(`]}}`)
	}
	w.raw(`]`)
	w.minimum(c, groupCount(t))
	w.raw(`}}`)
}

// either writes a term and the terms added for it.
func (w *writer) either(t *target, term string) {
	w.comma()
	w.term(t.field, term, 1)
	for k := range t.sel.candidates {
		if c := &t.sel.candidates[k]; t.sel.origins[c.origin].term == term {
			w.comma()
			w.term(t.field, c.term, 1)
		}
	}
}

// groupCount returns how many words the engine counts for
// minimum_should_match: the positions of the text, repeated words included.
func groupCount(t *target) int {
	n := 0
	for k := range t.analysis.Positions {
		if k == 0 || t.analysis.Positions[k] != t.analysis.Positions[k-1] {
			n++
		}
	}
	return n
}

// minimum writes how many of n groups have to match. The engine ignores
// minimum_should_match where the text is one word, and where the operator is
// "and".
func (w *writer) minimum(c *clause, n int) {
	switch {
	case n < 2:
	case c.every:
		w.raw(`,"minimum_should_match":"100%"`)
	case len(c.minimum) > 0:
		w.raw(`,"minimum_should_match":`)
		w.out = append(w.out, c.minimum...)
	}
}
