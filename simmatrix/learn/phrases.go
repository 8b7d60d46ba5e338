package learn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A phrase is two terms that follow each other more often than by chance.
type phrase struct {
	term   string // see [simmatrix.Phrase]
	docs   uint32
	npmi   float64
	places []int32 // of its first term in the sequence of the corpus, ascending
}

// What a phrase is.
const (
	leastPhraseDocs = 5
	leastNPMI       = 0.3
	// countedAtOnce limits the words of a text that are counted in one pass, and so
	// the memory.
	countedAtOnce = 4 << 20
)

// FindPhrases has [FromCorpus] learn rows of phrases: of two terms that are in
// at most a tenth of the documents each, and follow each other in at least
// five, with a normalized pointwise mutual information (Bouma, 2009) of 0.3 or
// more,
//
//	ln(N·df_12 / (df_1·df_2)) / ln(N / df_12)
//
// c and terms are as from and for [Texts.Corpus].
func (t *Texts) FindPhrases(terms [][]string, c *Corpus) {
	c.tally = &simmatrix.Tally{Kind: "phrases"}
	usable := make([]bool, len(c.terms))
	for id, df := range c.docFreqs {
		usable[id] = df >= leastPhraseDocs && float64(df) <= frequentShare*float64(c.docs) && !startsWithDigit(c.terms[id])
	}
	ids := make([]int32, len(t.words)) // in c, of words that can be in a phrase, or absent
	widths := make([]int, len(t.words))
	for k := range t.words {
		ids[k] = absent
		for _, term := range terms[k] {
			if id, ok := c.ids[term]; ok {
				widths[k]++
				ids[k] = id
			}
		}
		if len(terms[k]) != 1 || widths[k] == 1 && !usable[ids[k]] {
			ids[k] = absent
		}
	}
	type pair struct{ first, second int32 }
	type seen struct {
		docs uint32
		last uint32 // document, from 1
	}
	kept := map[pair]int{}
	var lost []phrase
	parts := 1 + len(t.sequence)/countedAtOnce
	for part := range parts {
		found := map[pair]seen{}
		t.follows(ids, widths, func(first, second, _ int32, doc uint32) {
			if int(first)%parts != part {
				return
			}
			p := pair{first, second}
			if s := found[p]; s.last != doc {
				found[p] = seen{s.docs + 1, doc}
			}
		})
		for p, s := range found {
			if s.docs < leastPhraseDocs {
				continue
			}
			a, b := c.terms[p.first], c.terms[p.second]
			expression, err := simmatrix.Expression([]string{a, b}, []int{0, 1})
			if err != nil {
				continue
			}
			f := phrase{term: simmatrix.Phrase(expression), docs: s.docs, npmi: npmi(float64(s.docs), float64(c.docFreqs[p.first]), float64(c.docFreqs[p.second]), float64(c.docs))}
			if f.npmi < leastNPMI {
				lost = append(lost, f)
				continue
			}
			kept[p] = len(c.phrases)
			c.phrases = append(c.phrases, f)
		}
	}
	t.follows(ids, widths, func(first, second, place int32, _ uint32) {
		if k, ok := kept[pair{first, second}]; ok {
			c.phrases[k].places = append(c.phrases[k].places, place)
		}
	})
	mostFirst := func(a, b phrase) int { return cmp.Or(cmp.Compare(b.docs, a.docs), cmp.Compare(a.term, b.term)) }
	slices.SortFunc(c.phrases, mostFirst)
	slices.SortFunc(lost, mostFirst)
	most := min(rarePerTerm*len(c.terms), len(c.phrases))
	lost, c.phrases = append(lost, c.phrases[most:]...), c.phrases[:most]
	for k, all := range [][]phrase{c.phrases, lost} {
		for _, f := range all {
			c.tally.Count(k == 0, fmt.Sprintf("%s (npmi %.2f)", simmatrix.Spelled(f.term), f.npmi))
		}
	}
	for _, f := range c.phrases {
		c.bytes += stringBytes(f.term) + 4*int64(len(f.places))
	}
	slices.SortFunc(c.phrases, func(a, b phrase) int { return cmp.Compare(a.term, b.term) })
}

func npmi(both, first, second, docs float64) float64 {
	return math.Log(docs*both/(first*second)) / math.Log(docs/both)
}

// follows yields two words of a text that follow each other, by ids, with the
// place of the first in the sequence of the corpus and the number of the
// document. widths are how many terms of the corpus each word is.
func (t *Texts) follows(ids []int32, widths []int, yield func(first, second, place int32, doc uint32)) {
	place, begin := int32(1), int32(1) // of the next term, and of the document
	before, gap, doc := int32(absent), false, uint32(1)
	for _, word := range t.sequence {
		switch {
		case word >= 0:
			if widths[word] > 0 && gap {
				place++ // endOfText
				gap = false
			}
			id := ids[word]
			if before != absent && id != absent {
				yield(before, id, place-1, doc)
			}
			before = id
			place += int32(widths[word]) //nolint:gosec // a corpus has at most MaxInt32 terms
		case word == endOfText:
			before, gap = absent, place > begin
		default:
			if place > begin {
				place++ // endOfDocument
			}
			before, gap, begin = absent, false, place
			doc++
		}
	}
}

// phraseTerms returns the phrases of the corpus, to be folded in.
func (c *Corpus) phraseTerms(v *vocabulary, o *CorpusOptions) *rareTerms {
	r := &rareTerms{learned: v, opts: o, width: 2}
	for _, f := range c.phrases {
		r.terms, r.places = append(r.terms, f.term), append(r.places, f.places)
	}
	r.vectors.rows = len(r.terms)
	return r
}
