package reweigh

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// A Collection has the terms of the documents that searches rank.
type Collection struct {
	ids     map[string]int32 // by term
	terms   []string
	numbers map[string]int32 // of documents, by id
	docs    [][]occurrence
	found   [][]occurrence // by term, the documents with it
	lengths []float64
	idf     []float64 // by term
	size    int       // occurrences
}

// An occurrence is the frequency of a term in a document: tf/K, where K is
// BM25's length norm of the document.
type occurrence struct {
	at   int32 // the term of an occurrence in a document, or the document of an occurrence of a term
	freq float32
}

// NewCollection returns an empty collection.
func NewCollection() *Collection {
	return &Collection{ids: map[string]int32{}, numbers: map[string]int32{}}
}

// maxOccurrences is how many terms all documents have together, where each
// document counts each term once. A term takes 16 bytes.
const maxOccurrences = 50_000_000

// Add adds a document with the index terms of its texts, including repeated
// terms. It ignores a document that was added before. It fails if the documents
// have too many terms.
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
		return fmt.Errorf("the documents have more than %d million terms together, each counted once per document: "+
			"learn from an index with fewer documents that has those of the queries", maxOccurrences/1_000_000)
	}
	return nil
}

// Has reports whether a document was added.
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

// number converts the number of a document or term. Memory ends before int32.
func number(n int) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // bounded, and never negative

// The default parameters of BM25 in the engines.
const k1, b = 1.2, 0.75

// finish computes the parts of scores from the frequencies. Call it once.
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

// storedLength returns a document's length as Lucene stores it in one byte
// (SmallFloat.intToByte4): the part above 24 keeps four significant bits.
func storedLength(n float64) float64 {
	const exact = 24
	if n < exact {
		return n
	}
	fraction, exponent := math.Frexp(n - exact)
	return exact + math.Ldexp(math.Floor(fraction*16), exponent-4)
}

type origin struct {
	term   int32
	x      float64 // frequency in the search
	idf, w float64 // w = √idf
}

// An added term counts as v occurrences of an origin, see package terms.
type added struct {
	term   int32
	origin int
	v      float64
}

type graded struct {
	doc   int32
	gain  float64
	count int
	share float64 // its share of the pool's useful documents minus that of the others
}

func (d *graded) useless() float64 { return max(1-d.gain, 0) }

// A scorer scores documents in the saturated form. Only one goroutine may use
// it.
type scorer struct {
	*Collection

	strength float64
	places   []int32 // by term: 1 + its index in the search, 0 for none
	y        []float64
}

func newScorer(c *Collection, strength float64) *scorer {
	return &scorer{Collection: c, strength: strength, places: make([]int32, len(c.terms))}
}

// scores returns the score of each document, and y of each origin, document by
// document. Both are valid until the next call.
//
//	Σ_i (k1+1) x_i idf_i y_i/(1+y_i)    y_i = tf_i/K + Σ_j β_ij tf_j/K    β_ij = strength·v_j/(x_i idf_i)
func (s *scorer) scores(origins []origin, more []added, docs []graded) (scores, y []float64) {
	for k, o := range origins {
		s.places[o.term] = number(k + 1)
	}
	for k, a := range more {
		s.places[a.term] = number(len(origins) + k + 1)
	}
	scores = make([]float64, len(docs))
	s.y = append(s.y[:0], make([]float64, len(docs)*len(origins))...)
	for d := range docs {
		y := s.y[d*len(origins) : (d+1)*len(origins)]
		for _, t := range s.docs[docs[d].doc] {
			switch place := int(s.places[t.at]) - 1; {
			case place < 0:
			case place < len(origins):
				y[place] += float64(t.freq)
			default:
				a := &more[place-len(origins)]
				o := &origins[a.origin]
				y[a.origin] += s.strength * a.v / (o.x * o.idf) * float64(t.freq)
			}
		}
		for k := range origins {
			scores[d] += (k1 + 1) * origins[k].x * origins[k].idf * y[k] / (1 + y[k])
		}
	}
	for _, o := range origins {
		s.places[o.term] = 0
	}
	for _, a := range more {
		s.places[a.term] = 0
	}
	return scores, s.y
}

// first returns the n documents with the best scores, best first. Ties keep the
// order in which the documents were added.
func (s *scorer) first(origins []origin, more []added, n int) []graded {
	seen := make([]bool, len(s.docs))
	var docs []graded
	find := func(term int32) {
		for _, f := range s.found[term] {
			if !seen[f.at] {
				seen[f.at] = true
				docs = append(docs, graded{doc: f.at})
			}
		}
	}
	for _, o := range origins {
		find(o.term)
	}
	for _, a := range more {
		find(a.term)
	}
	slices.SortFunc(docs, func(a, b graded) int { return int(a.doc - b.doc) })
	scores, _ := s.scores(origins, more, docs)
	best := make([]graded, 0, n)
	for _, k := range descending(scores)[:min(n, len(docs))] {
		best = append(best, docs[k])
	}
	return best
}

// descending returns the indices of values in descending order of the values.
// Ties keep their order.
func descending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order
}
