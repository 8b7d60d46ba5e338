package form

import (
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A writer appends the body of a plan to out. The queries that it writes are the
// same for all engines.
type writer struct {
	*Plan

	out []byte
	// rescoring says that the query is written whose best hits a rescore orders.
	rescoring bool
	// scoring is the form of the clause being written, and finding says that it
	// only finds hits which something else orders: few terms are written.
	scoring Scoring
	finding bool
	// clauses counts the queries written that have no queries in them, as the
	// engines count them.
	clauses int
}

// Write returns the rewritten body and estimates from above how many clauses the
// query then has for the engine. Since Lucene 9 the engines count the queries
// without others in them of a whole query, each time they stand there and in
// script_score too; before, the direct clauses of each bool, which are not
// more. They count those of the query and of the rescore apart.
func (p *Plan) Write(memory []byte) (body []byte, clauses int) {
	w := writer{Plan: p, out: memory[:0]}
	if memory == nil {
		w.out = make([]byte, 0, p.room())
	}
	at, first := 0, 0
	if p.Rescore {
		w.rescoring = true
		at = p.Search.Query.End
		w.copy(0, at)
		first, w.clauses, w.rescoring = w.clauses, 0, false
		w.rescore()
	}
	w.copy(at, len(p.Search.Body))
	n := p.Search.ClauseCount + max(first, w.clauses)
	for i := range p.Clauses {
		if c := &p.Clauses[i]; !c.Changed() {
			n += c.count()
		}
	}
	return w.out, n
}

// About what one added term takes in the saturated form, and in the others.
const (
	bytesSaturated = 270
	bytesPerTerm   = 70
)

// room estimates the length of the rewritten body.
func (p *Plan) room() int {
	n := len(p.Search.Body) + 4*p.Search.Query.Len()
	for _, e := range p.Edits {
		n += len(e.Text)
	}
	for i := range p.Search.Highlights {
		n += p.Search.Highlights[i].Len()
	}
	for i := range p.Clauses {
		c := &p.Clauses[i]
		if c.Scoring == Saturated {
			n += c.Added() * bytesSaturated
		}
		if c.Scoring != Saturated || p.Rescore {
			n += c.Added() * bytesPerTerm
		}
	}
	return n
}

// copy copies the bytes of the body from start to end, with every clause and
// every highlight in them as it is written. None stands across one of these
// places.
func (w *writer) copy(start, end int) {
	for i := range w.Clauses {
		c := &w.Clauses[i]
		at := c.Parsed.At
		if !c.Changed() || !(jsonspan.Span{Start: start, End: end}).Holds(at) {
			continue
		}
		w.copyMarked(start, at.Start)
		w.clause(c)
		start = at.End
	}
	w.copyMarked(start, end)
}

func (w *writer) raw(s string) { w.out = append(w.out, s...) }

func (w *writer) string(s string) {
	// AppendQuote fails only on invalid UTF-8 and then has written it mended;
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

// term writes a term query with its boost behind what stands there.
func (w *writer) term(field, term string, boost float64) {
	w.comma()
	w.onlyTerm(field, term, boost)
}

// onlyTerm writes a term query with its boost.
func (w *writer) onlyTerm(field, term string, boost float64) {
	w.raw(`{"term":{`)
	w.string(field)
	w.raw(`:{"value":`)
	w.string(term)
	if boost != 1 {
		w.raw(`,"boost":`)
		w.number(boost)
	}
	w.raw(`}}}`)
	w.clauses++
}

// original writes the clause as it came.
func (w *writer) original(c *Clause) {
	w.out = append(w.out, c.Parsed.At.Of(w.Search.Body)...)
	w.clauses += c.count()
}

// clause writes what takes the place of c.
func (w *writer) clause(c *Clause) {
	w.scoring, w.finding = c.Scoring, w.rescoring && c.Rescored || w.FindOnly
	if w.finding {
		w.scoring = Linear
	}
	switch {
	case w.MatchOnly:
		w.matching(c)
		return
	case w.scoring == Linear:
		w.linear(c)
		return
	case c.SameMatches:
		w.raw(`{"bool":{"filter":[`)
		w.original(c)
		w.raw(`],"should":[`)
	case c.Rescored && !c.Counted():
		// The hits are found already, and whatever the original matches has one
		// of its terms.
		w.raw(`{"bool":{"should":[`)
	default:
		// Inside a filter of its own the original finds what it finds and adds
		// nothing to the score.
		w.raw(`{"bool":{"should":[{"bool":{"filter":[`)
		w.original(c)
		w.raw(`]}}`)
	}
	if w.scoring == Hard {
		w.exact(c)
	} else {
		w.fields(c)
	}
	w.end(c)
}

// end closes a clause behind its queries.
func (w *writer) end(c *Clause) {
	w.raw(`]`)
	if w.Normalize && !w.MatchOnly && w.scoring != Hard {
		if r := w.norm(c); r < 1 {
			w.raw(`,"boost":`)
			w.number(r)
		}
	}
	w.raw(`}}`)
}

// matching writes the original and what else is to be found. The search asks for
// no scores, so nothing stands there to score by.
func (w *writer) matching(c *Clause) {
	w.raw(`{"bool":{"should":[`)
	w.original(c)
	if c.Counted() {
		w.countedWords(c)
	} else {
		w.addedTerms(c)
	}
	w.end(c)
}

// addedTerms writes the terms added to c as queries that only match.
func (w *writer) addedTerms(c *Clause) {
	for i := range c.Fields {
		added := c.lead(i).Added
		for k := range added {
			if added[k].In(i) {
				w.term(c.Fields[i].Name, added[k].Term, 1)
			}
		}
	}
}

// linear writes the original as a scoring clause and the terms with it.
func (w *writer) linear(c *Clause) {
	switch {
	case c.SameMatches:
		w.raw(`{"bool":{"must":[`)
		w.original(c)
		w.raw(`],"should":[`)
	case c.Counted():
		w.raw(`{"bool":{"filter":[{"bool":{"should":[`)
		w.original(c)
		w.countedWords(c)
		w.raw(`]}}],"should":[`)
		w.original(c)
	default:
		w.raw(`{"bool":{"should":[`)
		w.original(c)
	}
	if c.TermCentric {
		w.termCentric(c)
	} else {
		w.fields(c)
	}
	w.end(c)
}

// termCentric writes each term added to a term-centric clause once: the best of
// its fields, combined as the clause combines them.
func (w *writer) termCentric(c *Clause) {
	added := c.Fields[0].Added
	for k := range added {
		a := &added[k]
		n := 0
		for i := range c.Fields {
			if a.In(i) {
				n++
			}
		}
		w.beginFields(c, n)
		for i := range c.Fields {
			if f := &c.Fields[i]; a.In(i) {
				w.term(f.Name, a.Term, c.Parsed.Boost*f.Boost*w.fieldBoost(f, a, i))
			}
		}
		w.endFields(n)
	}
}

// fieldBoost returns the factor of a term of a term-centric clause in field i,
// whose own idf the engine multiplies by: λ v_j / w_j².
func (w *writer) fieldBoost(f *Field, a *terms.Candidate, i int) float64 {
	wj := f.Weighting().Of(a.FieldIDFs[i])
	return w.lambda(w.finding) * a.V / (wj * wj)
}

// fields writes the scoring part of a clause: its fields, combined as the clause
// combines them.
func (w *writer) fields(c *Clause) {
	n := 0
	for i := range c.Fields {
		if w.written(&c.Fields[i]) {
			n++
		}
	}
	w.beginFields(c, n)
	for i := range c.Fields {
		f := &c.Fields[i]
		if !w.written(f) {
			continue
		}
		// Where the original decides what is found, a single field needs no
		// count of its own; of several, one may match and another must not score.
		count := w.scoring != Linear && c.Counted() && (n > 1 || !c.SameMatches)
		if n > 1 || count {
			w.comma()
			w.raw(`{"bool":{"should":[`)
		}
		w.field(c, f, count)
		if n > 1 || count {
			w.raw(`]`)
			if count {
				w.minimumShouldMatch(c, f)
			}
			w.raw(`}}`)
		}
	}
	w.endFields(n)
}

// beginFields begins the queries of n fields of a clause, which are combined as
// the clause combines its fields.
func (w *writer) beginFields(c *Clause, n int) {
	if n < 2 {
		return
	}
	w.comma()
	w.raw(`{"dis_max":{"tie_breaker":`)
	w.number(c.Parsed.TieBreaker)
	w.raw(`,"queries":[`)
}

// endFields ends what [writer.beginFields] began.
func (w *writer) endFields(n int) {
	if n > 1 {
		w.raw(`]}}`)
	}
}

// added returns the terms that are written for f.
func (w *writer) added(f *Field) []terms.Candidate {
	if w.finding {
		return f.found()
	}
	return f.Added
}

// written reports whether the field has a part in the scoring: in the linear
// form where terms are added, in the others always, because its terms have to
// score there.
func (w *writer) written(f *Field) bool { return w.scoring != Linear || len(w.added(f)) > 0 }

// field writes the queries of one field; repeat says that a term which the text
// repeats is written as often, to be counted as often.
func (w *writer) field(c *Clause, f *Field, repeat bool) {
	boost := c.Parsed.Boost * f.Boost
	if w.scoring == Linear {
		added := w.added(f)
		for k := range added {
			w.term(f.Name, added[k].Term, boost*w.boost(Linear, f, &added[k], w.finding))
		}
		return
	}
	for i := range f.Terms.Origins {
		times, x := 1, f.Terms.Origins[i].X
		if repeat {
			times, x = int(x), 1
		}
		for range times {
			w.comma()
			w.group(f, i, x*boost)
		}
	}
}

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

// group writes origin term i with its neighbors; boost multiplies its score.
func (w *writer) group(f *Field, i int, boost float64) {
	o := &f.Terms.Origins[i]
	switch {
	case !slices.ContainsFunc(f.Added, func(a terms.Candidate) bool { return a.Origin == i }):
		w.onlyTerm(f.Name, o.Term, boost)
	case w.scoring == Saturated:
		w.raw(`{"script_score":{"query":{"bool":{"should":[`)
		w.inverted(f, o.Term, o.IDF, 1)
		for k := range f.Added {
			if a := &f.Added[k]; a.Origin == i {
				w.comma()
				w.inverted(f, a.Term, f.idf(a.DocFreq), w.Boost(Saturated, f, a))
			}
		}
		w.raw(`]}},"script":{"source":"` + scriptSaturate + `","params":{"m":`)
		w.number(boost * f.Stats.Scale * o.IDF)
		w.raw(`}}}}`)
	default:
		w.raw(`{"dis_max":{"tie_breaker":`)
		w.number(tieOrigin)
		w.raw(`,"queries":[`)
		w.onlyTerm(f.Name, o.Term, boost)
		w.raw(`,{"dis_max":{"tie_breaker":`)
		w.number(tieNeighbors)
		w.raw(`,"queries":[`)
		for k := range f.Added {
			if a := &f.Added[k]; a.Origin == i {
				w.term(f.Name, a.Term, boost/o.X*w.Boost(Grouped, f, a))
			}
		}
		w.raw(`]}}]}}`)
	}
}

// inverted writes a term whose score is b·tf/K, see [scriptInvert].
func (w *writer) inverted(f *Field, term string, idf, b float64) {
	w.raw(`{"script_score":{"query":`)
	w.onlyTerm(f.Name, term, 1)
	w.raw(`,"script":{"source":"` + scriptInvert + `","params":{"m":`)
	w.number(f.Stats.Scale * idf)
	w.raw(`,"c":`)
	w.number(maxRatio)
	w.raw(`,"b":`)
	w.number(b)
	w.raw(`}}}}`)
}

// Boost returns the factor of an added term before the boosts of clause and
// field, with v and w as in package terms:
//
//	linear, grouped  λ v_j / w_j²
//	saturated        β_ij = λ v_j / (x_i idf_i)
//	hard             v_j / (‖Wx‖·c·idf_j), without idf_j where a script scores
func (p *Plan) Boost(s Scoring, f *Field, a *terms.Candidate) float64 {
	return p.boost(s, f, a, p.FindOnly)
}

func (p *Plan) boost(s Scoring, f *Field, a *terms.Candidate, finding bool) float64 {
	lambda := p.lambda(finding)
	switch s {
	case Hard:
		return f.Exact.boost(a.V, f.idf(a.DocFreq))
	case Saturated:
		o := &f.Terms.Origins[a.Origin]
		return p.Strength.Saturated * a.V / (o.X * o.IDF)
	case Grouped:
		lambda = p.Strength.Grouped
	case Auto, Linear:
	}
	wj := f.Weighting().Of(f.idf(a.DocFreq))
	return lambda * a.V / (wj * wj)
}

// lambda returns λ of the linear form, where hits are only found by it or
// scored.
func (p *Plan) lambda(finding bool) float64 {
	if finding {
		return min(findRatio*p.Strength.Saturated, 1)
	}
	return p.Strength.Linear
}
