package form

import (
	"slices"
	"strings"
	"unicode"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/terms"
)

// hostedBy calls f for each alternative that stands for origin k.
func (f *Field) hostedBy(k int, visit func(a *terms.Alternative)) {
	if f.Reason != "" {
		return
	}
	for n := range f.Alternatives {
		if a := &f.Alternatives[n]; slices.Contains(a.Hosts, k) {
			visit(a)
		}
	}
}

// isHost reports whether an alternative stands for origin k.
func (f *Field) isHost(k int) bool {
	host := false
	f.hostedBy(k, func(*terms.Alternative) { host = true })
	return host
}

// share returns how much of the score of an alternative counts, where its hosts
// have the idf given: the score is then that of the hosts, times β.
func (f *Field) share(a *terms.Alternative, hosts float64) float64 {
	if f.Weighting() == terms.One {
		return a.Similarity
	}
	return a.Similarity * hosts / a.IDF
}

// alternative writes the query of an alternative, with a comma if one is due.
func (b *buffer) alternative(f *Field, a *terms.Alternative, boost float64, name string) {
	if len(a.Terms) == 1 {
		b.namedTerm(f.Name, a.Terms[0], boost, name)
		return
	}
	b.comma()
	plain := f.Analysis.Phrases == mapping.ByPositions &&
		!slices.ContainsFunc(a.Terms, func(t string) bool { return t == "" || strings.ContainsFunc(t, unicode.IsSpace) })
	if plain {
		// The terms are those of the index: they must not be analyzed again.
		b.put(`{"match_phrase":{`, text(f.Name), `:{"query":`, text(strings.Join(a.Terms, " ")), `,"analyzer":"whitespace"`)
	} else {
		// With index_phrases a phrase of two words has another idf, and "whitespace"
		// would divide a term with a blank.
		b.put(`{"span_near":{"clauses":[`)
		gap := 0
		for _, t := range a.Terms {
			if t == "" {
				gap++
				continue
			}
			if gap > 0 {
				b.comma()
				b.put(`{"span_gap":{`, text(f.Name), `:`, float64(gap), `}}`)
				gap = 0
			}
			b.comma()
			b.put(`{"span_term":{`, text(f.Name), `:`, text(t), `}}`)
		}
		b.put(`],"slop":0,"in_order":true`)
	}
	b.boost(boost)
	if name != "" {
		b.put(`,"_name":`, text(name))
	}
	if plain {
		b.put(`}`)
	}
	b.put(`}}`)
	b.clauses += len(a.Terms)
}

// anyAlternative writes the alternatives of origin k in field f, in a filter.
func (b *buffer) anyAlternative(f *Field, k int) {
	f.hostedBy(k, func(a *terms.Alternative) { b.alternative(f, a, 1, "") })
}
