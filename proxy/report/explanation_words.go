package report

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/akin-search/akin/expand"
)

// A ShownClause is what became of a clause, with the words that people write
// for index terms, such as "gas" for "ga".
type ShownClause struct {
	expand.Explanation

	// Words has those of the terms of the clause's text, as they are there where
	// that is known, by term, where they are others.
	Words    map[string]string `json:"words,omitempty"`
	Added    []ShownAdded      `json:"added,omitempty"`
	LeftOut  []ShownLeftOut    `json:"left_out,omitempty"`
	Feedback []ShownFeedback   `json:"feedback,omitempty"`
}

// ShownAdded is a term that was added, with its word where that is another.
type ShownAdded struct {
	expand.Added

	Word string `json:"word,omitempty"`
}

// ShownLeftOut is the same of a neighbor that was left out.
type ShownLeftOut struct {
	expand.LeftOut

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

// Show looks up the words of all terms of clauses. Forms may be nil.
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
		s.Explanation, s.Words = c, wordsOfText(&c, of)
		for _, a := range c.Added {
			s.Added = append(s.Added, ShownAdded{a, of[a.Term]})
		}
		for _, l := range c.LeftOut {
			s.LeftOut = append(s.LeftOut, ShownLeftOut{l, of[l.Term]})
		}
		for _, f := range c.Feedback {
			s.Feedback = append(s.Feedback, ShownFeedback{f, of[f.Term]})
		}
	}
	return shown
}

// wordsOfText returns the words of the terms of a clause's text, as they are
// there or else those of people.
func wordsOfText(c *expand.Explanation, of map[string]string) map[string]string {
	words := map[string]string{}
	for k, term := range c.Terms {
		word := of[term]
		if k < len(c.Written) {
			word = cmp.Or(c.Written[k], word)
		}
		if word != "" && word != term {
			words[term] = word
		}
	}
	return words
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
		for _, l := range c.LeftOut {
			all[c.Matrix][l.Term] = true
		}
		for _, f := range c.Feedback {
			all[c.Matrix][f.Term] = true
		}
	}
	return all
}
