package learn

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
)

// What stands between the terms in a sequence of term ids, which are not
// negative.
const (
	endOfDocument = -1
	endOfText     = -2 // within a document, between texts that have terms
)

// absent is the index of a term that is not in the vocabulary.
const absent = math.MinInt32

// A Corpus collects documents as sequences of index terms, at four bytes a
// term. It is not safe for use by several goroutines.
type Corpus struct {
	ids      map[string]int32
	terms    []string // by id
	docFreqs []uint32
	lastDoc  []uint64 // the last document, from 1, that holds the term
	sequence []int32  // ids, with endOfDocument before the first document and after each
	docs     uint64
	bytes    int64 // of the terms, with what is kept of each
}

// NewCorpus returns an empty corpus.
func NewCorpus() *Corpus {
	return &Corpus{ids: make(map[string]int32), sequence: []int32{endOfDocument}}
}

// AddDocument adds one document: the index terms of each of its texts, such as
// fields, in order. Terms of different texts share no window. Terms that cannot
// have a row (empty, not UTF-8, longer than [simmatrix.MaxTermBytes]) are
// skipped, and so are documents without any other.
func (c *Corpus) AddDocument(texts ...[]string) {
	ids := make([][]int32, len(texts))
	for i, terms := range texts {
		ids[i] = c.termIDs(nil, terms)
	}
	c.add(ids)
}

func (c *Corpus) add(texts [][]int32) {
	before := len(c.sequence)
	for _, ids := range texts {
		if len(ids) > 0 && len(c.sequence) > before {
			c.sequence = append(c.sequence, endOfText)
		}
		c.sequence = append(c.sequence, ids...)
		for _, id := range ids {
			if c.lastDoc[id] != c.docs+1 {
				c.lastDoc[id] = c.docs + 1
				c.docFreqs[id]++
			}
		}
	}
	if len(c.sequence) > before {
		c.sequence = append(c.sequence, endOfDocument)
		c.docs++
	}
}

func (c *Corpus) termIDs(dst []int32, terms []string) []int32 {
	for _, t := range terms {
		id, ok := c.ids[t]
		if !ok {
			if t == "" || len(t) > simmatrix.MaxTermBytes || !utf8.ValidString(t) {
				continue
			}
			id = c.addTerm(strings.Clone(t))
		}
		dst = append(dst, id)
	}
	return dst
}

func (c *Corpus) addTerm(t string) int32 {
	id := int32(min(len(c.terms), math.MaxInt32)) // FromCorpus refuses a corpus that is so large
	c.ids[t] = id
	c.terms = append(c.terms, t)
	c.docFreqs = append(c.docFreqs, 0)
	c.lastDoc = append(c.lastDoc, 0)
	c.bytes += stringBytes(t) + 12
	return id
}

// Docs returns N, the number of documents with at least one term.
func (c *Corpus) Docs() uint64 { return c.docs }

// Bytes returns about how much memory the corpus takes.
func (c *Corpus) Bytes() int64 { return c.bytes + 4*int64(cap(c.sequence)) }

// stringBytes is about what a string takes in a slice and as a key of a map.
func stringBytes(s string) int64 {
	const inSlice, inMap = 16, 40 // a map is half full on average
	return int64(len(s)) + inSlice + inMap
}

func (c *Corpus) check() error {
	if len(c.sequence) > math.MaxInt32 {
		return fmt.Errorf("a corpus of %d terms, at most %d: leave documents out", len(c.sequence), math.MaxInt32)
	}
	return nil
}
