package form

import (
	"strconv"

	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A Rewriting is a rewritten search: its body with other queries for some
// clauses.
type Rewriting struct {
	plan *Plan
	tree *query.Tree
	// first are the queries of the clauses, nil for those that stay; last are those
	// of the rescore and of all that follows the query.
	first, last []*query.Query
}

// Rewrite makes the queries of a plan.
func (p *Plan) Rewrite(t *query.Tree) Rewriting {
	n := len(p.Clauses)
	queries := make([]*query.Query, 2*n)
	r := Rewriting{plan: p, tree: t, first: queries[:n], last: queries[n:]}
	added := p.added()
	for i := range p.Clauses {
		c := &p.Clauses[i]
		if !c.Changed() {
			continue
		}
		var few [2]division
		divided := p.divisions(few[:0], c, added)
		found := p.Rescore && c.Rescored && c.SameMatches() && !c.HasReadings() && !p.NameAdded // by the original
		if !found && (!p.Rescore || c.Parsed.At.End <= p.Search.Query.End) {
			r.first[i] = p.query(t, c, divided, true)
		}
		if p.Rescore && c.Parsed.At.Start >= p.Search.Query.Start {
			r.last[i] = p.query(t, c, divided, false)
		}
	}
	r.keepWholes(r.first)
	r.keepWholes(r.last)
	return r
}

// keepWholes writes the client's query string alone where none of its parts is
// rewritten.
func (r Rewriting) keepWholes(queries []*query.Query) {
	clauses := r.plan.Clauses
	for i := range clauses {
		whole, n := clauses[i].Parsed, i+1
		for n < len(clauses) && whole.At.Holds(clauses[n].Parsed.At) && queries[n] == nil {
			n++
		}
		if !whole.Whole.IsZero() && (n == len(clauses) || !whole.At.Holds(clauses[n].Parsed.At)) {
			queries[i] = r.tree.Raw(whole.Whole.Of(r.plan.Search.Body), 0)
		}
	}
}

// query returns the query that replaces a clause. first says that it is the
// first copy of the clause, the only one with names.
func (p *Plan) query(t *query.Tree, c *Clause, divided []division, first bool) *query.Query {
	w := builder{Tree: t, plan: p, c: c, divided: divided, scoring: c.Scoring, named: p.NameAdded && first}
	switch {
	case p.FindOnly || first && c.Rescored:
		w.scoring, w.role = Linear, finding
	case c.Rescored:
		w.role = ordering
	}
	q := w.clause()
	if w.named && c.tooDeep(q) {
		w.flat = true
		q = w.clause()
	}
	return q
}

func (c *Clause) tooDeep(q *query.Query) bool { return c.Parsed.Depth+q.Depth() > maxLevels }

// TooDeep reports whether a clause would be nested too deep if the plan had it
// alone, which is at least as deep as among others. It tries the deeper half of
// clauses: no form needs as many levels.
func (p *Plan) TooDeep(t *query.Tree, c *Clause) bool {
	if c.Parsed.Depth < maxLevels/2 {
		return false
	}
	divided := p.divisions(nil, c, c.Added())
	return c.tooDeep(p.query(t, c, divided, true)) || c.Rescored && c.tooDeep(p.query(t, c, divided, false))
}

// Leaves returns an upper estimate of the search's clauses as the engine counts
// them. Query and rescore count separately, highlights not at all.
func (r Rewriting) Leaves() int {
	n := r.plan.Search.ClauseCount
	for i := range r.plan.Clauses {
		if c := &r.plan.Clauses[i]; !c.Changed() {
			n += c.leaves()
		}
	}
	return n + max(sum(r.first, (*query.Query).Leaves), sum(r.last, (*query.Query).Leaves))
}

func sum(queries []*query.Query, of func(*query.Query) int) (n int) {
	for _, q := range queries {
		if q != nil {
			n += of(q)
		}
	}
	return n
}

// Body returns the search as bytes.
func (r Rewriting) Body() []byte {
	p, at := r.plan, r.plan.Search.Query
	room := len(p.Search.Body) + sum(r.first, (*query.Query).Size)
	if !p.Rescore {
		return r.copy(make([]byte, 0, room), 0, len(p.Search.Body), r.first)
	}
	const rescore = `,"query":{"query_weight":` + queryWeight + `,"rescore_query_weight":1,"rescore_query":`
	room += 2*len(rescore) + at.Len() + sum(r.last, (*query.Query).Size)
	b := append(r.copy(make([]byte, 0, room), 0, at.End, r.first), `,"rescore":{"window_size":`...)
	b = append(strconv.AppendInt(b, int64(p.Recipe.Window), 10), rescore...)
	b = r.copy(b, at.Start, at.End, r.last)
	return r.copy(append(b, `}}`...), at.End, len(p.Search.Body), r.last)
}

// copy copies bytes of the body and replaces every clause and highlight in
// them. No clause or highlight may cross start or end.
func (r Rewriting) copy(b []byte, start, end int, queries []*query.Query) []byte {
	for i := range r.plan.Clauses {
		at := r.plan.Clauses[i].Parsed.At
		if queries[i] != nil && (jsonspan.Span{Start: start, End: end}).Holds(at) {
			b = queries[i].Append(r.copyMarked(b, start, at.Start))
			start = at.End
		}
	}
	return r.copyMarked(b, start, end)
}

// copyMarked copies bytes without clauses, and adds the highlight_query
// members.
func (r Rewriting) copyMarked(b []byte, start, end int) []byte {
	p, body := r.plan, r.plan.Search.Body
	for i := range p.Search.Highlights {
		h := &p.Search.Highlights[i]
		if start >= h.At || h.At > end || !p.marks(h) {
			continue
		}
		b = append(append(b, body[start:h.At]...), `"highlight_query":`...)
		b = p.highlighted(r.tree, h).Append(b)
		if !h.Empty {
			b = append(b, ',')
		}
		start = h.At
	}
	return append(b, body[start:end]...)
}
