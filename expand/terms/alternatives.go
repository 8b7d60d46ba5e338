package terms

import (
	"slices"
	"strings"
	"unicode"

	"github.com/akin-search/akin/simmatrix"
)

// MaxAlternatives is how many alternatives a text has at most: what engines
// take in a query by default.
const MaxAlternatives = 1024

// An Expression is one that the matrix has and that stands in the text.
type Expression struct {
	Term    string // as in the matrix, see [simmatrix.Expression]
	Origins []int  // the numbers of the terms at its positions in the text, each once
	Place   Place
	Row     simmatrix.Row

	words int // how many terms it has
}

// A Place is the numbers of the first term of a part of a text and of the one
// after its last.
type Place struct{ Start, End int }

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
	Place Place // where in the text what it stands for is first
	// Similarity is its β: so much of an occurrence of the host one of the
	// alternative is. 1 is exact.
	Similarity float64
	// Span says that it is searched as a span, not as a phrase: an analyzer would
	// not give its terms, or the field has terms for pairs of words.
	Span bool
	// IDF is the sum of the idfs of its terms, as the engine has it for a phrase; for
	// a span each term counts once. FieldIDFs are those of the fields of the
	// selection, 0 in those that lack one of the terms; nil for a single field, see
	// [Selection.SettleFields].
	IDF       float64
	FieldIDFs []float64

	place int       // that of its terms in the document frequencies that settled it
	idfs  []float64 // those of Terms, 0 for none
}

// sum returns the idf of the whole from those of its terms.
func (a *Alternative) sum() (sum float64) {
	for k, idf := range a.idfs {
		if !a.Span || !slices.Contains(a.Terms[:k], a.Terms[k]) {
			sum += idf
		}
	}
	return sum
}

// isSpan reports whether terms cannot be searched as a phrase.
func (sel *Selection) isSpan(terms []string) bool {
	return len(terms) > 1 && (sel.Spans || slices.ContainsFunc(terms, divided))
}

// divided reports whether the analyzer "whitespace" makes something else of a
// term: it divides at blanks and control characters, and after 255 characters.
func divided(term string) bool {
	blank := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	return term == "" || len(term) > 255 || strings.ContainsFunc(term, blank)
}

// In returns the idf in field i, or 0 if the field lacks one of the terms.
func (a *Alternative) In(i int) float64 {
	if a.FieldIDFs == nil {
		return a.IDF
	}
	return a.FieldIDFs[i]
}

// Several reports whether the alternative is an expression.
func (a *Alternative) Several() bool { return len(a.Terms) > 1 }

// Recognize returns the expressions of a text that has reports to be in the
// matrix, from left to right, of those that begin at one word the longest,
// and none that overlaps another. terms and positions are those that t was
// read from. Terms that share a position are variants of a word, any of which
// may be that of the expression; all of them are its origins.
func (t Text) Recognize(terms []string, positions []int, has func(expression string) bool) (found []Expression) {
	text := simmatrix.Tokens{Terms: terms, Positions: positions}
	for first := 0; first < len(terms); first++ {
		if first > 0 && positions[first-1] == positions[first] {
			continue
		}
		e := Expression{Place: Place{Start: first}}
		for path := range text.Paths(first) {
			if len(path) < 2 || len(path) == e.words {
				continue
			}
			expression, err := text.Term(path)
			if err != nil || !has(expression) {
				continue
			}
			e.Term, e.words = expression, len(path)
			last := path[len(path)-1]
			e.Place.End = last + 1
			for e.Place.End < len(terms) && positions[e.Place.End] == positions[last] {
				e.Place.End++
			}
		}
		if e.words == 0 {
			continue
		}
		for _, term := range terms[first:e.Place.End] {
			if k := t.Index(term); !slices.Contains(e.Origins, k) {
				e.Origins = append(e.Origins, k)
			}
		}
		found = append(found, e)
		first = e.Place.End - 1
	}
	return found
}

// isAlternative reports whether a neighbor is an alternative rather than a
// candidate.
func isAlternative(n simmatrix.Neighbor) bool {
	return n.Similarity == 1 || simmatrix.IsExpression(n.Term)
}

// alternative adds what stands for the words of some hosts, unless the text
// has it elsewhere.
func (sel *Selection) alternative(n simmatrix.Neighbor, from string, hosts []int, at Place) {
	s := float64(n.Similarity)
	left := func(why Why) { sel.leaveOut(LeftOut{n.Term, from, s, why}) }
	said := func(e Expression) bool { return e.Term == n.Term }
	a := Alternative{Term: n.Term, For: from, Terms: []string{n.Term}, Hosts: hosts, Place: at, Similarity: s}
	if simmatrix.IsExpression(n.Term) {
		a.Terms = simmatrix.ExpressionTerms(n.Term)
		a.Span = sel.isSpan(a.Terms)
	}
	// "computer" stands for both words of "personal computer", but only where it is
	// as good. A text of "car automobile" names both forms itself.
	part := slices.ContainsFunc(hosts, func(k int) bool { return sel.Origins[k].Term == n.Term })
	switch {
	case slices.ContainsFunc(sel.Expressions, said), !part && sel.Origins.Index(n.Term) >= 0, part && s < 1, !sel.Phrase && sel.has(hosts, a.Terms):
		return
	case a.Several() && sel.NoExpressions != 0:
		left(sel.NoExpressions)
		return
	case !a.Several() && sel.NoAlternatives: // a candidate
		return
	}
	for k := range sel.Alternatives {
		if o := &sel.Alternatives[k]; o.Term == n.Term && slices.Equal(o.Hosts, hosts) {
			o.Similarity = max(o.Similarity, s)
			return
		}
	}
	if len(sel.Alternatives) == MaxAlternatives {
		left(Limited)
		return
	}
	sel.Alternatives = append(sel.Alternatives, a)
}

// has reports whether all hosts are among the terms of an alternative, so that
// a document with it has them anyway, but maybe not as a phrase.
func (sel *Selection) has(hosts []int, terms []string) bool {
	return !slices.ContainsFunc(hosts, func(k int) bool { return !slices.Contains(terms, sel.Origins[k].Term) })
}

// collectAlternatives adds the alternatives of the text's expressions and
// words. Those of expressions come first, and of each the nearest.
func (sel *Selection) collectAlternatives() {
	if sel.NoAlternatives && sel.NoExpressions == 0 {
		return
	}
	for _, e := range sel.Expressions {
		near := float32(1)
		for _, k := range e.Origins {
			if o := &sel.Origins[k]; !slices.Contains(simmatrix.ExpressionTerms(e.Term), o.Term) {
				near *= o.nearness()
			}
		}
		for n := range e.Row.All() {
			n.Similarity *= near
			sel.alternative(n, e.Term, e.Origins, e.Place)
		}
	}
	for i := range sel.Origins {
		o := &sel.Origins[i]
		if !o.alternatives || o.Nearest != nil && !o.InParts() { // which has the row of another word
			continue
		}
		for n := range o.Row.All() {
			if isAlternative(n) {
				sel.alternative(n, o.Term, []int{i}, Place{o.First, o.First + 1})
			}
		}
	}
}

// settleAlternatives sets the idfs of the alternatives from the document
// frequencies of their terms, in the order of [Selection.Terms], and drops
// those with a term that no document has, and words in more than most
// documents, unless they are exact. An origin that no document has takes the
// idf of the most frequent alternative that stands for it; several such
// origins share it.
func (sel *Selection) settleAlternatives(docs int64, docFreqs []int64, most float64) {
	at, kept := len(sel.Origins)+len(sel.Candidates), sel.Alternatives[:0]
	for _, a := range sel.Alternatives {
		a.place = at
		if a.IDF, at = a.idf(docs, docFreqs); a.IDF == 0 {
			sel.leaveOut(LeftOut{a.Term, a.For, a.Similarity, Absent})
			continue
		}
		if !a.Several() && a.Similarity < 1 && float64(docFreqs[a.place]) > most {
			sel.leaveOut(LeftOut{a.Term, a.For, a.Similarity, Frequent})
			continue
		}
		kept = append(kept, a)
	}
	sel.Alternatives = kept
	for i := range sel.Origins {
		if docFreqs[i] > 0 || sel.Origins[i].Nearest != nil {
			continue
		}
		best := 0.0
		for _, a := range kept {
			if idf := a.IDF / float64(len(a.Hosts)); slices.Contains(a.Hosts, i) && (best == 0 || idf < best) {
				best = idf
			}
		}
		if best > 0 {
			sel.Origins[i].IDF = best
		}
	}
}

// idf returns the sum of the idfs of the terms of an alternative, 0 if no
// document has one of them, and the place after them in the document
// frequencies.
func (a *Alternative) idf(docs int64, docFreqs []int64) (sum float64, after int) {
	at, absent := a.place, false
	a.idfs = make([]float64, len(a.Terms))
	for k, term := range a.Terms {
		if term == "" {
			continue
		}
		absent = absent || docFreqs[at] == 0
		a.idfs[k] = simmatrix.IDF(docFreqs[at], docs)
		at++
	}
	if absent {
		return 0, at
	}
	return a.sum(), at
}

// MaxReadings is how many readings of a phrase are searched beside the phrase.
const MaxReadings = 8

// Readings returns, as alternatives of the whole text, the phrases that it
// becomes with exact alternatives in the place of what they stand for, at most
// [MaxReadings]. terms and positions are those that the text was read from, one
// at each position. A prefix behind them ends each phrase.
func (sel *Selection) Readings(terms []string, positions []int, prefix ...string) (readings []Alternative) {
	text := make([]string, 0, len(terms))
	for k, term := range terms {
		if k > 0 {
			text = append(text, make([]string, positions[k]-positions[k-1]-1)...)
		}
		text = append(text, term)
	}
	used, all := make([]bool, len(sel.Alternatives)), make([]int, len(sel.Origins))
	for i := range all {
		all[i] = i
	}
	var read func(k int, so []string, idfs []float64, changed bool)
	instead := func(at Place, so []string, idfs []float64, of string, hosts ...int) {
		for n := range sel.Alternatives {
			if a := &sel.Alternatives[n]; a.Similarity == 1 && a.For == of && slices.Equal(a.Hosts, hosts) {
				before := len(readings)
				read(at.End, append(so, a.Terms...), append(idfs, a.idfs...), true)
				used[n] = used[n] || len(readings) > before
			}
		}
	}
	read = func(k int, so []string, idfs []float64, changed bool) {
		switch {
		case len(readings) == MaxReadings:
			return
		case k == len(terms):
			if changed {
				phrase := append(slices.Clip(so), prefix...)
				a := Alternative{Term: inMatrix(so), For: inMatrix(text), Terms: phrase, Hosts: all, Place: Place{0, k}, Similarity: 1, Span: sel.isSpan(phrase), idfs: idfs}
				a.IDF = a.sum()
				readings = append(readings, a)
			}
			return
		case k > 0:
			gap := positions[k] - positions[k-1] - 1
			so, idfs = append(so, make([]string, gap)...), append(idfs, make([]float64, gap)...)
		}
		so, idfs = slices.Clip(so), slices.Clip(idfs) // each reading appends to its own copy
		for _, e := range sel.Expressions {
			if e.Place.Start == k {
				instead(e.Place, so, idfs, e.Term, e.Origins...)
			}
		}
		i := sel.Origins.Index(terms[k])
		instead(Place{k, k + 1}, so, idfs, terms[k], i)
		read(k+1, append(so, terms[k]), append(idfs, sel.Origins[i].IDF), changed)
	}
	read(0, nil, nil, false)
	for n, a := range sel.Alternatives {
		if a.Similarity == 1 && !used[n] {
			sel.leaveOut(LeftOut{a.Term, a.For, 1, Limited})
		}
	}
	return readings
}

// Whole returns, as alternatives of the whole text, those of a term that is the
// whole text, of which the engine also makes phrases, and those of expressions
// of all n terms.
func (sel *Selection) Whole(term string, n int) (whole []Alternative) {
	all := make([]int, len(sel.Origins))
	for i := range all {
		all[i] = i
	}
	for _, a := range sel.Alternatives {
		if a.For == term || a.Place == (Place{End: n}) {
			a.Hosts = all
			whole = append(whole, a)
		}
	}
	return whole
}

// inMatrix returns terms by position as a matrix would have them.
func inMatrix(terms []string) string {
	if len(terms) == 1 {
		return terms[0]
	}
	return simmatrix.JoinExpression(terms)
}
