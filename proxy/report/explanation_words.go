package report

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/akin-search/akin/expand"
)

// Forms returns the words that people write for terms of a matrix, as a clause
// names it, by term, those that differ.
type Forms func(ctx context.Context, matrix string, terms []string) map[string]string

// patience bounds the look-up of all words that are shown at once.
const patience = 2 * time.Second

// Show returns clauses with the words of all their terms. Forms may be nil.
func Show(ctx context.Context, clauses []expand.Explanation, forms Forms) []expand.Explanation {
	shown := make([]expand.Explanation, len(clauses))
	terms, words := map[string]map[string]bool{}, map[string]map[string]string{} // by matrix
	for i, c := range clauses {
		c.Added, c.LeftOut, c.Feedback = slices.Clone(c.Added), slices.Clone(c.LeftOut), slices.Clone(c.Feedback)
		c.Nearest = slices.Clone(c.Nearest)
		shown[i] = c
		of := terms[c.Matrix]
		if of == nil {
			of = map[string]bool{}
			terms[c.Matrix] = of
		}
		for _, term := range c.Terms {
			of[term] = true
		}
		eachListed(&c, func(term string, _ *string) { of[term] = true })
	}
	delete(terms, "") // no matrix has these
	if forms != nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for matrix, of := range terms {
			words[matrix] = forms(ctx, matrix, slices.Sorted(maps.Keys(of)))
		}
	}
	for i := range shown {
		c := &shown[i]
		of := words[c.Matrix]
		c.Words = wordsOfText(c, of)
		eachListed(c, func(term string, word *string) { *word = of[term] })
	}
	return shown
}

// eachListed calls f with each term that was added, left out or the nearest
// known one, and the place of its word.
func eachListed(c *expand.Explanation, f func(term string, word *string)) {
	for k := range c.Added {
		f(c.Added[k].Term, &c.Added[k].Word)
	}
	for k := range c.LeftOut {
		f(c.LeftOut[k].Term, &c.LeftOut[k].Word)
	}
	for k := range c.Nearest {
		f(c.Nearest[k].Known, &c.Nearest[k].Word)
	}
	for k := range c.Feedback {
		f(c.Feedback[k].Term, &c.Feedback[k].Word)
	}
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
