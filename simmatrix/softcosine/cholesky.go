package softcosine

import (
	"math"
	"slices"
)

// A rowFactor is a sparse lower triangular F by rows, in ascending columns.
type rowFactor struct {
	offsets []int // row k is at [offsets[k], offsets[k+1])
	cols    []int32
	values  []float64
}

func (f *rowFactor) row(k int) (cols []int32, values []float64) {
	lo, hi := f.offsets[k], f.offsets[k+1]
	return f.cols[lo:hi], f.values[lo:hi]
}

// factorize returns the Cholesky factor F of PᵀSP, given its structure, or a
// [*PivotError]. It is the up-looking method, which makes F row by row: row k
// solves a triangular system with the rows above it (Davis, Direct Methods for
// Sparse Linear Systems, 2006, section 4.7).
func factorize(s *Similarities, st *structure) (*rowFactor, error) {
	n := s.Len()
	out := &rowFactor{offsets: make([]int, 1, n+1), cols: make([]int32, 0, st.nonZeros), values: make([]float64, 0, st.nonZeros)}
	// What is known of F below the diagonal, by columns: column j is at [starts[j], ends[j]).
	starts, ends := make([]int, n), make([]int, n)
	for j := range n - 1 {
		starts[j+1] = starts[j] + st.columns[j]
		ends[j+1] = starts[j+1]
	}
	rows, values := make([]int32, st.nonZeros-n), make([]float64, st.nonZeros-n)
	diagonal := make([]float64, n)
	x := make([]float64, n) // row k of PᵀSP, without what is done
	seen := make([]int32, n)
	var pattern []int32
	for k, i := range st.order {
		pattern = st.row(pattern[:0], s, k, seen)
		slices.Sort(pattern)
		cols, sims := s.Row(int(i))
		for l, term := range cols {
			if j := st.places[term]; int(j) < k {
				x[j] = sims[l]
			}
		}
		pivot := 1.0
		for _, j := range pattern {
			v := x[j] / diagonal[j]
			x[j] = 0
			pivot -= v * v
			subtract(x, rows[starts[j]:ends[j]], values[starts[j]:ends[j]], v)
			rows[ends[j]], values[ends[j]] = int32(k), v
			ends[j]++
			out.cols, out.values = append(out.cols, j), append(out.values, v)
		}
		if !(pivot > pivotFloor(n, 1)) { // written so that NaN fails
			return nil, &PivotError{Row: int(i), Pivot: pivot}
		}
		diagonal[k] = math.Sqrt(pivot)
		out.cols, out.values = append(out.cols, int32(k)), append(out.values, diagonal[k])
		out.offsets = append(out.offsets, len(out.cols))
	}
	return out, nil
}

// subtract sets x[rows[k]] = x[rows[k]] − values[k]·v for all k.
func subtract(x []float64, rows []int32, values []float64, v float64) {
	values = values[:len(rows)]
	for k, i := range rows {
		x[i] -= values[k] * v
	}
}

// A structure says where the Cholesky factor F of PᵀSP has entries. Rows and
// columns are places in the order.
type structure struct {
	order    []int32 // the term at each place
	places   []int32 // the place of each term
	parent   []int32 // of each column in the elimination tree: the row of its first entry below the diagonal; none
	columns  []int   // entries of each column below the diagonal
	nonZeros int     // with the diagonal
}

const none = -1

// analyze returns the structure for a symmetric S and an order of its terms, in
// O(n) memory, and time in proportion to the entries of F (Liu, The Role of
// Elimination Trees in Sparse Factorization, 1990).
func analyze(s *Similarities, order []int32) *structure {
	n := s.Len()
	st := &structure{order: order, places: inverse(order), parent: make([]int32, n), columns: make([]int, n), nonZeros: n}
	ancestors := make([]int32, len(st.order)) // shortcuts towards the roots
	for k, i := range st.order {
		st.parent[k], ancestors[k] = none, none
		cols, _ := s.Row(int(i))
		for _, j := range cols {
			for at := st.places[j]; at != none && int(at) < k; {
				next := ancestors[at]
				ancestors[at] = int32(k)
				if next == none {
					st.parent[at] = int32(k)
				}
				at = next
			}
		}
	}
	seen := make([]int32, n)
	var row []int32
	for k := range order {
		row = st.row(row[:0], s, k, seen)
		st.nonZeros += len(row)
		for _, j := range row {
			st.columns[j]++
		}
	}
	return st
}

// row appends the columns of row k of F that have an entry, without the
// diagonal, to dst: the places on the ways from those of PᵀSP up the tree to k.
// seen is by column, 0 before the first row.
func (st *structure) row(dst []int32, s *Similarities, k int, seen []int32) []int32 {
	mark := int32(k) + 1 //nolint:gosec // n is an int32
	cols, _ := s.Row(int(st.order[k]))
	for _, j := range cols {
		for at := st.places[j]; int(at) < k && seen[at] != mark; at = st.parent[at] {
			seen[at] = mark
			dst = append(dst, at)
		}
	}
	return dst
}
