package simmatrix

import (
	"iter"
	"slices"
	"strings"
)

// Tokens are what an analyzer makes of a text, in the order of positions.
type Tokens struct {
	Terms     []string
	Positions []int // ascending; those that share one are variants of a word
	Lengths   []int // how many positions each spans; nil for one
}

// maxPaths is how many paths of the same number of tokens are looked at: all
// where six words in a row have two variants.
const maxPaths = 64

// end returns the position after a token.
func (t *Tokens) end(k int) int {
	if t.Lengths == nil {
		return t.Positions[k] + 1
	}
	return t.Positions[k] + max(t.Lengths[k], 1)
}

// after returns the number of the first token at this position or behind it.
func (t *Tokens) after(position int) int {
	k, _ := slices.BinarySearch(t.Positions, position)
	return k
}

// Paths yields the numbers of tokens that follow each other, one of those that
// share a position: from the position of token first on, from one to
// [MaxExpressionTerms] of them, the shorter first.
func (t *Tokens) Paths(first int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var paths [][]int
		follow := func(path []int, k int) {
			for m := k; m < len(t.Positions) && t.Positions[m] == t.Positions[k] && len(paths) < maxPaths; m++ {
				paths = append(paths, append(slices.Clip(path), m))
			}
		}
		follow(nil, first)
		for n := 1; n <= MaxExpressionTerms; n++ {
			shorter := paths
			paths = nil
			for _, path := range shorter {
				if !yield(path) {
					return
				}
				follow(path, t.after(t.end(path[n-1])))
			}
		}
	}
}

// Term returns the term of a matrix for the tokens of a path: an expression, if
// they are several.
func (t *Tokens) Term(path []int) (string, error) {
	terms, positions := make([]string, len(path)), make([]int, len(path))
	for k, m := range path {
		terms[k], positions[k] = t.Terms[m], t.Positions[m]
	}
	if len(terms) == 1 && !IsExpression(terms[0]) {
		return terms[0], CheckTerm(terms[0])
	}
	return Expression(terms, positions)
}

// maxReadings is how many terms of a matrix stand for a text.
const maxReadings = 8

// Readings returns the terms of a matrix that stand for the whole text, each
// once: one, or several where a word has variants, such as its stem beside it.
// The parts of a compound beside it are no variants. There is none if the text
// has no term, or is longer than an expression.
func (t *Tokens) Readings() (readings []string) {
	if n := len(t.Terms); n == 0 || n > maxPaths {
		return nil
	}
	own, end := t.withoutParts(), 0
	for k := range own.Positions {
		end = max(end, own.end(k))
	}
	for path := range own.Paths(0) {
		if own.end(path[len(path)-1]) < end {
			continue
		}
		term, err := own.Term(path)
		if err == nil && !slices.Contains(readings, term) {
			readings = append(readings, term)
		}
		if len(readings) == maxReadings {
			break
		}
	}
	return readings
}

// withoutParts leaves out the parts of compounds. An analyzer that divides
// these puts the parts at the position of the whole, one of them behind its
// beginning; a stem is its beginning.
func (t *Tokens) withoutParts() *Tokens {
	own := &Tokens{}
	for k, term := range t.Terms {
		whole, divided := "", false
		for m, other := range t.Terms {
			if t.Positions[m] == t.Positions[k] && t.end(m) == t.end(k) && len(other) > len(whole) {
				whole = other
			}
		}
		for m, other := range t.Terms {
			divided = divided || t.Positions[m] == t.Positions[k] && strings.Index(whole, other) > 0
		}
		if !divided || term == whole || !strings.Contains(whole, term) {
			own.Terms, own.Positions = append(own.Terms, term), append(own.Positions, t.Positions[k])
			own.Lengths = append(own.Lengths, t.end(k)-t.Positions[k])
		}
	}
	return own
}
