package simmatrix

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrNoVocabulary says that a corpus has no term that a matrix could be
// learnt for: it is empty, or every term is too rare or starts with a digit.
var ErrNoVocabulary = errors.New("no term to learn from")

// endOfDocument stands between the documents in a sequence of term ids.
const endOfDocument = -1

// absent is the index of a term that is not in the vocabulary.
const absent = -1

// A Corpus gathers documents as sequences of index terms, in memory, at four
// bytes a term. It is not safe for use by several goroutines.
type Corpus struct {
	ids      map[string]int32
	terms    []string // by id
	docFreqs []uint32
	lastDoc  []uint64 // the last document, from 1, that holds the term
	sequence []int32  // ids, with endOfDocument before the first document and after each
	docs     uint64
}

// NewCorpus returns an empty corpus.
func NewCorpus() *Corpus {
	return &Corpus{ids: make(map[string]int32), sequence: []int32{endOfDocument}}
}

// AddDocument adds one document: its index terms in the order of the text.
// Terms that no row could hold (empty, not UTF-8, longer than [MaxTermBytes])
// are passed over, and so is a document without any other. The strings are
// copied where they are kept.
func (c *Corpus) AddDocument(terms []string) {
	before := len(c.sequence)
	for _, t := range terms {
		id, ok := c.ids[t]
		if !ok {
			if t == "" || len(t) > MaxTermBytes || !utf8.ValidString(t) {
				continue
			}
			id = c.addTerm(strings.Clone(t))
		}
		if c.lastDoc[id] != c.docs+1 {
			c.lastDoc[id] = c.docs + 1
			c.docFreqs[id]++
		}
		c.sequence = append(c.sequence, id)
	}
	if len(c.sequence) > before {
		c.sequence = append(c.sequence, endOfDocument)
		c.docs++
	}
}

func (c *Corpus) addTerm(t string) int32 {
	id := int32(min(len(c.terms), math.MaxInt32)) // FromCorpus refuses a corpus that is so large
	c.ids[t] = id
	c.terms = append(c.terms, t)
	c.docFreqs = append(c.docFreqs, 0)
	c.lastDoc = append(c.lastDoc, 0)
	return id
}

// Docs returns N, the number of documents with at least one term.
func (c *Corpus) Docs() uint64 { return c.docs }

// CorpusOptions are the settings of [FromCorpus].
type CorpusOptions struct {
	// Source becomes Meta.Source: in words, where the documents come from.
	Source string
	// MinDocFreq is the smallest document frequency of a term that gets a
	// row, at least 1.
	MinDocFreq int
	// Dimensions is the number of dimensions of each of the two term vectors,
	// 1 to 1000. A small corpus has fewer.
	Dimensions int
	// Window is how many terms apart two terms may stand to co-occur, 1 to 6.
	Window int
	// Neighbors is C, the largest number of neighbors of a term, 1 to
	// [MaxNeighbors].
	Neighbors int
	// Power is p in s = max(0, cos)^p, above 0.
	Power float64
	// Seed starts the random projection of the singular value decomposition.
	Seed uint64
}

// DefaultCorpusOptions returns the settings that raised the ranking quality
// most over five judged collections: MinDocFreq 3, Dimensions 100, Window 5,
// Neighbors 200, Power 3. Wider windows and more dimensions did not help.
func DefaultCorpusOptions() CorpusOptions {
	return CorpusOptions{Source: "documents", MinDocFreq: 3, Dimensions: 100, Window: 5, Neighbors: 200, Power: 3, Seed: 1}
}

// Validate reports every setting that is out of range.
func (o *CorpusOptions) Validate() error {
	return errors.Join(
		inRange("min doc freq", o.MinDocFreq, math.MaxInt32),
		inRange("dimensions", o.Dimensions, 1000),
		inRange("window", o.Window, maxWindow),
		validateRows(o.Neighbors, o.Power),
	)
}

func validateRows(neighbors int, power float64) error {
	err := inRange("neighbors", neighbors, MaxNeighbors)
	if !(power > 0) || math.IsInf(power, 1) { // written so that NaN fails
		err = errors.Join(err, fmt.Errorf("power: %v is not above 0", power))
	}
	return err
}

func inRange(name string, value, highest int) error {
	if value < 1 || value > highest {
		return fmt.Errorf("%s: %d not in [1, %d]", name, value, highest)
	}
	return nil
}

func (o *CorpusOptions) params() map[string]string {
	return map[string]string{
		"min_doc_freq": strconv.Itoa(o.MinDocFreq),
		"dimensions":   strconv.Itoa(o.Dimensions),
		"window":       strconv.Itoa(o.Window),
		"neighbors":    strconv.Itoa(o.Neighbors),
		"power":        formatFloat(o.Power),
		"seed":         strconv.FormatUint(o.Seed, 10),
	}
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// FromCorpus learns a matrix from the documents alone. The vocabulary are the
// terms that occur in MinDocFreq documents. Each has two vectors of unit
// length, from the positive pointwise mutual information of co-occurrence in a
// window and from the weighted term-document matrix (latent semantic
// analysis), both reduced by a truncated singular value decomposition. Terms
// that start with a digit are a context for others, and get no row themselves.
// With cos the mean of the two cosines,
//
//	s_ij = max(0, cos(i,j))^Power
//
// for the Neighbors nearest terms j of each term i, without those whose
// similarity rounds to zero.
//
// The same documents in the same order, options and machine architecture give
// the same bytes, on any number of processors. FromCorpus returns
// [ErrNoVocabulary] where there is no term, an error that names each option
// out of range, and the error of ctx soon after it ends.
func FromCorpus(ctx context.Context, c *Corpus, opts CorpusOptions, progress Progress) (*Matrix, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	v, err := c.vocabulary(opts.MinDocFreq)
	if err != nil {
		return nil, err
	}
	vectors := newVectorTable(len(v.terms))
	association, err := v.ppmi(ctx, opts.Window, newStage(progress, "co-occurrence", len(v.terms)))
	if err != nil {
		return nil, err
	}
	err = vectors.addPart(ctx, association, partOptions{
		dimensions: opts.Dimensions, sigmaPower: 0.5, seed: opts.Seed, stream: 1,
	}, newStage(progress, "co-occurrence vectors", svdProducts))
	if err != nil {
		return nil, err
	}
	err = vectors.addPart(ctx, v.termDocuments(), partOptions{
		dimensions: opts.Dimensions, sigmaPower: 1, seed: opts.Seed, stream: 2,
	}, newStage(progress, "document vectors", svdProducts))
	if err != nil {
		return nil, err
	}
	vectors.cut(v.rows)
	m := &Matrix{
		meta:     Meta{Source: opts.Source, Params: opts.params(), Docs: v.docs},
		terms:    v.terms[:v.rows],
		docFreqs: v.docFreqs[:v.rows],
	}
	m.entries, err = vectors.nearest(ctx, nearestOptions{neighbors: opts.Neighbors, power: opts.Power},
		newStage(progress, "neighbors", v.rows))
	if err != nil {
		return nil, err
	}
	if err := m.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

// A vocabulary is the part of a corpus that is learnt from: its terms, and the
// documents as sequences of these terms alone.
type vocabulary struct {
	// terms are first the terms that get rows, in ascending byte order, then
	// those that are only a context, in the same order.
	terms    []string
	rows     int // number of terms that get rows
	docFreqs []uint32
	sequence []int32 // indices into terms, as in [Corpus]
	docs     uint64  // of the whole corpus
}

func (c *Corpus) vocabulary(minDocFreq int) (*vocabulary, error) {
	if len(c.sequence) > math.MaxInt32 {
		return nil, fmt.Errorf("a corpus of %d terms, at most %d: leave documents out", len(c.sequence), math.MaxInt32)
	}
	v := &vocabulary{docs: c.docs}
	var contexts []string
	for id, t := range c.terms {
		if int(c.docFreqs[id]) < minDocFreq {
			continue
		}
		if first, _ := utf8.DecodeRuneInString(t); unicode.IsDigit(first) {
			contexts = append(contexts, t)
		} else {
			v.terms = append(v.terms, t)
		}
	}
	v.rows = len(v.terms)
	if v.rows == 0 {
		return nil, fmt.Errorf("%w: none of %d occurs in %d of the %d documents and starts with no digit",
			ErrNoVocabulary, len(c.terms), minDocFreq, c.docs)
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
	for _, id := range c.sequence {
		if id == endOfDocument {
			v.sequence = append(v.sequence, endOfDocument)
		} else if i := indices[id]; i != absent {
			v.sequence = append(v.sequence, i)
		}
	}
	return v, nil
}
