package explain

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/akin-search/akin/expand"
)

// A ShownClause is what became of a clause, with the words that people write for
// index terms, such as "gas" for "ga".
type ShownClause struct {
	expand.Explanation

	// Words has those of the terms of the clause's text, by term, where they are
	// others.
	Words    map[string]string `json:"words,omitempty"`
	Added    []ShownAdded      `json:"added,omitempty"`
	Feedback []ShownFeedback   `json:"feedback,omitempty"`
}

// ShownAdded is a term that was added, with its word where that is another.
type ShownAdded struct {
	expand.Added

	Word string `json:"word,omitempty"`
}

// ShownFeedback is the same of a term of the first hits.
type ShownFeedback struct {
	expand.AddedFeedback

	Word string `json:"word,omitempty"`
}

// Forms returns the words that people write for terms of a matrix, as a clause
// names it, by term, those that differ.
type Forms func(ctx context.Context, matrix string, terms []string) map[string]string

// patience bounds the look-up of all words that are shown at once.
const patience = 2 * time.Second

// A ShownExplanation is an Explanation with the words of its terms.
type ShownExplanation struct {
	Explanation

	Clauses []ShownClause `json:"clauses"`
}

// Show looks up the words of all terms of a search.
func (e Explanation) Show(ctx context.Context, forms Forms) ShownExplanation {
	return ShownExplanation{e, Show(ctx, e.Clauses, forms)}
}

// Show looks up the words of all terms of clauses; without forms there are none.
func Show(ctx context.Context, clauses []expand.Explanation, forms Forms) []ShownClause {
	words := map[string]map[string]string{} // by matrix
	if forms != nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for matrix, terms := range termsOf(clauses) {
			words[matrix] = forms(ctx, matrix, slices.Sorted(maps.Keys(terms)))
		}
	}
	shown := make([]ShownClause, len(clauses))
	for i, c := range clauses {
		s, of := &shown[i], words[c.Matrix]
		s.Explanation = c
		for _, term := range slices.Concat(c.Terms, c.NoRow) {
			if word := of[term]; word != "" {
				if s.Words == nil {
					s.Words = map[string]string{}
				}
				s.Words[term] = word
			}
		}
		for _, a := range c.Added {
			s.Added = append(s.Added, ShownAdded{a, of[a.Term]})
		}
		for _, f := range c.Feedback {
			s.Feedback = append(s.Feedback, ShownFeedback{f, of[f.Term]})
		}
	}
	return shown
}

// termsOf returns the terms that clauses name, by matrix.
func termsOf(clauses []expand.Explanation) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, c := range clauses {
		if c.Matrix == "" {
			continue
		}
		if all[c.Matrix] == nil {
			all[c.Matrix] = map[string]bool{}
		}
		for _, term := range c.Terms {
			all[c.Matrix][term] = true
		}
		for _, a := range c.Added {
			all[c.Matrix][a.Term] = true
		}
		for _, f := range c.Feedback {
			all[c.Matrix][f.Term] = true
		}
	}
	return all
}
