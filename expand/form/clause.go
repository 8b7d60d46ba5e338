package form

import (
	"slices"

	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

func (w *clauseWriter) write() {
	c := w.c
	if !w.plan.MatchOnly && w.role != finding && c.hasFeedback() { // also finding by feedback would double the price of a search
		w.put(`{"bool":{"must":[`)
		defer w.feedback()
	}
	if !w.plan.MatchOnly && w.role != finding && c.HasBeside() {
		w.beginBeside()
		defer w.endBeside()
	}
	if w.named && w.role == finding && w.onlyRescored() {
		w.put(`{"bool":{"must":[`)
		defer w.nameRescored()
	}
	switch {
	case len(c.Vectors) > 0:
		w.vectors()
		return
	case !c.Writes() && !c.Exact, w.role == finding && c.SameMatches, w.scoring == Linear && c.SameMatches && c.Added() == 0:
		w.original("", "")
		return
	case w.plan.MatchOnly, c.Filters:
		w.matching()
		return
	case w.scoring == Linear:
		w.linear()
		return
	case c.SameMatches:
		w.original(`{"bool":{"filter":[`, `],"should":[`)
	case w.role == ordering && !c.Counted():
		// The hits are already found, and whatever the original matches contains one
		// of its terms.
		w.put(`{"bool":{"should":[`)
	default:
		// In its own filter the original finds what it finds and adds nothing to the
		// score.
		w.original(`{"bool":{"should":[{"bool":{"filter":[`, `]}}`)
	}
	w.fields()
	w.end()
}

// matching writes the original and the related terms, without scores.
func (w *clauseWriter) matching() {
	c := w.c
	w.original(`{"bool":{"should":[`, "")
	if c.Counted() {
		w.countedWords()
	} else {
		for i := range c.Fields {
			if added := c.Fields[c.lead(i)].Added; len(added) > 0 {
				w.anyOf(c.Fields[i].Name, i, added)
			}
		}
		if !c.Phrase { // whose readings are beside the original
			c.eachAlternative(func(i int, a *terms.Alternative, _ float64) { w.alternative(&c.Clause, i, a, 1, "") })
		}
	}
	w.end()
}

// feedback writes the terms of the first hits after the clause. They score
// documents that the clause finds, and find none themselves. share is the ratio
// of their largest scores to those of the text's terms.
func (w *clauseWriter) feedback() {
	w.put(`],"should":[`)
	share := 0.0
	for i := range w.c.Fields {
		f := &w.c.Fields[i]
		for _, t := range f.Feedback {
			w.added(f.Name, t.Term, w.c.Parsed.Boost*f.Boost*t.Boost)
			share += t.Boost * t.IDF / w.c.Fields[w.c.lead(i)].mass()
		}
	}
	w.put(`]`)
	if w.plan.Normalize {
		w.boost(1 / (1 + share))
	}
	w.put(`}}`)
}

func (w *clauseWriter) linear() {
	c := w.c
	switch {
	case c.SameMatches:
		w.original(`{"bool":{"must":[`, `],"should":[`)
	case c.Counted():
		w.original(`{"bool":{"filter":[{"bool":{"should":[`, "")
		w.countedWords()
		w.put(`]}}],"should":[`)
		w.original("", "")
	default:
		w.original(`{"bool":{"should":[`, "")
	}
	if c.TermCentric {
		w.termCentric()
	} else {
		w.fields()
	}
	w.end()
}

// termCentric writes each added term once, scored by its best field.
func (w *clauseWriter) termCentric() {
	c := w.c
	lead := &w.divided[0]
	w.alternatives(0)
	for k := range lead.scored {
		a := &lead.scored[k]
		n := 0
		for i := range c.Fields {
			if a.In(i) {
				n++
			}
		}
		w.beginFields(n)
		for i := range c.Fields {
			if f := &c.Fields[i]; a.In(i) { // the engine multiplies by the idf of this field
				w.added(f.Name, a.Term, c.Parsed.Boost*f.Boost*w.plan.linearBoost(f, a, a.FieldIDFs[i], w.role == finding))
			}
		}
		w.endFields(n)
	}
	if len(lead.set) > 0 {
		w.beginFields(len(c.Fields))
		for i := range c.Fields {
			w.set(i)
		}
		w.endFields(len(c.Fields))
	}
}

// set writes the terms that only find documents in field i.
func (w *clauseWriter) set(i int) {
	f, lead := &w.c.Fields[i], &w.divided[w.c.lead(i)]
	if w.role == ordering || len(lead.set) == 0 {
		return
	}
	scale := f.Stats.Scale
	if scale == 0 { // not BM25
		scale = 1
	}
	boost := w.c.Parsed.Boost * f.Boost * scale * lead.setScore()
	here := slices.ContainsFunc(lead.set, func(a terms.Candidate) bool { return a.In(i) }) // engines match all documents with a bool query without clauses
	if w.named && here && !w.c.TooDeep(Saturated) {                                        // the names need as many levels
		w.namedSet(f.Name, i, lead.set, boost)
	} else {
		w.termSet(f.Name, i, lead.set, boost)
	}
}

// fields writes the scoring part of a clause.
func (w *clauseWriter) fields() {
	c := w.c
	n := 0
	for i := range c.Fields {
		if w.written(&c.Fields[i]) {
			n++
		}
	}
	// If the original decides which documents match, a single field needs no count
	// of its own. Of several fields, one may match while another must not score.
	count := w.scoring != Linear && c.Counted() && (n > 1 || !c.SameMatches)
	w.beginFields(n)
	for i := range c.Fields {
		f := &c.Fields[i]
		switch {
		case !w.written(f):
		case w.scoring == Hard:
			w.exact(i, count)
		case w.scoring != Linear && f.Analysis == nil:
			w.originalFor(i)
		case n == 1 && !count:
			w.field(i, false)
		default:
			w.comma()
			w.put(`{"bool":{"should":[`)
			w.field(i, count)
			w.put(`]`)
			if count {
				w.minimumShouldMatch(f)
			}
			w.put(`}}`)
		}
	}
	w.endFields(n)
}

// field writes the queries of field i. repeat says that a repeated term is
// written several times, so that the engine counts it as often.
func (w *clauseWriter) field(i int, repeat bool) {
	f := &w.c.Fields[i]
	boost := w.c.Parsed.Boost * f.Boost
	defer w.set(i)
	if w.scoring == Linear {
		w.alternatives(i)
		scored := w.divided[i].scored
		for k := range scored {
			a := &scored[k]
			w.added(f.Name, a.Term, boost*w.plan.linearBoost(f, a, f.idf(a.DocFreq), w.role == finding))
		}
		return
	}
	for k := range f.Terms.Origins {
		o := &f.Terms.Origins[k]
		times, x := 1, w.plan.times(w.scoring, f, o)
		if repeat {
			times, x = int(o.X), x/o.X
		}
		for range times {
			w.comma()
			w.group(i, k, x*boost)
		}
	}
}

// The sources of the two scripts of the saturated form. They never change and
// take params, so an engine compiles each once.
const (
	// scriptInvert turns a BM25 score s = m·tf/(tf+K), m = scale·idf, into b·tf/K.
	// c < 1 is an upper bound for s/m, because the inverse has a pole at 1.
	scriptInvert = "double r = Math.min(_score / params.m, params.c); return params.b * r / (1 - r)"
	// scriptSaturate is BM25's saturation of y = Σ b·tf/K: m·y/(1+y).
	scriptSaturate = "return params.m * _score / (1 + _score)"
)

// maxRatio is the param c of [scriptInvert]. Scores are 32-bit floats: above
// maxRatio the inverse would lose more than three digits. It corresponds to tf
// = 999·K, which no text reaches.
const maxRatio = 0.999

// group writes origin k of field i with its neighbors, with its score
// multiplied by boost.
func (w *clauseWriter) group(i, k int, boost float64) {
	f, added := &w.c.Fields[i], w.divided[i].scored
	if w.role == ordering {
		added = w.divided[i].rescored
	}
	o, related := &f.Terms.Origins[k], slices.ContainsFunc(added, func(a terms.Candidate) bool { return a.CountsAs(k) })
	switch {
	case !related && !f.isHost(k):
		w.term(f.Name, o.Term, boost)
	case w.scoring == Saturated:
		w.put(`{"script_score":{"query":{"bool":{"should":[`)
		f.inverted(w.buffer, o.Term, o.IDF, 1, "")
		for n := range added {
			if a := &added[n]; a.CountsAs(k) {
				w.comma()
				f.inverted(w.buffer, a.Term, f.idf(a.DocFreq), w.plan.Boost(Saturated, f, a), w.name(f.Name, a.Term))
			}
		}
		f.hostedBy(k, func(a *terms.Alternative) {
			w.comma()
			w.put(`{"script_score":{"query":`)
			w.alternative(&w.c.Clause, i, a, 1, w.alternativeName(f, a))
			w.invert(f.Stats.Scale*a.IDF, a.Similarity)
		})
		w.put(`]}},"script":{"source":"`+scriptSaturate+`","params":{"m":`, boost*f.Stats.Scale*o.IDF, `}}}}`)
	default:
		w.put(`{"dis_max":{"tie_breaker":`, tieOrigin, `,"queries":[`)
		w.term(f.Name, o.Term, boost)
		f.hostedBy(k, func(a *terms.Alternative) {
			w.alternative(&w.c.Clause, i, a, boost*a.Similarity*f.weight(o.IDF)/f.weight(a.IDF), w.alternativeName(f, a))
		})
		if related {
			w.put(`,{"dis_max":{"tie_breaker":`, tieNeighbors, `,"queries":[`)
			for n := range added {
				if a := &added[n]; a.CountsAs(k) {
					w.added(f.Name, a.Term, boost/w.plan.times(Grouped, f, o)*w.plan.Boost(Grouped, f, a))
				}
			}
			w.put(`]}}`)
		}
		w.put(`]}}`)
	}
}

// inverted writes a term whose score is b·tf/K, see [scriptInvert].
func (f *Field) inverted(w *buffer, term string, idf, b float64, name string) {
	w.put(`{"script_score":{"query":`)
	w.namedTerm(f.Name, term, 1, name)
	w.invert(f.Stats.Scale*idf, b)
}

// invert writes the script of a query with the largest score m, see
// [scriptInvert], and ends it.
func (b *buffer) invert(m, times float64) {
	b.put(`,"script":{"source":"`+scriptInvert+`","params":{"m":`, m, `,"c":`, maxRatio, `,"b":`, times, `}}}}`)
}

// alternatives writes those of field i where scores are sums: for the same
// words the best of them, with β times the score of these words. To order hits,
// a document that has all of these words gets nothing more. Where words are
// counted, one that the original does not find gets the score of the words that
// it has. In a term-centric clause the best field counts.
func (w *clauseWriter) alternatives(i int) {
	c, f, end := w.c, &w.c.Fields[i], i+1
	if c.TermCentric {
		end = len(c.Fields)
	}
	if f.Reason != "" || c.Phrase { // whose readings are beside the original
		return
	}
	inFields := func(idf func(at int) float64, write func(at int, boost, weight float64)) {
		fields := make([]int, 0, end-i)
		for at := i; at < end; at++ {
			if idf(at) > 0 {
				fields = append(fields, at)
			}
		}
		w.beginFields(len(fields))
		for _, at := range fields { // the engine multiplies by the idf of this field
			write(at, c.Parsed.Boost*c.Fields[at].Boost, f.weight(idf(at)))
		}
		w.endFields(len(fields))
	}
	groups := f.hosted()
	for _, g := range groups {
		w.comma()
		if w.role != finding {
			w.put(`{"bool":{"must":[`)
		}
		if len(g.by) > 1 {
			w.put(`{"dis_max":{"queries":[`)
		}
		score := 0.0
		for _, o := range g.hosts {
			score += o.X * f.weight(o.IDF)
		}
		for _, a := range g.by {
			inFields(a.In, func(at int, boost, weight float64) {
				w.alternative(&c.Clause, at, a, boost*a.Similarity*score/weight, w.alternativeName(&c.Fields[at], a))
			})
		}
		if len(g.by) > 1 {
			w.put(`]}}`)
		}
		if w.role == finding {
			continue
		}
		w.put(`],"must_not":[{"bool":{"filter":[`)
		for _, o := range g.hosts {
			w.beginFields(len(c.Fields))
			for at := range c.Fields {
				w.term(c.Fields[at].Name, o.Term, 1)
			}
			w.endFields(len(c.Fields))
		}
		w.put(`]}}]}}`)
	}
	if w.role == finding || !c.Counted() || len(groups) == 0 || len(groups) == 1 && len(groups[0].hosts) == len(f.Terms.Origins) {
		return
	}
	w.comma()
	w.original(`{"bool":{"must_not":[`, `],"should":[`)
	for k := range f.Terms.Origins {
		o := &f.Terms.Origins[k]
		inFields(o.In, func(at int, boost, weight float64) {
			w.term(c.Fields[at].Name, o.Term, boost*o.X*(f.weight(o.IDF)/weight))
		})
	}
	w.put(`]}}`)
}

func (w *clauseWriter) alternativeName(f *Field, a *terms.Alternative) string {
	return w.name(f.Name, simmatrix.Spelled(a.Term))
}

// written reports whether the field takes part in scoring. In the linear form
// only fields with something added do, because the original scores its own
// terms.
func (w *clauseWriter) written(f *Field) bool {
	switch w.scoring {
	case Linear:
		return len(f.Added)+len(f.Alternatives) > 0
	case Hard:
		return f.Exact != nil
	case Auto, Grouped, Saturated, Vectors:
	}
	return true
}

func (w *clauseWriter) end() {
	w.put(`]`)
	if w.plan.Normalize && !w.plan.MatchOnly && w.scoring != Hard {
		w.boost(w.norm())
	}
	w.put(`}}`)
}
