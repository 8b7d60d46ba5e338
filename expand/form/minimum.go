package form

import (
	"slices"

	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
)

// countedWords adds a query for documents with as many words of the text as the
// clause requires. A neighbor counts as its word. The words must be in one of
// the fields, or in any of them if the clause is term-centric or the engine
// splits the text.
func (w *builder) countedWords(to *query.Query) *query.Query {
	c := w.c
	if c.Parsed.TermCentric() || c.Parsed.Words > 0 {
		return to.Should(w.words(0, len(c.Fields)))
	}
	for i := range c.Fields {
		if c.Fields[i].Analysis != nil {
			to.Should(w.words(i, i+1))
		}
	}
	return to
}

// words returns a group for each word, in the fields from first to before end
// that are analyzed.
func (w *builder) words(first, end int) *query.Query {
	var words []*query.Query
	var minimum []byte
	for i := first; i < end; i++ {
		lead := &w.c.Fields[w.c.lead(i)]
		if lead.Analysis == nil {
			continue
		}
		minimum = w.minimum(lead)
		known := lead.words()
		for len(words) < len(known)+min(len(lead.Prefixes), 1) {
			words = append(words, w.Bool())
		}
		for _, begin := range lead.Prefixes {
			words[len(known)].Should(w.Prefix(w.c.Fields[i].Name, begin))
		}
		for k, word := range known {
			for _, term := range word {
				w.termOrRelated(words[k], i, i-w.c.lead(i), lead, term)
			}
		}
	}
	q := w.Bool()
	for _, word := range words {
		q.Should(word)
	}
	return q.Minimum(minimum)
}

// words returns the terms at each position of the text that must match.
func (f *Field) words() (words [][]string) {
	for k, term := range f.Analysis.Terms {
		if k == 0 || f.Analysis.Positions[k] != f.Analysis.Positions[k-1] {
			words = append(words, nil)
		}
		words[len(words)-1] = append(words[len(words)-1], term)
	}
	return slices.DeleteFunc(words, func(word []string) bool { return slices.Contains(f.Optional, word[0]) })
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
