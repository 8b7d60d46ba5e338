package spelling

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
)

// Limits of the search near a word, as in the engines' fuzziness AUTO.
const (
	// shortestWord and shortestTwo are the lengths in runes from which a known
	// word may be one edit and two edits away: shorter words are near to many.
	shortestWord = 5
	shortestTwo  = 6
	// shortestPart is the length of the shortest word of a compound.
	shortestPart = 3
	// longestWord limits the time per word.
	longestWord = 64
	// MaxWordBytes is the length of the longest known word.
	MaxWordBytes = longestWord * utf8.UTFMax
	// WordBytes is about the memory of a word, besides its own bytes.
	WordBytes = 75
	// nearWords limits the nearest words that are compared by document frequency.
	nearWords = 1000
)

// Words are the words of a vocabulary that documents have, to find the one
// spelled most like another word. They never change: concurrent use is safe.
type Words struct {
	tree     *termTree
	docFreqs []uint32
	within   [3]Options // by number of edits
}

// IsWord reports whether a term of a vocabulary is a known word.
func IsWord(term string, docFreq uint32) bool {
	return docFreq > 0 && len(term) <= MaxWordBytes && letters(term) && !simmatrix.IsExpression(term)
}

// NewWords returns the known words of a vocabulary, or nil. Terms are valid,
// distinct and in ascending byte order, with their document frequencies. Words
// take under 75 bytes each, besides the bytes of the terms.
func NewWords(terms []string, docFreqs []uint32) *Words {
	w := new(Words)
	for edits := range w.within {
		w.within[edits] = DefaultOptions()
		w.within[edits].Neighbors, w.within[edits].MaxDistance = nearWords, edits
	}
	var known []string
	for i, term := range terms {
		if IsWord(term, docFreqs[i]) {
			known, w.docFreqs = append(known, term), append(w.docFreqs, docFreqs[i])
		}
	}
	if len(known) == 0 {
		return nil
	}
	w.tree = newTermTree(known)
	return w
}

// Nearest returns the known word spelled most like an unknown one or, if none
// is near, the two words that it consists of, with the similarity by the
// formula of [DefaultOptions]; ties by larger document frequency, then in byte
// order. Swapping two adjacent letters is one edit. Words of 5 letters may be
// one edit away, longer ones two, without a change of the first letter. Nothing
// is near words with digits, apostrophes or points, under 5 letters, or over
// 64.
func (w *Words) Nearest(word string) (known []string, similarity float32) {
	length := utf8.RuneCountInString(word)
	if length < shortestWord || length > longestWord || !letters(word) || strings.ContainsAny(word, "'’.") {
		return nil, 0
	}
	best := w.near(word, 1)
	if best.Units == 0 && length >= shortestTwo {
		best = w.near(word, 2)
	}
	if best.Units > 0 {
		return []string{w.tree.terms[best.Col]}, simmatrix.FromUnits(best.Units)
	}
	if first, second := w.compound(word); first >= 0 { // a missing blank
		return []string{w.tree.terms[first], w.tree.terms[second]}, simmatrix.FromUnits(w.within[1].units(1, length+1))
	}
	return nil, 0
}

// letters reports whether a word has no digit: numbers and product names are
// not misspellings of others.
func letters(word string) bool {
	for _, r := range word {
		if unicode.IsDigit(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// near returns the nearest word within edits, of equals the one in most
// documents, or the zero Entry.
func (w *Words) near(word string, edits int) (best simmatrix.Entry) {
	whole, rest := newEditSearcher(w.tree, &w.within[edits]), newEditSearcher(w.tree, &w.within[edits-1])
	take := func(found ...simmatrix.Entry) {
		best = slices.MaxFunc(append(found, best), func(a, b simmatrix.Entry) int {
			return cmp.Or(cmp.Compare(a.Units, b.Units), cmp.Compare(w.docFreqs[a.Col], w.docFreqs[b.Col]), cmp.Compare(b.Col, a.Col))
		})
	}
	take(whole.near(word, 0, edits > 1, 0)...)
	runes := []rune(word)
	for i := edits - 1; i < len(runes)-1; i++ { // two edits do not change the first letter
		runes[i], runes[i+1] = runes[i+1], runes[i]
		take(rest.near(string(runes), 1, true, max(best.Units, 1)-1)...)
		runes[i], runes[i+1] = runes[i+1], runes[i]
	}
	return best
}

// compound returns the two words that a word consists of, or -1; of several
// pairs, the one whose rarer word is in most documents.
func (w *Words) compound(word string) (first, second int) {
	first, second = -1, -1
	rarer := uint32(0)
	for at := range word {
		a, b := word[:at], word[at:]
		if utf8.RuneCountInString(a) < shortestPart || utf8.RuneCountInString(b) < shortestPart {
			continue
		}
		i, ok := slices.BinarySearch(w.tree.terms, a)
		if !ok {
			continue
		}
		if k, ok := slices.BinarySearch(w.tree.terms, b); ok && min(w.docFreqs[i], w.docFreqs[k]) > rarer {
			first = i
			second = k
			rarer = min(w.docFreqs[i], w.docFreqs[k])
		}
	}
	return first, second
}
