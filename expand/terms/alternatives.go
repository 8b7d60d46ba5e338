package terms

import (
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// MaxAlternatives is how many alternatives a text has at most: what engines
// take in a query by default.
const MaxAlternatives = 1024

// An Expression is one that the matrix has and that stands in the text.
type Expression struct {
	Term    string // as in the matrix, see [simmatrix.Expression]
	Origins []int  // the numbers of its terms in the text, each once
	Row     simmatrix.Row
}

// An Alternative is what stands for words of a text: an expression, a word
// for an expression, or a word that is as good as another. Each of the
// words that it stands for is its host: a document with the alternative
// counts as one with the host, in the saturation of the host, so that a
// document with both forms does not count twice.
type Alternative struct {
	Term string // as in the matrix
	For  string // what it stands for, as in the matrix
	// Terms are its index terms by position, "" for none: one, if it is a word.
	Terms []string
	Hosts []int // the numbers of the origins
	// Similarity is its β: so much of an occurrence of the host one of the
	// alternative is. 1 is exact.
	Similarity float64
	// IDF is the sum of the idfs of its terms, as the engine has it for a phrase.
	IDF float64
}

// Recognize returns the expressions of a text that has reports to be in the
// matrix, from left to right, of those that begin at one word the longest,
// and none that overlaps another. terms and positions are those that t was
// read from. Words that share a position are in no expression.
func (t Text) Recognize(terms []string, positions []int, has func(expression string) bool) (found []Expression) {
	for first := 0; first < len(terms); first++ {
		if stacked(positions, first) > 1 {
			continue
		}
		most := first + 1
		for most < len(terms) && most < first+simmatrix.MaxExpressionTerms && stacked(positions, most) == 1 {
			most++
		}
		for end := most; end >= first+2; end-- {
			expression, err := simmatrix.Expression(terms[first:end], positions[first:end])
			if err != nil || !has(expression) {
				continue
			}
			e := Expression{Term: expression}
			for _, term := range terms[first:end] {
				if k := t.Index(term); !slices.Contains(e.Origins, k) {
					e.Origins = append(e.Origins, k)
				}
			}
			found = append(found, e)
			first = end - 1
			break
		}
	}
	return found
}

// isAlternative reports whether a neighbor is an alternative rather than a
// candidate.
func isAlternative(n simmatrix.Neighbor) bool {
	return n.Similarity == 1 || simmatrix.IsExpression(n.Term)
}

// alternative adds what stands for the words of some hosts, unless the text
// has it itself.
func (sel *Selection) alternative(n simmatrix.Neighbor, from string, hosts []int) {
	said := func(e Expression) bool { return e.Term == n.Term }
	if sel.Origins.Index(n.Term) >= 0 || slices.ContainsFunc(sel.Expressions, said) {
		return
	}
	s := float64(n.Similarity)
	for k := range sel.Alternatives {
		if a := &sel.Alternatives[k]; a.Term == n.Term && slices.Equal(a.Hosts, hosts) {
			a.Similarity = max(a.Similarity, s)
			return
		}
	}
	if len(sel.Alternatives) == MaxAlternatives {
		return
	}
	terms := []string{n.Term}
	if simmatrix.IsExpression(n.Term) {
		terms = simmatrix.ExpressionTerms(n.Term)
	}
	sel.Alternatives = append(sel.Alternatives, Alternative{Term: n.Term, For: from, Terms: terms, Hosts: hosts, Similarity: s})
}

// collectAlternatives adds the alternatives of the text's expressions and
// words. Those of expressions come first, and of each the nearest.
func (sel *Selection) collectAlternatives() {
	if sel.NoAlternatives {
		return
	}
	for _, e := range sel.Expressions {
		for n := range e.Row.All() {
			sel.alternative(n, e.Term, e.Origins)
		}
	}
	for i := range sel.Origins {
		o := &sel.Origins[i]
		if o.Nearest != nil {
			continue // whose row is that of another word
		}
		for n := range o.Row.All() {
			if isAlternative(n) {
				sel.alternative(n, o.Term, []int{i})
			}
		}
	}
}

// settleAlternatives sets the idfs of the alternatives from the document
// frequencies of their terms, in the order of [Selection.Terms], and drops
// those with a term that no document has. An origin that no document has
// takes the idf of the most frequent alternative that stands for it alone.
func (sel *Selection) settleAlternatives(docs int64, docFreqs []int64) {
	at, kept := len(sel.Origins)+len(sel.Candidates), sel.Alternatives[:0]
	for _, a := range sel.Alternatives {
		absent := false
		for _, term := range a.Terms {
			if term == "" {
				continue
			}
			absent = absent || docFreqs[at] == 0
			a.IDF += simmatrix.IDF(docFreqs[at], docs)
			at++
		}
		if absent {
			sel.leaveOut(LeftOut{a.Term, a.Hosts[0], a.Similarity, false})
			continue
		}
		kept = append(kept, a)
	}
	sel.Alternatives = kept
	for i := range sel.Origins {
		if docFreqs[i] > 0 {
			continue
		}
		best := 0.0
		for _, a := range kept {
			if len(a.Hosts) == 1 && a.Hosts[0] == i && (best == 0 || a.IDF < best) {
				best = a.IDF
			}
		}
		if best > 0 {
			sel.Origins[i].IDF = best
		}
	}
}
