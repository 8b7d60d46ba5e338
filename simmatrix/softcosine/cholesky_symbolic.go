package softcosine

// A structure says where the Cholesky factor F of PᵀSP has entries, apart
// from those that come out as 0 by chance. Rows and columns are places in
// the order.
type structure struct {
	order    []int32 // the term at each place
	places   []int32 // the place of each term
	parent   []int32 // of each column in the elimination tree: the row of its first entry below the diagonal; none
	columns  []int   // entries of each column below the diagonal
	nonZeros int     // with the diagonal
}

const none = -1

// analyze returns the structure for a symmetric S and an order of its terms.
// It takes O(n) memory, and time in proportion to the entries of F (Liu, The
// Role of Elimination Trees in Sparse Factorization, 1990).
func analyze(s *Similarities, order []int32) *structure {
	n := s.Len()
	st := &structure{order: order, places: inverse(order), parent: make([]int32, n), columns: make([]int, n), nonZeros: n}
	st.grow(s)
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

func (st *structure) grow(s *Similarities) {
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
}

// row appends the columns of row k of F that have an entry, without that of
// the diagonal, to dst: the places on the ways from those of PᵀSP up the
// tree to k. seen has a place for each column; it is 0 before the first row.
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
