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

// ErrSimilarities is wrapped by the errors of [NewSimilarities].
var ErrSimilarities = errors.New("bad similarities")

// Similarities is the n×n matrix S of term similarities, s_ij = ⟨β_i, β_j⟩ for
// the basis vectors β of the terms (the notes, definition 3.1). Its diagonal is
// 1 and not stored. The rest is in compressed rows, 12 bytes an entry, and may
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
// j], in any order; what is not given is 0, and the diagonal 1. The error wraps
// [ErrSimilarities] and names the place where n, i or j is out of range, s_ij
// is not finite or repeated, or s_ii is given and is not 1.
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
	slices.SortFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
	})
	for k := 1; k < len(cells); k++ {
		if cells[k].row == cells[k-1].row && cells[k].col == cells[k-1].col {
			return nil, fmt.Errorf("%w: s(%d, %d) occurs twice", ErrSimilarities, cells[k].row, cells[k].col)
		}
	}
	s := newSimilarities(n, len(cells))
	for k := 0; k < len(cells); {
		row := cells[k].row
		s.openRows(int(row))
		for ; k < len(cells) && cells[k].row == row; k++ {
			s.add(cells[k].col, cells[k].sim)
		}
	}
	s.openRows(n)
	return s, nil
}

// Identity returns the n×n matrix of terms that are similar only to themselves.
// It panics where n is negative or above 2³¹-1.
func Identity(n int) *Similarities {
	if n < 0 || n > math.MaxInt32 {
		panic(panicTerm)
	}
	s := newSimilarities(n, 0)
	s.openRows(n)
	return s
}

// newSimilarities returns a matrix without rows, with room for so many.
func newSimilarities(n, nonZeros int) *Similarities {
	return &Similarities{
		offsets: make([]int, 0, n+1), cols: make([]int32, 0, nonZeros), sims: make([]float64, 0, nonZeros),
	}
}

// openRows ends the rows before row and begins row, to which add then appends.
func (s *Similarities) openRows(row int) {
	for len(s.offsets) <= row {
		s.offsets = append(s.offsets, len(s.cols))
	}
}

func (s *Similarities) add(col int32, sim float64) {
	if sim != 0 {
		s.cols, s.sims = append(s.cols, col), append(s.sims, sim)
	}
}

// Len returns n, the number of terms.
func (s *Similarities) Len() int { return len(s.offsets) - 1 }

// NonZeros returns the number of entries off the diagonal that are not 0.
func (s *Similarities) NonZeros() int { return len(s.cols) }

// Density returns the share of the n² entries that are not 0, with the
// diagonal, in (0, 1]; 0 for n = 0.
func (s *Similarities) Density() float64 {
	n := float64(s.Len())
	if n == 0 {
		return 0
	}
	return (float64(s.NonZeros()) + n) / (n * n)
}

// Row returns the entries of row i off the diagonal that are not 0, in
// ascending columns, not to be modified. It panics unless 0 <= i < n.
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

// Symmetric reports whether s_ij = s_ji for all i and j, in O(nnz).
func (s *Similarities) Symmetric() bool {
	// The rows are walked in ascending i, so that of row j, whose columns
	// ascend, too, the entry of column i must be the next that was not met.
	next := slices.Clone(s.offsets)
	for i := range s.Len() {
		cols, sims := s.Row(i)
		for k, j := range cols {
			at := next[j]
			if at == s.offsets[j+1] || int(s.cols[at]) != i || s.sims[at] != sims[k] {
				return false
			}
			next[j]++
		}
	}
	return true
}

// Transposed returns Sᵀ, in O(nnz).
func (s *Similarities) Transposed() *Similarities {
	n := s.Len()
	t := &Similarities{offsets: make([]int, n+1), cols: make([]int32, len(s.cols)), sims: make([]float64, len(s.sims))}
	for _, j := range s.cols {
		t.offsets[j+1]++
	}
	for j := range n {
		t.offsets[j+1] += t.offsets[j]
	}
	next := slices.Clone(t.offsets)
	for i := range n {
		cols, sims := s.Row(i)
		for k, j := range cols {
			t.cols[next[j]], t.sims[next[j]] = int32(i), sims[k]
			next[j]++
		}
	}
	return t
}

// Symmetrized returns ½(S + Sᵀ), in O(nnz); S itself where it is symmetric. It
// leaves every ⟨x, x⟩ as it is, and of ⟨x, y⟩ and ⟨y, x⟩ makes the mean.
func (s *Similarities) Symmetrized() *Similarities {
	if s.Symmetric() {
		return s
	}
	t := s.Transposed()
	out := newSimilarities(s.Len(), 2*s.NonZeros())
	sums := newScratch(s.Len())
	for i := range s.Len() {
		out.openRows(i)
		for _, half := range []*Similarities{s, t} {
			cols, sims := half.Row(i)
			for k, j := range cols {
				sums.add(j, sims[k]/2)
			}
		}
		row := sums.vector()
		sums.clear()
		out.cols, out.sims = append(out.cols, row.Terms...), append(out.sims, row.Values...)
	}
	out.openRows(s.Len())
	return out
}

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
// ascending byte order, then the others of extra.
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
