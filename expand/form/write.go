package form

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A buffer is JSON that is being written. The queries in it are the same for
// all engines.
type buffer struct {
	out []byte
	// clauses counts the queries written that have no queries in them, as the
	// engines count them.
	clauses int
}

func (b *buffer) raw(s string) { b.out = append(b.out, s...) }

func (b *buffer) string(s string) {
	// AppendQuote fails only on invalid UTF-8 and then has written it mended;
	// such a term is not in the index and finds nothing.
	b.out, _ = jsontext.AppendQuote(b.out, s)
}

// number writes v as the 32-bit number that the engines read.
func (b *buffer) number(v float64) {
	b.out = strconv.AppendFloat(b.out, min(v, math.MaxFloat32), 'g', -1, 32)
}

// comma writes a comma unless the last byte begins something.
func (b *buffer) comma() {
	if last := b.out[len(b.out)-1]; last != '[' && last != '{' && last != ':' && last != ',' {
		b.out = append(b.out, ',')
	}
}

// term writes a term query with its boost, with a comma where one is due.
func (b *buffer) term(field, term string, boost float64) {
	b.comma()
	b.raw(`{"term":{`)
	b.string(field)
	b.raw(`:{"value":`)
	b.string(term)
	if boost != 1 {
		b.raw(`,"boost":`)
		b.number(boost)
	}
	b.raw(`}}}`)
	b.clauses++
}

// Older versions of Lucene make a boolean query of a set of up to so many
// terms, and count each of its clauses.
const smallSet = 16

// termSet writes a query that scores boost where any of the terms added for
// field i is.
func (b *buffer) termSet(field string, i int, added []terms.Candidate, boost float64) {
	b.comma()
	b.raw(`{"terms":{`)
	b.string(field)
	b.raw(`:[`)
	n := 0
	for k := range added {
		if added[k].In(i) {
			b.comma()
			b.string(added[k].Term)
			n++
		}
	}
	b.raw(`]`)
	if boost != 1 {
		b.raw(`,"boost":`)
		b.number(boost)
	}
	b.raw(`}}`)
	if n > smallSet {
		n = 1
	}
	b.clauses += n
}

// anyOf writes a query that finds any of the terms, in a filter.
func (b *buffer) anyOf(field string, i int, added []terms.Candidate) {
	if len(added) == 1 {
		b.term(field, added[0].Term, 1)
		return
	}
	b.termSet(field, i, added, 1)
}

type writer struct {
	buffer

	plan      *Plan
	divisions []division // of the fields of all clauses
	// finding says that hits are only found, which a rescore orders.
	finding bool
}

// Write returns the rewritten body and estimates from above how many clauses
// the query then has for the engine: since Lucene 9 the queries without others
// in them, in script_score too; before, the direct clauses of each bool, which
// are not more. Those of the query and of the rescore count separately. memory
// is what an earlier call returned, or nil.
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
		w.raw(`,"rescore":{"window_size":`)
		w.number(RescoreWindow)
		w.raw(`,"query":{"query_weight":` + queryWeight + `,"rescore_query_weight":1,"rescore_query":`)
		w.copy(query.Start, query.End)
		w.raw(`}}`)
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

// copy copies bytes of the body, with every clause and highlight in them as it
// is written. None stands across start or end.
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
		cw := clauseWriter{&w.buffer, w.plan, c, divided, c.Scoring, whole}
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
