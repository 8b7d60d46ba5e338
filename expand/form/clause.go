package form

import (
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// A builder makes the query that replaces a clause.
type builder struct {
	*query.Tree

	plan    *Plan
	c       *Clause
	divided []division // of the fields of c
	scoring Scoring    // the form being written
	role    role
	named   bool // added terms are written with names
	flat    bool // there is no room for queries around names
	behind  bool // the hits of the clause as typed come first, by another query
}

// A role is the purpose of a written clause.
type role uint8

const (
	whole    role = iota // find and order hits
	finding              // find hits that something else orders, so few terms are scored
	ordering             // order hits that are already found
)

func (w *builder) clause() *query.Query {
	c, q := w.c, w.scored()
	if w.named && w.role == finding && w.onlyRescored() && !w.flat {
		q = w.nameRescored(q)
	}
	if w.plan.MatchOnly || w.role == finding { // also finding by feedback would double the price of a search
		return q
	}
	if c.HasBeside() {
		q = w.beside(q)
	}
	if c.hasFeedback() {
		q = w.feedback(q)
	}
	return q
}

// scored returns the clause in its form.
func (w *builder) scored() *query.Query {
	c := w.c
	var q *query.Query
	switch {
	case len(c.Vectors) > 0:
		return w.vectors()
	case !c.Writes() && !c.Exact, w.role == finding && c.SameMatches(), w.scoring == Linear && c.SameMatches() && c.Added() == 0:
		return w.original()
	case w.plan.MatchOnly, c.Parsed.Role == dsl.InFilter:
		q = w.matching()
	case w.plan.TypedFirst(c):
		return w.asTypedFirst()
	default:
		q = w.inForm()
	}
	return q.Times(w.norm())
}

// behindTyped is the factor of the scores of what only related words find,
// where the hits of the clause as typed come first. A hit as typed scores
// more than a ten-thousandth of the largest possible score, unless its words
// are in nearly all documents, its field is thousands of times as long as
// others, or the boosts of fields differ as much.
const behindTyped = 0.0001

// TypedFirst reports whether a clause is written so that its hits as typed come
// first.
func (p *Plan) TypedFirst(c *Clause) bool {
	return c.AsTypedFirst && (c.Added() > 0 || c.HasOptional()) && c.Parsed.Role != dsl.InFilter && !p.MatchOnly
}

// asTypedFirst returns the clause without its added terms, or if that does not
// match, with them:
//
//	in    {"match":{"f":{"query":"a b","operator":"and"}}}, c for a
//	out   {"dis_max":{"queries":[the original,{"bool":{…,"boost":0.0001}}]}}
func (w *builder) asTypedFirst() *query.Query {
	first := w.original()
	if w.c.HasAlternatives() {
		typed := *w
		typed.c = &Copied([]Clause{*w.c})[0]
		typed.named = false // a name belongs to one query
		typed.divided = make([]division, len(w.divided))
		for i := range typed.c.Fields {
			typed.c.Fields[i].Added = nil
		}
		first = typed.inForm().Times(typed.norm())
	}
	related := *w
	related.behind = true
	return w.Best().Should(first).Should(related.inForm().Times(related.norm() * behindTyped))
}

// matching returns the original and the related terms, without scores.
func (w *builder) matching() *query.Query {
	c, q := w.c, w.Bool().Should(w.original())
	if c.Counted() {
		return w.countedWords(q)
	}
	for i := range c.Fields {
		if added := c.Fields[c.lead(i)].Added; len(added) > 0 {
			q.Should(w.anyOf(c.Fields[i].Name, i, added))
		}
	}
	if !c.HasReadings() { // which are beside the original
		c.eachAlternative(func(i int, a *terms.Alternative, _ float64) { q.Should(w.alternative(i, a, 1, "")) })
	}
	return q
}

// found returns a bool that finds what the original finds, without its scores.
func (w *builder) found() *query.Query {
	// In a rescore the hits are found, and those of the original contain one of its
	// terms.
	ordered := w.role == ordering && !w.c.Counted()
	switch {
	case ordered && w.c.Parsed.Required(), ordered && w.c.Parsed.Part && w.c.Matches == dsl.Same: // a hit may be found by other parts
		return w.Bool()
	case w.c.SameMatches():
		return w.Bool().Filter(w.original())
	case w.behind, ordered:
		return w.Bool()
	}
	return w.Bool().Should(w.Bool().Filter(w.original()))
}

// counts reports whether each of n scoring fields counts the words itself.
// If the original decides which documents match, a single field needs no
// count of its own. Of several fields, one may match while another must not
// score. What is behind the hits as typed has been counted where it was
// found.
func (w *builder) counts(n int) bool {
	return w.c.Counted() && (n > 1 || !w.c.SameMatches()) && (!w.behind || w.role != ordering)
}

// feedback adds the terms of the first hits to the clause. They score documents
// that the clause finds, and find none themselves. share is the ratio of their
// largest scores to those of the text's terms.
func (w *builder) feedback(clause *query.Query) *query.Query {
	q, share := w.Bool().Must(clause), 0.0
	for i := range w.c.Fields {
		f := &w.c.Fields[i]
		for _, t := range f.Feedback {
			q.Should(w.added(f.Name, t.Term, w.c.Parsed.Boost*f.Boost*t.Boost))
			share += t.Boost * t.IDF / w.c.Fields[w.c.lead(i)].mass()
		}
	}
	if w.plan.Normalize {
		q.Times(1 / (1 + share))
	}
	return q
}

// set returns a query for the terms that only find documents in field i, or
// nil.
func (w *builder) set(i int) *query.Query {
	f, lead := &w.c.Fields[i], &w.divided[w.c.lead(i)]
	if w.role == ordering || len(lead.set) == 0 || w.behind { // which words and their groups find
		return nil
	}
	scale := f.Stats.Scale
	if scale == 0 { // not BM25
		scale = 1
	}
	boost := w.c.Parsed.Boost * f.Boost * scale * lead.setScore()
	here := in(i, lead.set)
	if !w.named || w.flat || len(here) == 0 { // engines match all documents with a bool query without clauses
		return w.Terms(f.Name, here, boost)
	}
	each := w.Bool()
	for _, term := range here {
		each.Should(w.added(f.Name, term, 1))
	}
	return w.Constant(each, boost)
}

// in returns the terms that field i has.
func in(i int, added []terms.Candidate) []string {
	here := make([]string, 0, len(added))
	for k := range added {
		if added[k].In(i) {
			here = append(here, added[k].Term)
		}
	}
	return here
}

// anyOf returns a query that finds any of the terms, in a filter.
func (w *builder) anyOf(field string, i int, added []terms.Candidate) *query.Query {
	if len(added) == 1 {
		return w.Term(field, added[0].Term, 1, "")
	}
	return w.Terms(field, in(i, added), 1)
}

// original returns the original clause. The readings of a phrase are as good as
// the phrase. In the score of one that ends in a prefix, the idfs of all terms
// that begin so count, so that the other words change it little.
func (w *builder) original() *query.Query {
	c := w.c
	client := w.Raw(c.Parsed.At.Of(w.plan.Search.Body), c.leaves())
	if !c.HasReadings() || !c.HasAlternatives() {
		return client
	}
	q := w.Best().Should(client)
	c.eachAlternative(func(i int, a *terms.Alternative, idf float64) {
		f, boost := &c.Fields[i], 1.0
		if !c.Parsed.Prefix {
			text := 0.0
			for _, o := range f.Terms.Origins {
				text += o.X * f.weight(o.IDF)
			}
			boost = text / f.weight(idf)
		}
		q.Should(w.namedAlternative(i, a, c.Parsed.Boost*f.Boost*boost))
	})
	return q
}

// originalFor returns the original for field i alone, one of several, which is
// not expanded.
func (w *builder) originalFor(i int) *query.Query {
	f := &w.c.Fields[i]
	return w.Raw(inField(w.c.Parsed.At.Of(w.plan.Search.Body), f.Name, f.Boost, "fields", "default_field"), w.c.leavesOf(i))
}

// several returns a query for the queries of several fields, combined as the
// clause combines its fields.
func (w *builder) several() *query.Query { return w.DisMax(w.c.Parsed.TieBreaker) }

// alternative returns the query of an alternative in field i of the clause.
func (w *builder) alternative(i int, a *terms.Alternative, boost float64, name string) *query.Query {
	field, slop := w.c.Fields[i].Name, 0.0
	if w.c.Parsed.Phrase {
		slop = w.c.Parsed.Slop
	}
	switch {
	case w.c.Parsed.Phrase && w.c.Parsed.Prefix:
		return w.PhrasePrefix(field, a.Terms, slop, w.c.Parsed.MaxExpansions, boost, name)
	case !a.Several():
		return w.Term(field, a.Terms[0], boost, name)
	case a.Span:
		return w.Span(field, a.Terms, slop, boost, name)
	}
	return w.Phrase(field, a.Terms, slop, boost, name)
}

func (w *builder) namedAlternative(i int, a *terms.Alternative, boost float64) *query.Query {
	return w.alternative(i, a, boost, w.name(w.c.Fields[i].Name, simmatrix.Spelled(a.Term)))
}
