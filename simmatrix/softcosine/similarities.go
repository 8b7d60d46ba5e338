package softcosine

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// ErrSimilarities is wrapped by errors of [NewSimilarities].
var ErrSimilarities = errors.New("bad similarities")

// Similarities is the n×n matrix S of term similarities, s_ij = ⟨β_i, β_j⟩ for
// the basis vectors β of the terms (the notes, definition 3.1). The diagonal is
// 1 and not stored. The rest is in compressed rows, 12 bytes per entry, and may
// be any finite number. It need not be symmetric.
type Similarities struct {
	offsets []int // row i is at [offsets[i], offsets[i+1])
	cols    []int32
	sims    []float64
}

// A cell is an entry of S while it is being sorted.
type cell struct {
	row, col int32
	sim      float64
}

// NewSimilarities returns the n×n matrix S with the given entries s_ij by [i,
// j], in any order; others are 0, and the diagonal is 1. The error wraps
// [ErrSimilarities] and names the place if n, i or j is out of range, s_ij is
// not finite or repeated, or s_ii is given and not 1.
func NewSimilarities(n int, entries iter.Seq2[[2]int32, float64]) (*Similarities, error) {
	if n < 0 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d terms, not in [0, %d]", ErrSimilarities, n, math.MaxInt32)
	}
	var cells []cell
	for at, sim := range entries {
		i, j := at[0], at[1]
		switch {
		case i < 0 || int(i) >= n || j < 0 || int(j) >= n:
			return nil, fmt.Errorf("%w: s(%d, %d) in a matrix of %d terms", ErrSimilarities, i, j, n)
		case math.IsNaN(sim) || math.IsInf(sim, 0):
			return nil, fmt.Errorf("%w: s(%d, %d) = %v is not finite", ErrSimilarities, i, j, sim)
		case i == j && sim != 1:
			return nil, fmt.Errorf("%w: s(%d, %d) = %v on the diagonal, which is 1", ErrSimilarities, i, j, sim)
		case i != j:
			cells = append(cells, cell{i, j, sim})
		}
	}
	slices.SortFunc(cells, compareCells)
	for k := 1; k < len(cells); k++ {
		if compareCells(cells[k-1], cells[k]) == 0 {
			return nil, fmt.Errorf("%w: s(%d, %d) occurs twice", ErrSimilarities, cells[k].row, cells[k].col)
		}
	}
	return ofCells(n, cells), nil
}

// Identity returns the n×n matrix of terms that are similar only to themselves.
// It panics if n is negative or above 2³¹-1.
func Identity(n int) *Similarities {
	if n < 0 || n > math.MaxInt32 {
		panic(panicTerm)
	}
	return ofCells(n, nil)
}

func compareCells(a, b cell) int {
	return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
}

// ofCells returns the matrix of cells off the diagonal, which it sorts, each at
// a place of its own.
func ofCells(n int, cells []cell) *Similarities {
	s := &Similarities{offsets: make([]int, n+1)}
	slices.SortFunc(cells, compareCells)
	for _, c := range cells {
		if c.sim != 0 {
			s.cols, s.sims = append(s.cols, c.col), append(s.sims, c.sim)
		}
		s.offsets[c.row+1] = len(s.cols)
	}
	for i := range n { // rows without cells end where the previous one does
		s.offsets[i+1] = max(s.offsets[i+1], s.offsets[i])
	}
	return s
}

// Len returns n, the number of terms.
func (s *Similarities) Len() int { return len(s.offsets) - 1 }

// NonZeros returns the number of entries off the diagonal that are not 0.
func (s *Similarities) NonZeros() int { return len(s.cols) }

// Row returns the entries of row i off the diagonal that are not 0, in
// ascending columns, read-only. It panics unless 0 <= i < n.
func (s *Similarities) Row(i int) (cols []int32, sims []float64) {
	lo, hi := s.offsets[i], s.offsets[i+1]
	return s.cols[lo:hi:hi], s.sims[lo:hi:hi]
}

// At returns s_ij, in O(log C) for C entries of row i, for i and j in [0, n).
func (s *Similarities) At(i, j int) float64 {
	if j < 0 || j >= s.Len() {
		panic(panicTerm)
	}
	cols, sims := s.Row(i)
	if i == j {
		return 1
	}
	if k, ok := slices.BinarySearch(cols, int32(j)); ok { //nolint:gosec // in [0, n), and n is an int32
		return sims[k]
	}
	return 0
}

// NonNegative reports whether no entry is negative, in O(nnz).
func (s *Similarities) NonNegative() bool {
	return !slices.ContainsFunc(s.sims, func(sim float64) bool { return sim < 0 })
}

// Symmetric reports whether s_ij = s_ji for all i and j.
func (s *Similarities) Symmetric() bool { return s.Symmetrized() == s }

// Transposed returns Sᵀ.
func (s *Similarities) Transposed() *Similarities {
	n := s.Len()
	t := &Similarities{offsets: make([]int, n+1), cols: make([]int32, len(s.cols)), sims: make([]float64, len(s.sims))}
	for _, j := range s.cols {
		t.offsets[j+1]++
	}
	for j := range n {
		t.offsets[j+1] += t.offsets[j]
	}
	next := slices.Clone(t.offsets[:n])
	for i := range n {
		cols, sims := s.Row(i)
		for k, j := range cols {
			t.cols[next[j]], t.sims[next[j]] = int32(i), sims[k]
			next[j]++
		}
	}
	return t
}

// Symmetrized returns ½(S + Sᵀ), S itself if it is symmetric. It keeps every
// ⟨x, x⟩, and replaces ⟨x, y⟩ and ⟨y, x⟩ by their mean.
func (s *Similarities) Symmetrized() *Similarities {
	t := s.Transposed()
	if slices.Equal(s.cols, t.cols) && slices.Equal(s.sims, t.sims) && slices.Equal(s.offsets, t.offsets) {
		return s
	}
	mean := &Similarities{offsets: make([]int, 1, s.Len()+1)}
	for i := range s.Len() {
		cols, sims := s.Row(i)
		back, backSims := t.Row(i)
		for k, l := 0, 0; k < len(cols) || l < len(back); {
			var j int32
			var sim float64
			switch {
			case l == len(back) || k < len(cols) && cols[k] < back[l]:
				j, sim = cols[k], sims[k]/2
				k++
			case k == len(cols) || back[l] < cols[k]:
				j, sim = back[l], backSims[l]/2
				l++
			default:
				j, sim = cols[k], sims[k]/2+backSims[l]/2
				k++
				l++
			}
			if sim != 0 {
				mean.cols, mean.sims = append(mean.cols, j), append(mean.sims, sim)
			}
		}
		mean.offsets = append(mean.offsets, len(mean.cols))
	}
	return mean
}

// A Vocabulary maps terms to numbers and back.
type Vocabulary struct {
	terms   []string
	numbers map[string]int32
}

// NewVocabulary numbers the terms from 0 in order; a repeated one keeps its
// first number. It panics for more than [simmatrix.MaxTerms].
func NewVocabulary(terms ...string) *Vocabulary {
	v := &Vocabulary{numbers: make(map[string]int32, len(terms))}
	for _, term := range terms {
		if _, ok := v.numbers[term]; ok {
			continue
		}
		if len(v.terms) == simmatrix.MaxTerms {
			panic(panicTerm)
		}
		v.numbers[term] = int32(len(v.terms)) //nolint:gosec // less than MaxTerms
		v.terms = append(v.terms, term)
	}
	return v
}

// Number returns the number of term, or false if there is none.
func (v *Vocabulary) Number(term string) (int32, bool) {
	number, ok := v.numbers[term]
	return number, ok
}

// Term returns the term of number i. It panics unless 0 <= i < v.Len().
func (v *Vocabulary) Term(i int32) string { return v.terms[i] }

// Len returns n, the number of terms.
func (v *Vocabulary) Len() int { return len(v.terms) }

// FromMatrix returns the S of m and its terms' numbers: the terms of m in
// ascending byte order, then the others in extra.
func FromMatrix(m *simmatrix.Matrix, extra ...string) (*Vocabulary, *Similarities) {
	v := NewVocabulary(append(slices.Collect(m.Terms()), extra...)...)
	var cells []cell
	row := int32(0)
	for _, neighbors := range m.Rows() {
		for n := range neighbors.All() {
			cells = append(cells, cell{row, v.numbers[n.Term], float64(n.Similarity)})
		}
		row++
	}
	return v, ofCells(v.Len(), cells)
}
