package expand

import "math"

// hard writes the measure of a clause.
func (w *writer) hard(c *clause) {
	n := 0
	for i := range c.targets {
		if c.targets[i].exact != nil {
			n++
		}
	}
	w.beginFields(c, n)
	for i := range c.targets {
		t := &c.targets[i]
		if t.exact == nil {
			continue
		}
		// A single field needs no count of its own where the original decides
		// what is found; of several, one may match and another must not score.
		count := c.groups() && (n > 1 || !w.same(c))
		w.comma()
		if count {
			w.raw(`{"bool":{"filter":[`)
			w.groups(c, c.targets[i:i+1])
			w.raw(`],"should":[`)
		}
		w.measure(t, c.boost*t.boost)
		if count {
			w.raw(`]}}`)
		}
	}
	w.endFields(n)
}

// measure writes the measure of one field, times boost.
func (w *writer) measure(t *target, boost float64) {
	x := t.exact
	w.raw(`{"function_score":{"query":{"bool":{"should":[`)
	for i := range t.sel.origins {
		o := &t.sel.origins[i]
		w.comma()
		w.term(x.linear.Field, o.term, boost*x.boost(o.v, o.idf))
	}
	for k := range t.sel.candidates {
		c := &t.sel.candidates[k]
		w.comma()
		w.term(x.linear.Field, c.term, boost*w.boost(FormHard, t, c))
	}
	w.raw(`]}},"field_value_factor":{"field":`)
	w.string(x.linear.Norm)
	w.raw(`,"modifier":"reciprocal","missing":`)
	w.number(x.linear.Missing)
	w.raw(`},"boost_mode":"multiply"}}`)
}

// related writes the terms that are related to one of the text, which is origin
// i of lead, for field t: all of its neighbors but the other terms of the text,
// which stand for themselves.
func (w *writer) related(t, lead *target, i int) {
	sel := &lead.sel
	slot := sel.slots()
	for _, e := range sel.entries {
		if e.origin != i || e.candidate < 0 || slot[e.candidate] < 0 {
			continue
		}
		w.comma()
		w.term(t.field, sel.candidates[slot[e.candidate]].term, 1)
	}
}

// weakest returns the target whose last added term brings least to the scores
// of the search, nil where none is left.
func (j *job) weakest() *target {
	var weakest *target
	scan, least := &j.scanner.scan, math.Inf(1)
	for i := range scan.clauses {
		c := &scan.clauses[i]
		for k := range c.targets {
			t := &c.targets[k]
			n := len(t.sel.candidates)
			if t.exact == nil || n == 0 {
				continue
			}
			if v := c.boost * t.boost * t.sel.candidates[n-1].v / t.exact.norm; v <= least {
				weakest, least = t, v
			}
		}
	}
	return weakest
}

// cutExactly takes back the n added terms that bring least, as far as there are
// so many. It reports whether there were any.
func (j *job) cutExactly(n int) bool {
	for k := range n {
		t := j.weakest()
		if t == nil {
			return k > 0
		}
		t.sel.candidates, t.truncated = t.sel.candidates[:len(t.sel.candidates)-1], true
	}
	return n > 0
}

// onlyMatch writes a search without scores, which only looks for what is
// related. Before, it was written as if it had scores, so that as many terms
// fit in: it finds what a search with scores finds.
func (j *job) onlyMatch(w *writer) {
	scan := &j.scanner.scan
	for i := range scan.clauses {
		if c := &scan.clauses[i]; c.exact && c.added() == 0 {
			c.leave(ReasonNoNeighbors)
		}
	}
	w.unscored = true
	j.write(w)
}
