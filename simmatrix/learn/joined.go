package learn

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
)

// A Joined is a term of which documents write the two parts as words of their
// own, too: "ribcage" and "rib cage", also as "rib-cage".
type Joined struct {
	Term, First, Second string // index terms
	Form                string // both parts as documents write them
	Count               int    // how often they write them
}

const (
	// shortestPart is the length in runes of parts that may be frequent words, and
	// shortestJoined that of joined words.
	shortestPart, shortestJoined = 3, 4
	// frequentShare is the share of the documents from which a word is frequent.
	frequentShare = 0.1
)

// Joined returns the joined words of the documents, by term and parts. terms
// and corpus are as for and from [Texts.Corpus].
func (t *Texts) Joined(terms [][]string, corpus *Corpus) []Joined {
	lower := make([]string, len(t.words))
	known := make(map[string]int32, len(t.words)) // a word that the analyzer makes one term of, by lower case
	for k, word := range t.words {
		lower[k] = strings.ToLower(word)
		if _, ok := known[lower[k]]; len(terms[k]) == 1 && (!ok || word == lower[k]) {
			known[lower[k]] = int32(k)
		}
	}
	type pair struct{ first, second int32 }
	counts := map[pair]int{}
	joined := map[pair]int32{}
	for word, k := range known {
		if utf8.RuneCountInString(word) < shortestJoined || strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) >= 0 {
			continue
		}
		for at := range word {
			first, ok := known[word[:at]]
			if !ok || at == 0 {
				continue
			}
			if second, ok := known[word[at:]]; ok && corpus.mayJoin(word[:at], terms[first][0]) && corpus.mayJoin(word[at:], terms[second][0]) {
				joined[pair{first, second}] = k
			}
		}
	}
	before := int32(absent)
	for _, id := range t.sequence {
		if id >= 0 {
			one, ok := known[lower[id]]
			if !ok {
				one = absent
			}
			p := pair{before, one}
			if _, ok := joined[p]; ok {
				counts[p]++
			}
			id = one
		}
		before = id
	}
	type entry struct{ term, first, second string }
	found := map[entry]Joined{}
	most := map[entry]int{}
	for p, count := range counts {
		e := entry{terms[joined[p]][0], terms[p.first][0], terms[p.second][0]}
		if e.term == e.first || e.term == e.second {
			continue
		}
		j := found[e]
		form := lower[p.first] + " " + lower[p.second]
		j.Count += count
		if count > most[e] || count == most[e] && form < j.Form {
			most[e], j.Form = count, form
		}
		j.Term = e.term
		j.First = e.first
		j.Second = e.second
		found[e] = j
	}
	all := make([]Joined, 0, len(found))
	for _, j := range found {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b Joined) int {
		return cmp.Or(cmp.Compare(a.Term, b.Term), cmp.Compare(a.First, b.First), cmp.Compare(a.Second, b.Second))
	})
	return all
}

// mayJoin reports whether a word may be a part of a joined one: short and
// frequent words, such as "a" in "a cross", stand beside too many others.
func (c *Corpus) mayJoin(word, term string) bool {
	return simmatrix.CheckTerm(term) == nil &&
		(utf8.RuneCountInString(word) >= shortestPart || float64(c.DocFreq(term)) <= frequentShare*float64(c.docs))
}
