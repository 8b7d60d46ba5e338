package form

import "github.com/akin-search/akin/expand/terms"

// countedWords writes a query for documents with as many words of the text as
// the clause requires. A neighbor counts as its word. The words must be in one
// of the fields, or for a term-centric clause in any of them.
func (w *clauseWriter) countedWords() {
	c := w.c
	if c.TermCentric {
		w.words(0, len(c.Fields))
		return
	}
	for i := range c.Fields {
		if c.Fields[i].Analysis != nil {
			w.words(i, i+1)
		}
	}
}

// words writes a group for each word, in the fields from first to before end.
func (w *clauseWriter) words(first, end int) {
	lead := &w.c.Fields[first]
	a := lead.Analysis
	w.comma()
	w.put(`{"bool":{"should":[`)
	for k := range a.Terms {
		if k > 0 && a.Positions[k] == a.Positions[k-1] {
			continue // written with the first term of the position
		}
		w.comma()
		w.put(`{"bool":{"should":[`)
		for m := k; m < len(a.Terms) && a.Positions[m] == a.Positions[k]; m++ {
			for i := first; i < end; i++ {
				w.termOrRelated(i, i-first, lead, a.Terms[m])
			}
		}
		w.put(`]}}`)
	}
	w.put(`]`)
	w.minimumShouldMatch(lead)
	w.put(`}}`)
}

// termOrRelated writes a term of the text and the terms added for it in field
// at of the clause, the i-th of those that share lead's selection. In the form
// hard these are all its neighbors except the other terms of the text, which
// count themselves.
func (w *clauseWriter) termOrRelated(at, i int, lead *Field, term string) {
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
	w.anyOf(w.c.Fields[at].Name, i, either)
	lead.hostedBy(origin, func(a *terms.Alternative) {
		if a.In(i) > 0 {
			w.alternative(&w.c.Clause, at, a, 1, "")
		}
	})
}

// minimumShouldMatch writes how many words of f must match. Engines ignore the
// option for one word and with the operator "and".
func (w *clauseWriter) minimumShouldMatch(f *Field) {
	c := w.c
	switch {
	case f.Words() < 2 || !c.Counted():
	case c.Parsed.OperatorAnd:
		w.put(`,"minimum_should_match":"100%"`)
	default:
		w.put(`,"minimum_should_match":`, c.Parsed.MinimumShouldMatch)
	}
}
