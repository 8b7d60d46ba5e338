package form

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A buffer is JSON being written. Its queries are the same for all engines.
type buffer struct {
	out []byte
	// clauses counts the written leaf queries, as the engines count them.
	clauses int
}

// A text is a string to be written in quotes.
type text string

// put writes JSON: strings and bytes as they are, texts in quotes, and numbers
// with 32 bits, as the engines read them. It panics on other types.
func (b *buffer) put(parts ...any) {
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			b.out = append(b.out, p...)
		case []byte:
			b.out = append(b.out, p...)
		case text:
			// AppendQuote fails only on invalid UTF-8, and then has written it repaired.
			// The index has no such term, so it finds nothing.
			b.out, _ = jsontext.AppendQuote(b.out, p)
		case float64:
			b.out = strconv.AppendFloat(b.out, min(p, math.MaxFloat32), 'g', -1, 32)
		default:
			panic("form: a part of a type that put does not write")
		}
	}
}

// comma writes a comma unless the last byte begins an element.
func (b *buffer) comma() {
	if last := b.out[len(b.out)-1]; last != '[' && last != '{' && last != ':' && last != ',' {
		b.out = append(b.out, ',')
	}
}

// term writes a term query with its boost, after a comma if needed.
func (b *buffer) term(field, term string, boost float64) { b.namedTerm(field, term, boost, "") }

// namedTerm is like term, with a name, or "" for none.
func (b *buffer) namedTerm(field, term string, boost float64, name string) {
	b.comma()
	b.put(`{"term":{`, text(field), `:{"value":`, text(term))
	b.boost(boost)
	if name != "" {
		b.put(`,"_name":`, text(name))
	}
	b.put(`}}}`)
	b.clauses++
}

// boost writes the boost of a query as its last member, unless it is 1.
func (b *buffer) boost(factor float64) {
	if factor != 1 {
		b.put(`,"boost":`, factor)
	}
}

// Older versions of Lucene turn a set of up to smallSet terms into a boolean
// query and count each of its clauses.
const smallSet = 16

// termSet writes a query that scores boost if a document contains any of the
// added terms of field i.
func (b *buffer) termSet(field string, i int, added []terms.Candidate, boost float64) {
	b.comma()
	b.put(`{"terms":{`, text(field), `:[`)
	n := 0
	for k := range added {
		if added[k].In(i) {
			b.comma()
			b.put(text(added[k].Term))
			n++
		}
	}
	b.put(`]`)
	b.boost(boost)
	b.put(`}}`)
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
	// finding says that the hits are only found, and a rescore orders them.
	finding bool
}

// A clauseWriter writes the replacement of one clause.
type clauseWriter struct {
	*buffer

	plan    *Plan
	c       *ClausePlan
	divided []division // of the fields of c
	scoring Scoring    // the form being written
	role    role
	named   bool // added terms are written with names
}

// A role is the purpose of a written clause.
type role uint8

const (
	whole    role = iota // find and order hits
	finding              // find hits that something else orders, so few terms are scored
	ordering             // order hits that are already found
)

// original writes the original clause between before and after. The readings of
// a phrase are as good as the phrase.
func (w *clauseWriter) original(before, after string) {
	c, query := w.c, w.c.Parsed.At.Of(w.plan.Search.Body)
	if w.clauses += c.count(); !c.Phrase || !c.HasAlternatives() {
		w.put(before, query, after)
		return
	}
	w.put(before, `{"dis_max":{"queries":[`, query)
	c.eachAlternative(func(i int, a *terms.Alternative, idf float64) {
		f, text := &c.Fields[i], 0.0
		for _, o := range f.Terms.Origins {
			text += o.X * f.weight(o.IDF)
		}
		w.alternative(&c.Clause, i, a, c.Parsed.Boost*f.Boost*text/f.weight(idf), w.alternativeName(f, a))
	})
	w.put(`]}}`, after)
}

// originalFor writes the original for field i alone, one of several, which is
// not expanded.
func (w *clauseWriter) originalFor(i int) {
	f := &w.c.Fields[i]
	w.comma()
	// The query is an object that was read before, so Members cannot fail.
	_ = jsonspan.Members(w.c.Parsed.At.Of(w.plan.Search.Body), func(kind, options []byte) error {
		w.put(`{`, text(kind), `:{"fields":[`, boosted(f.Name, f.Boost), `]`)
		err := jsonspan.Members(options, func(name, value []byte) error {
			if string(name) != "fields" {
				w.put(`,`, text(name), `:`, value)
			}
			return nil
		})
		w.put(`}}`)
		return err
	})
	w.clauses += w.c.countField(i)
}

// boosted returns the name of a field with its boost, such as "title^3".
func boosted(name string, boost float64) text {
	return text(name + "^" + strconv.FormatFloat(boost, 'g', -1, 32))
}

// beginFields begins the queries of n fields of a clause, combined as the
// clause combines its fields. endFields ends them.
func (w *clauseWriter) beginFields(n int) {
	if n < 2 {
		return
	}
	w.comma()
	w.put(`{"dis_max":{"tie_breaker":`, w.c.Parsed.TieBreaker, `,"queries":[`)
}

func (w *clauseWriter) endFields(n int) {
	if n > 1 {
		w.put(`]}}`)
	}
}
