package form

import "github.com/akin-search/akin/internal/jsonspan"

// Write returns the rewritten body and an upper estimate of its clauses as the
// engine counts them. Since Lucene 9 these are the leaf queries, including
// those in script_score; before, the direct clauses of each bool, which are not
// more. Query and rescore count separately. memory is the body of an earlier
// call, for reuse, or nil.
func (p *Plan) Write(memory []byte) (body []byte, clauses int) {
	w := writer{plan: p, divisions: p.divisions()}
	if w.out = memory[:0]; memory == nil {
		w.out = make([]byte, 0, p.room())
	}
	at, first := 0, 0
	if query := p.Search.Query; p.Rescore {
		w.finding = true
		w.copy(0, query.End)
		at, first = query.End, w.clauses
		w.clauses, w.finding = 0, false
		w.put(`,"rescore":{"window_size":`, float64(p.Recipe.Window), `,"query":{"query_weight":`+queryWeight+`,"rescore_query_weight":1,"rescore_query":`)
		w.copy(query.Start, query.End)
		w.put(`}}`)
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

// The approximate size of one added term in the saturated form and in the
// others, and of its name.
const (
	bytesSaturated = 270
	bytesPerTerm   = 70
	bytesPerName   = 40
)

func (p *Plan) room() int {
	n := len(p.Search.Body) + 4*p.Search.Query.Len()
	for i := range p.Search.Highlights {
		n += p.Search.Highlights[i].Len()
	}
	perTerm := bytesPerTerm
	if p.NameAdded {
		perTerm += bytesPerName
	}
	for i := range p.Clauses {
		c := &p.Clauses[i]
		if c.Scoring == Saturated {
			n += c.Added() * bytesSaturated
		}
		if c.Scoring != Saturated || p.Rescore {
			n += c.Added() * perTerm
		}
	}
	return n
}

// copy copies bytes of the body and replaces every clause and highlight in
// them. No clause or highlight may cross start or end.
func (w *writer) copy(start, end int) {
	divisions := w.divisions
	for i := range w.plan.Clauses {
		c := &w.plan.Clauses[i]
		at, divided := c.Parsed.At, divisions[:len(c.Fields)]
		divisions = divisions[len(c.Fields):]
		if !c.Changed() || !(jsonspan.Span{Start: start, End: end}).Holds(at) {
			continue
		}
		w.copyMarked(start, at.Start)
		// Of two copies of a query, only the first has names.
		named := w.plan.NameAdded && w.finding == w.plan.Rescore
		cw := clauseWriter{&w.buffer, w.plan, c, divided, c.Scoring, whole, named}
		switch {
		case w.plan.FindOnly || w.finding && c.Rescored:
			cw.scoring, cw.role = Linear, finding
		case c.Rescored:
			cw.role = ordering
		}
		cw.write()
		start = at.End
	}
	w.copyMarked(start, end)
}
