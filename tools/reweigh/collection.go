package reweigh

import (
	"fmt"
	"math"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// A Collection is the terms of the documents that searches are ranked over.
type Collection struct {
	ids     map[string]int32 // by term
	terms   []string
	numbers map[string]int32 // of documents, by their ids
	docs    [][]occurrence
	found   [][]occurrence // by term, the documents that have it
	lengths []float64
	idf     []float64 // by term
	size    int       // occurrences
}

// An occurrence is how often a term is in a document: tf/K, where K is
// BM25's norm of the document.
type occurrence struct {
	at   int32 // the term in a document, the document of a term
	freq float32
}

// NewCollection returns one without documents.
func NewCollection() *Collection {
	return &Collection{ids: map[string]int32{}, numbers: map[string]int32{}}
}

// maxOccurrences bounds the terms of all documents together, each counted
// once in a document: they take 16 bytes.
const maxOccurrences = 50_000_000

// Add adds a document with the index terms of its texts, each as often as it
// is there. One that has been added is not added again. It fails where the
// documents have too many terms.
func (c *Collection) Add(id string, texts [][]string) error {
	if c.Has(id) {
		return nil
	}
	c.numbers[id] = number(len(c.docs))
	var doc []occurrence
	at := map[int32]int{}
	length := 0
	for _, terms := range texts {
		length += len(terms)
		for _, term := range terms {
			i := c.id(term)
			k, ok := at[i]
			if !ok {
				k, at[i] = len(doc), len(doc)
				doc = append(doc, occurrence{at: i})
			}
			doc[k].freq++
		}
	}
	c.docs, c.lengths = append(c.docs, doc), append(c.lengths, float64(length))
	if c.size += len(doc); c.size > maxOccurrences {
		return fmt.Errorf("the documents have more than %d million different terms each, together: "+
			"learn from an index with fewer documents, those of the queries among them", maxOccurrences/1_000_000)
	}
	return nil
}

// Has reports whether a document has been added.
func (c *Collection) Has(id string) bool {
	_, ok := c.numbers[id]
	return ok
}

func (c *Collection) id(term string) int32 {
	i, ok := c.ids[term]
	if !ok {
		i = number(len(c.terms))
		term = strings.Clone(term) // it may be a part of a page of the cluster's answer
		c.ids[term], c.terms = i, append(c.terms, term)
	}
	return i
}

// number is n as documents and terms are numbered: memory ends before.
func number(n int) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // bounded, and never negative

// BM25's parameters, which are those of the engines by default.
const k1, b = 1.2, 0.75

// finish makes of frequencies what scores are made of. It is called once.
func (c *Collection) finish() {
	total := 0.0
	for _, n := range c.lengths {
		total += n
	}
	c.found, c.idf = make([][]occurrence, len(c.terms)), make([]float64, len(c.terms))
	for d, doc := range c.docs {
		norm := k1 * (1 - b + b*storedLength(c.lengths[d])*float64(len(c.docs))/total)
		for k := range doc {
			doc[k].freq /= float32(norm)
			c.found[doc[k].at] = append(c.found[doc[k].at], occurrence{number(d), doc[k].freq})
		}
	}
	for i := range c.terms {
		c.idf[i] = simmatrix.IDF(int64(len(c.found[i])), int64(len(c.docs)))
	}
}

// storedLength is a document's length as Lucene has it in one byte
// (SmallFloat.intToByte4): what it exceeds 24 by keeps four significant bits.
func storedLength(n float64) float64 {
	const exact = 24
	if n < exact {
		return n
	}
	fraction, exponent := math.Frexp(n - exact)
	return exact + math.Ldexp(math.Floor(fraction*16), exponent-4)
}
