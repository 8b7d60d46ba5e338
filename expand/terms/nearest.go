package terms

import (
	"cmp"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// Unknown reports whether a word has no row. A variant that an analyzer put
// beside another word does not count: that word says what is meant.
func (o *Origin) Unknown() bool { return o.Row.IsZero() && o.Alone }

// ByNearest returns an unknown word with the row of the nearest known word,
// times their similarity, and that word itself. For two words it is the union,
// in which a neighbor has the larger similarity.
func (o *Origin) ByNearest(known []string, rows []simmatrix.Row, similarity float32) Origin {
	var all []simmatrix.Neighbor
	as := *o
	docFreq := rows[0].DocFreq()
	for k, word := range known {
		docFreq = min(docFreq, rows[k].DocFreq())
		all = append(all, simmatrix.Neighbor{Term: word, Similarity: similarity, DocFreq: rows[k].DocFreq()})
		for n := range rows[k].All() {
			if !slices.Contains(known, n.Term) {
				n.Similarity, n.Origins = simmatrix.QuantizeSimilarity(float64(similarity*n.Similarity)), 0
				all = append(all, n)
			}
		}
	}
	bySimilarity := func(a, b simmatrix.Neighbor) int { return cmp.Compare(b.Similarity, a.Similarity) }
	slices.SortFunc(all, func(a, b simmatrix.Neighbor) int { return cmp.Or(cmp.Compare(a.Term, b.Term), bySimilarity(a, b)) })
	all = slices.CompactFunc(all, func(a, b simmatrix.Neighbor) bool { return a.Term == b.Term })
	slices.SortStableFunc(all, bySimilarity)
	row, err := simmatrix.PackRow(docFreq, all[:min(len(all), simmatrix.MaxNeighbors)])
	if err == nil { // else the word stays unknown
		as.Row, as.Nearest = row, known
	}
	return as
}

// ByParts returns an unknown word as one for which two known words in a row
// stand, with their similarity.
func (o *Origin) ByParts(known []string, rows []simmatrix.Row, similarity float32) Origin {
	both, as := simmatrix.JoinExpression(known), *o
	docFreq := min(rows[0].DocFreq(), rows[1].DocFreq())
	row, err := simmatrix.PackRow(docFreq, []simmatrix.Neighbor{{Term: both, Similarity: similarity, DocFreq: docFreq}})
	if err == nil { // else the word stays unknown
		as.Row, as.Nearest = row, []string{both}
	}
	return as
}

// InParts reports whether two known words in a row stand for the word.
func (o *Origin) InParts() bool { return len(o.Nearest) == 1 && simmatrix.IsExpression(o.Nearest[0]) }

// nearness is the similarity of a word to the nearest known one that it has the
// row of, 1 if the row is its own.
func (o *Origin) nearness() float32 {
	for n := range o.Row.All() {
		if slices.Contains(o.Nearest, n.Term) {
			return n.Similarity
		}
	}
	return 1
}

// Has reports whether a word is in the text or replaces one that is.
func (t Text) Has(word string) bool {
	return slices.ContainsFunc(t, func(o Origin) bool { return o.Term == word || slices.Contains(o.Nearest, word) })
}

// Score returns what the term adds at λ. A replacement of an unknown word is
// part of the text and counts in full.
func (c *Candidate) Score(lambda float64) float64 {
	if c.Near {
		return c.V
	}
	return lambda * c.V
}

// docFreq returns the document frequency that weights origin i. A word that no
// document has gets that of the nearest known word, of two the rarer's: its own
// would make it the most significant word of the text. If no document has these
// any more, it is the one in the row.
func (sel *Selection) docFreq(i int, docFreqs []int64) int64 {
	o := &sel.Origins[i]
	if o.Nearest == nil {
		return docFreqs[i]
	}
	least := int64(math.MaxInt64)
	for k := range sel.Candidates {
		if df := docFreqs[len(sel.Origins)+k]; df > 0 && slices.Contains(o.Nearest, sel.Candidates[k].Term) {
			least = min(least, df)
		}
	}
	if least == math.MaxInt64 {
		least = int64(o.Row.DocFreq())
	}
	return max(least, docFreqs[i])
}
