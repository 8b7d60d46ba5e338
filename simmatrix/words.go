package simmatrix

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// TermsOf returns the terms for words, by word: the term that people write so,
// else the term of that name, else the one with that other form. Other words
// are missing.
func (m *Matrix) TermsOf(words ...string) map[string]string {
	return TermsOf(words, m.Forms(), m.Has)
}

// TermsOf is [Matrix.TermsOf] for terms and forms from elsewhere, in any order;
// has reports whether there is a term.
func TermsOf(words []string, forms iter.Seq2[string, string], has func(term string) bool) map[string]string {
	written := make(map[string]string, len(words)) // the term of each word, "" if none so far
	for _, word := range words {
		written[word] = ""
	}
	others := maps.Clone(written)
	note := func(terms map[string]string, form, term string) {
		if before, asked := terms[form]; asked && (before == "" || term < before) {
			terms[form] = term
		}
	}
	for term, form := range forms {
		most, _ := SplitForm(form)
		note(written, most, term)
		for _, other := range OtherForms(form) {
			note(others, other, term)
		}
	}
	for word, term := range written {
		if term == "" && has(word) {
			term = word
		}
		if term = cmp.Or(term, others[word]); term == "" {
			delete(written, word)
			continue
		}
		written[word] = term
	}
	return written
}

// LookUp returns the term for a word, as it is or in lower case, from terms by
// word, see [TermsOf]. If there is none it returns the word, and the nearest
// spelling.
func LookUp(word string, terms map[string]string, near func(word string) string) (term, nearest string) {
	lower := strings.ToLower(word)
	term = cmp.Or(terms[word], terms[lower])
	if term == "" {
		return word, near(lower)
	}
	return term, ""
}

// Nearest returns the form or term of m spelled most like word, see
// [NearestOf].
func (m *Matrix) Nearest(word string) string {
	written := make([]string, len(m.table.Terms))
	for i, term := range m.table.Terms {
		written[i] = m.Written(term)
	}
	return NearestOf(word, slices.Values(written))
}

// NearestOf returns which of words is spelled most like word, the first in byte
// order of equals: within two edits, or one if word has up to four letters. It
// returns "" if there is none.
func NearestOf(word string, words iter.Seq[string]) (nearest string) {
	const short = 4
	length, most := utf8.RuneCountInString(word), 2
	if length <= short {
		most = 1
	}
	for other := range words {
		if n := utf8.RuneCountInString(other) - length; max(n, -n) > most {
			continue
		}
		if d := levenshtein.ComputeDistance(word, other); d < most || d == most && (nearest == "" || other < nearest) {
			nearest, most = other, d
		}
	}
	return nearest
}
