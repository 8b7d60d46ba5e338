package softcosine

import (
	"fmt"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A Vocabulary maps terms to numbers and back.
type Vocabulary struct {
	terms   []string
	numbers map[string]int32
}

// NewVocabulary numbers the terms from 0 in their order; a repeated one keeps
// its first number. It panics at more than [simmatrix.MaxTerms].
func NewVocabulary(terms ...string) *Vocabulary {
	v := &Vocabulary{numbers: make(map[string]int32, len(terms))}
	for _, term := range terms {
		v.add(term)
	}
	return v
}

func (v *Vocabulary) add(term string) {
	if _, ok := v.numbers[term]; ok {
		return
	}
	if len(v.terms) == simmatrix.MaxTerms {
		panic(panicTerm)
	}
	v.numbers[term] = int32(len(v.terms)) //nolint:gosec // less than MaxTerms
	v.terms = append(v.terms, term)
}

// Number returns the number of term, and whether there is one.
func (v *Vocabulary) Number(term string) (int32, bool) {
	number, ok := v.numbers[term]
	return number, ok
}

// Term returns the term of number i. It panics unless 0 <= i < v.Len().
func (v *Vocabulary) Term(i int32) string { return v.terms[i] }

// Len returns n, the number of terms.
func (v *Vocabulary) Len() int { return len(v.terms) }

// FromMatrix returns S as m has it and the numbers of its terms: those of m in
// ascending byte order, then the others of extra, to which no other term is
// similar.
func FromMatrix(m *simmatrix.Matrix, extra ...string) (*Vocabulary, *Similarities) {
	v := &Vocabulary{terms: make([]string, 0, m.Len()+len(extra)), numbers: make(map[string]int32, m.Len()+len(extra))}
	for term := range m.Terms() {
		v.add(term)
	}
	for _, term := range extra {
		v.add(term)
	}
	s := newSimilarities(v.Len(), int(m.Meta().NonZeros)) //nolint:gosec // as many as are in memory
	var row []cell
	i := 0
	for _, neighbors := range m.Rows() {
		s.openRows(i)
		row = row[:0]
		for n := range neighbors.All() {
			row = append(row, cell{col: v.numbers[n.Term], sim: float64(n.Similarity)})
		}
		slices.SortFunc(row, func(a, b cell) int { return int(a.col) - int(b.col) })
		for _, c := range row {
			s.add(c.col, c.sim)
		}
		i++
	}
	s.openRows(v.Len())
	return v, s
}

// Matrix returns S as a [simmatrix.Matrix] over the terms of v. docFreq returns
// the document frequency of a term; nil is 0 for all. Similarities are rounded
// by [simmatrix.QuantizeSimilarity]; of meta only Source, Params and Docs are
// read. The error wraps [ErrSimilarities] where v has another number of terms
// than S or an entry is not in (0, 1], or is that of [simmatrix.New].
func (s *Similarities) Matrix(meta simmatrix.Meta, v *Vocabulary, docFreq func(term string) uint32) (*simmatrix.Matrix, error) {
	if v.Len() != s.Len() {
		return nil, fmt.Errorf("%w: %d terms in the vocabulary, %d in the matrix", ErrSimilarities, v.Len(), s.Len())
	}
	meta.Origins = nil
	rows := make([]simmatrix.TermRow, s.Len())
	for i, term := range v.terms {
		cols, sims := s.Row(i)
		rows[i].Term = term
		if docFreq != nil {
			rows[i].DocFreq = docFreq(term)
		}
		for k, j := range cols {
			if !(sims[k] > 0 && sims[k] <= 1) {
				return nil, fmt.Errorf("%w: s(%q, %q) = %v is not in (0, 1]", ErrSimilarities, term, v.terms[j], sims[k])
			}
			rows[i].Neighbors = append(rows[i].Neighbors, simmatrix.Neighbor{
				Term: v.terms[j], Similarity: simmatrix.QuantizeSimilarity(sims[k]),
			})
		}
	}
	return simmatrix.New(meta, rows)
}
