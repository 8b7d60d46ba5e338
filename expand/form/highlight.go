package form

import (
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
)

// A highlighter marks the words of the rewritten query. To make it mark those
// of the original, akin adds the original as member highlight_query of
// "highlight". In a body, in top_hits and in the inner hits of a collapse, that
// is the query of the search, or of any of its standard retrievers. In the
// inner hits of nested, has_child and has_parent it is the query next to them.

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
func marksTermsOf(c *Clause, h *dsl.Highlight) bool {
	return c.Writes() && c.Parsed.Role != dsl.InSegments && h.Covers(c.Parsed.At)
}

// highlighted returns the original query, or any of several, and with
// MarkRelated also the added terms. The form hard can change a clause without
// added terms.
func (p *Plan) highlighted(t *query.Tree, h *dsl.Highlight) *query.Query {
	related := p.MarkRelated && slices.ContainsFunc(p.Clauses, func(c Clause) bool { return marksTermsOf(&c, h) })
	if !related && len(h.Queries) == 1 {
		return t.Raw(h.Query(0, p.Search.Body), 0)
	}
	q := t.Bool()
	for i := range h.Queries {
		q.Should(t.Raw(h.Query(i, p.Search.Body), 0))
	}
	for i := range p.Clauses {
		c := &p.Clauses[i]
		if !related {
			break
		}
		if c.Parsed.Role != dsl.Note && c.Parsed.Role != dsl.InSegments && h.Covers(c.Parsed.At) && strings.Contains(c.Parsed.Path, "_score.query.") {
			// Beside a phrase the unified highlighter does not see what is in
			// function_score and script_score.
			q.Should(t.Raw(c.Parsed.At.Of(p.Search.Body), 0))
		}
		if !marksTermsOf(c, h) {
			continue
		}
		for f := range c.Fields { // the added terms one by one
			for _, term := range in(f, c.Fields[c.lead(f)].Added) {
				q.Should(t.Term(c.Fields[f].Name, term, 1, ""))
			}
		}
		w := builder{Tree: t, c: c}
		c.eachAlternative(func(i int, a *terms.Alternative, _ float64) { q.Should(w.alternative(i, a, 1, "")) })
	}
	return q
}
