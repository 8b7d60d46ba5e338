package learn

import (
	"cmp"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
)

// A vocabulary is the part of a corpus that is learned from.
type vocabulary struct {
	// terms are first the terms that get rows, in ascending byte order, then
	// those that are only a context, in the same order.
	terms    []string
	rows     int // number of terms that get rows
	docFreqs []uint32
	// sequence holds indices into terms, as in [Corpus], and the documents that
	// have any in the order of these: it does not depend on the order in which
	// the documents were added.
	sequence []int32
	docs     uint64 // of the whole corpus
}

// vocabulary returns the terms that occur in minDocFreq documents, and of these
// the maxTerms most frequent.
func (c *Corpus) vocabulary(minDocFreq, maxTerms int) (*vocabulary, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	v := &vocabulary{docs: c.docs}
	var contexts []string
	for _, id := range c.frequent(minDocFreq, maxTerms) {
		t := c.terms[id]
		if first, _ := utf8.DecodeRuneInString(t); unicode.IsDigit(first) {
			contexts = append(contexts, t)
		} else {
			v.terms = append(v.terms, t)
		}
	}
	v.rows = len(v.terms)
	if v.rows == 0 {
		return nil, fmt.Errorf("%w: none of %d occurs in %d of the %d documents and starts with no digit",
			simmatrix.ErrNoVocabulary, len(c.terms), minDocFreq, c.docs)
	}
	slices.Sort(v.terms)
	slices.Sort(contexts)
	v.terms = append(v.terms, contexts...)
	indices := make([]int32, len(c.terms))
	for id := range indices {
		indices[id] = absent
	}
	for i, t := range v.terms {
		id := c.ids[t]
		indices[id] = int32(i)
		v.docFreqs = append(v.docFreqs, c.docFreqs[id])
	}
	v.order(c.sequence, indices)
	return v, nil
}

// frequent returns the ids of the terms in minDocFreq documents, at most
// maxTerms of them unless that is 0.
func (c *Corpus) frequent(minDocFreq, maxTerms int) []int {
	var ids []int
	for id, df := range c.docFreqs {
		if int(df) >= minDocFreq {
			ids = append(ids, id)
		}
	}
	if maxTerms == 0 || len(ids) <= maxTerms {
		return ids
	}
	slices.SortFunc(ids, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.docFreqs[b], c.docFreqs[a]), cmp.Compare(c.terms[a], c.terms[b]))
	})
	return ids[:maxTerms]
}

// order sets the sequence to the documents with their ids replaced by indices.
func (v *vocabulary) order(sequence, indices []int32) {
	mapped := make([]int32, 0, len(sequence))
	var documents [][]int32
	start, gap := 0, false
	for _, id := range sequence {
		switch {
		case id == endOfText:
			gap = len(mapped) > start
		case id != endOfDocument:
			if i := indices[id]; i != absent {
				if gap {
					mapped, gap = append(mapped, endOfText), false
				}
				mapped = append(mapped, i)
			}
		default:
			if len(mapped) > start {
				documents = append(documents, mapped[start:])
			}
			start, gap = len(mapped), false
		}
	}
	slices.SortFunc(documents, slices.Compare[[]int32])
	v.sequence = make([]int32, 1, 1+len(mapped)+len(documents))
	v.sequence[0] = endOfDocument
	for _, d := range documents {
		v.sequence = append(append(v.sequence, d...), endOfDocument)
	}
}

func (v *vocabulary) documents() []int {
	starts := []int{1}
	for p, i := range v.sequence[1:] {
		if i == endOfDocument {
			starts = append(starts, p+2)
		}
	}
	return starts
}
