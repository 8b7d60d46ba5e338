package form

import (
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
)

// countedWords adds a query for documents with as many words of the text as the
// clause requires. A neighbor counts as its word. The words must be in one of
// the fields, or for a term-centric clause in any of them.
func (w *builder) countedWords(to *query.Query) *query.Query {
	c := w.c
	if c.Parsed.TermCentric() {
		return to.Should(w.words(0, len(c.Fields)))
	}
	for i := range c.Fields {
		if c.Fields[i].Analysis != nil {
			to.Should(w.words(i, i+1))
		}
	}
	return to
}

// words returns a group for each word, in the fields from first to before end.
func (w *builder) words(first, end int) *query.Query {
	lead, q := &w.c.Fields[first], w.Bool()
	a := lead.Analysis
	for k := range a.Terms {
		if k > 0 && a.Positions[k] == a.Positions[k-1] {
			continue // written with the first term of the position
		}
		word := w.Bool()
		for m := k; m < len(a.Terms) && a.Positions[m] == a.Positions[k]; m++ {
			for i := first; i < end; i++ {
				w.termOrRelated(word, i, i-first, lead, a.Terms[m])
			}
		}
		q.Should(word)
	}
	return q.Minimum(w.minimum(lead))
}

// termOrRelated adds a term of the text and the terms added for it in field at
// of the clause, the i-th of those that share lead's selection. In the form
// hard these are all its neighbors except the other terms of the text, which
// count themselves.
func (w *builder) termOrRelated(to *query.Query, at, i int, lead *Field, term string) {
	either, origin := []terms.Candidate{{Term: term}}, lead.Terms.Origins.Index(term)
	if lead.Exact != nil {
		lead.Terms.Related(origin, lead.Added, func(a *terms.Candidate) { either = append(either, *a) })
	} else {
		for _, a := range lead.Added {
			if a.CountsAs(origin) {
				either = append(either, a)
			}
		}
	}
	to.Should(w.anyOf(w.c.Fields[at].Name, i, either))
	lead.hostedBy(origin, func(a *terms.Alternative) {
		if a.In(i) > 0 {
			to.Should(w.alternative(at, a, 1, ""))
		}
	})
}

// minimum returns how many words of f must match, as JSON, or nil. Engines
// ignore the option for one word and with the operator "and".
func (w *builder) minimum(f *Field) []byte {
	c := w.c
	switch {
	case f.Words() < 2 || !c.Counted():
		return nil
	case c.Parsed.OperatorAnd:
		return []byte(`"100%"`)
	}
	return c.Parsed.MinimumShouldMatch
}
