package form

import (
	"slices"

	"github.com/akin-search/akin/expand/dsl"
)

// A highlighter marks the words of the rewritten query. So that it marks those
// of the original, that goes in as the member highlight_query of "highlight":
// of the body, of a top_hits and of the inner hits of a collapse the query of
// the search, or any of its standard retrievers'; of the inner hits of nested,
// has_child and has_parent the query that stands with them.

// copyMarked copies bytes without clauses, with each highlight_query in them.
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
		// A highlighter sees all terms of a query but those in script_score or in
		// sets, and those of a linear field it may take for another field's. Those of
		// the first hits are not to be marked.
		if !p.MarkRelated || p.FindOnly || c.hasFeedback() || c.Scoring == Saturated || c.Scoring == Hard || c.Scoring == Vectors {
			return true
		}
	}
	return false
}

// marksTermsOf reports whether terms were added to a clause of the client.
func marksTermsOf(c *ClausePlan, h *dsl.Highlight) bool {
	return c.Added() > 0 && !c.Segments && h.Covers(c.Parsed.At)
}

// highlight writes the original query, or any of several, with MarkRelated
// together with the added terms. The form hard changes a clause without any.
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
			for f := range c.Fields { // the added terms one by one
				for _, added := range c.Fields[c.lead(f)].Added {
					if added.In(f) {
						w.term(c.Fields[f].Name, added.Term, 1)
					}
				}
			}
		}
	}
	if several {
		w.put(`]}}`)
	}
	w.clauses = before // it is no part of what the engine counts
	if !h.Empty {
		w.put(",")
	}
}
