package form

import (
	"slices"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/terms"
)

// A highlighter marks the words of the rewritten query. To make it mark those
// of the original, akin adds the original as member highlight_query of
// "highlight". In a body, in top_hits and in the inner hits of a collapse, that
// is the query of the search, or of any of its standard retrievers. In the
// inner hits of nested, has_child and has_parent it is the query next to them.

// copyMarked copies bytes without clauses, and adds the highlight_query
// members.
func (w *writer) copyMarked(start, end int) {
	for i := range w.plan.Search.Highlights {
		h := &w.plan.Search.Highlights[i]
		if start >= h.At || h.At > end || !w.plan.marks(h) {
			continue
		}
		w.out = append(w.out, w.plan.Search.Body[start:h.At]...)
		start = h.At
		w.highlight(h)
	}
	w.out = append(w.out, w.plan.Search.Body[start:end]...)
}

// marks reports whether the query that the highlighter sees was rewritten.
func (p *Plan) marks(h *dsl.Highlight) bool {
	if p.Unscored {
		return false
	}
	if h.Replaced(p.Search.Body) {
		return true
	}
	for i := range p.Clauses {
		c := &p.Clauses[i]
		if !c.Changed() || !h.Covers(c.Parsed.At) {
			continue
		}
		// A highlighter sees all terms of a query except those in script_score or in
		// sets. It may take the terms of a linear field for another field's. Terms of
		// the first hits must not be marked.
		if !p.MarkRelated || p.FindOnly || c.hasFeedback() || c.HasBeside() || c.Scoring == Saturated || c.Scoring == Hard || c.Scoring == Vectors {
			return true
		}
	}
	return false
}

// marksTermsOf reports whether terms were added to a clause of the client's
// own.
func marksTermsOf(c *ClausePlan, h *dsl.Highlight) bool {
	return c.Writes() && !c.Segments && h.Covers(c.Parsed.At)
}

// highlight writes the original query, or any of several, and with MarkRelated
// also the added terms. The form hard can change a clause without added terms.
func (w *writer) highlight(h *dsl.Highlight) {
	before := w.clauses
	related := w.plan.MarkRelated && slices.ContainsFunc(w.plan.Clauses, func(c ClausePlan) bool { return marksTermsOf(&c, h) })
	several := related || len(h.Queries) > 1
	w.put(`"highlight_query":`)
	if several {
		w.put(`{"bool":{"should":[`)
	}
	for i := range h.Queries {
		if i > 0 {
			w.comma()
		}
		w.put(h.Query(i, w.plan.Search.Body))
	}
	for i := range w.plan.Clauses {
		if c := &w.plan.Clauses[i]; related && marksTermsOf(c, h) {
			for f := range c.Fields { // write the added terms one by one
				for _, added := range c.Fields[c.lead(f)].Added {
					if added.In(f) {
						w.term(c.Fields[f].Name, added.Term, 1)
					}
				}
			}
			c.eachAlternative(func(i int, a *terms.Alternative, _ float64) { w.alternative(&c.Clause, i, a, 1, "") })
		}
	}
	if several {
		w.put(`]}}`)
	}
	w.clauses = before // the engine does not count it
	if !h.Empty {
		w.put(",")
	}
}
