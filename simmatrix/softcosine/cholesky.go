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
// [*PivotError]. It is the up-looking method, which makes F row by row, but
// with edge rows at a time, which have much the same columns.
func factorize(s *Similarities, st *structure) (*rowFactor, error) {
	n := s.Len()
	up := &upLooking{
		structure: st, s: s,
		below: columnFactor{
			starts: make([]int, n+1), ends: make([]int, n), rows: make([]int32, st.nonZeros-n), values: make([]float64, st.nonZeros-n),
		},
		diagonal: make([]float64, n), accumulators: make([][edge]float64, n), seen: make([]int32, n), inBlock: make([]int32, n),
		out: rowFactor{offsets: make([]int, 1, n+1), cols: make([]int32, 0, st.nonZeros), values: make([]float64, 0, st.nonZeros)},
	}
	for j, entries := range st.columns {
		up.below.starts[j+1] = up.below.starts[j] + entries
		up.below.ends[j] = up.below.starts[j]
	}
	for first := 0; first < n; first += edge {
		up.find(first, min(edge, n-first))
		if err := up.eliminate(first); err != nil {
			return nil, err
		}
		up.store(first)
	}
	return &up.out, nil
}

// A columnFactor is what is known of F below the diagonal, by columns: column j
// is at [starts[j], ends[j]).
type columnFactor struct {
	starts, ends []int
	rows         []int32
	values       []float64
}

// A block is some rows of F that are being made.
type block struct {
	patterns [edge][]int32 // the columns of each row, without the diagonal
	size     int           // the number of rows
	columns  []int32       // those columns that are before the block, ascending
	panel    []float64     // the rows before the block
	corner   tile          // and in it
}

// upLooking is the state of a factorization.
type upLooking struct {
	*structure
	s *Similarities

	below         columnFactor
	diagonal      []float64
	out           rowFactor // F by rows
	block         block
	accumulators  [][edge]float64 // by column, the block's rows of PᵀSP and then of F
	seen, inBlock []int32         // marks of columns: one more than the row, the first row, they were last found for
}

// find finds the columns of the block and sets its rows to those of PᵀSP.
func (up *upLooking) find(first, size int) {
	b := &up.block
	b.size, b.columns, b.corner = size, b.columns[:0], tile{}
	mark := int32(first) + 1 //nolint:gosec // n is an int32
	for r := range edge {
		b.corner[(edge+1)*r] = 1
		b.patterns[r] = b.patterns[r][:0]
		if r >= size {
			continue
		}
		b.patterns[r] = up.row(b.patterns[r], up.s, first+r, up.seen)
		slices.Sort(b.patterns[r])
		for _, j := range b.patterns[r] {
			if int(j) < first && up.inBlock[j] != mark {
				up.inBlock[j] = mark
				b.columns = append(b.columns, j)
			}
		}
		cols, sims := up.s.Row(int(up.order[first+r]))
		for k, term := range cols {
			switch j := int(up.places[term]); {
			case j < first:
				up.accumulators[j][r] = sims[k]
			case j < first+r:
				b.corner[edge*(j-first)+r] = sims[k]
			}
		}
	}
	slices.Sort(b.columns)
}

// eliminate makes the block's rows those of F.
func (up *upLooking) eliminate(first int) error {
	b, below := &up.block, &up.below
	b.panel = b.panel[:0]
	for _, j := range b.columns {
		column, inverse := &up.accumulators[j], 1/up.diagonal[j]
		for r := range column {
			column[r] *= inverse
		}
		lo, hi := below.starts[j], below.ends[j]
		spread(up.accumulators, below.rows[lo:hi], below.values[lo:hi], column)
		b.panel = append(b.panel, column[:]...)
	}
	b.corner.subtract(b.panel, b.panel)
	floors := [edge]float64{}
	for r := range floors[:b.size] {
		floors[r] = pivotFloor(len(up.order), 1)
	}
	if column, pivot := b.corner.factor(floors[:]); column < edge {
		return &PivotError{Row: int(up.order[first+column]), Pivot: pivot}
	}
	return nil
}

func (up *upLooking) store(first int) {
	b, below := &up.block, &up.below
	for r := range b.size {
		for _, j := range b.patterns[r] {
			var value float64
			if int(j) < first {
				value = up.accumulators[j][r]
			} else {
				value = b.corner[edge*(int(j)-first)+r]
			}
			below.rows[below.ends[j]] = int32(first + r) //nolint:gosec // n is an int32
			below.values[below.ends[j]] = value
			below.ends[j]++
			up.out.cols, up.out.values = append(up.out.cols, j), append(up.out.values, value)
		}
		root := b.corner[(edge+1)*r]
		up.diagonal[first+r] = root
		up.out.cols = append(up.out.cols, int32(first+r)) //nolint:gosec // n is an int32
		up.out.values = append(up.out.values, root)
		up.out.offsets = append(up.out.offsets, len(up.out.cols))
	}
	for _, j := range b.columns {
		up.accumulators[j] = [edge]float64{}
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

// spread sets x[rows[k]] = x[rows[k]] − values[k]·v for all k. There are as
// many rows as values, each only once, and v is not among them.
func spread(x [][edge]float64, rows []int32, values []float64, v *[edge]float64) {
	for k, i := range rows {
		to, factor := &x[i], values[k]
		to[0] -= factor * v[0]
		to[1] -= factor * v[1]
		to[2] -= factor * v[2]
		to[3] -= factor * v[3]
		to[4] -= factor * v[4]
		to[5] -= factor * v[5]
		to[6] -= factor * v[6]
		to[7] -= factor * v[7]
	}
}

// A tile is an edge×edge block of a matrix, column by column: element (r, c) is
// at [edge·c + r]. A panel is tiles next to each other, a matrix of edge rows.
const edge = 8

type tile [edge * edge]float64

// subtract sets t = t − A·Bᵀ for panels a and b of equally many columns, in
// squares of four, so that sums stay in registers.
func (t *tile) subtract(a, b []float64) {
	for c := 0; c < edge; c += 2 {
		for r := 0; r < edge; r += 4 {
			var p0, p1, p2, p3, q0, q1, q2, q3 float64
			for x, y := a, b; len(x) >= edge && len(y) >= edge; x, y = x[edge:], y[edge:] {
				rows, u, v := (*[4]float64)(x[r:r+4]), y[c], y[c+1]
				p0 += rows[0] * u
				p1 += rows[1] * u
				p2 += rows[2] * u
				p3 += rows[3] * u
				q0 += rows[0] * v
				q1 += rows[1] * v
				q2 += rows[2] * v
				q3 += rows[3] * v
			}
			left, right := t[edge*c+r:], t[edge*(c+1)+r:]
			left[0], left[1], left[2], left[3] = left[0]-p0, left[1]-p1, left[2]-p2, left[3]-p3
			right[0], right[1], right[2], right[3] = right[0]-q0, right[1]-q1, right[2]-q2, right[3]-q3
		}
	}
}

// factor makes the lower triangle of t its Cholesky factor. It returns the
// first column whose pivot is not above its floor, and that pivot; or edge.
func (t *tile) factor(floors []float64) (column int, pivot float64) {
	for c := range edge {
		pivot = t[edge*c+c]
		if !(pivot > floors[c]) { // NaN is not above it, either
			return c, pivot
		}
		root := math.Sqrt(pivot)
		for r := c; r < edge; r++ {
			t[edge*c+r] /= root
		}
		for k := c + 1; k < edge; k++ {
			for r := k; r < edge; r++ {
				t[edge*k+r] -= t[edge*c+r] * t[edge*c+k]
			}
		}
	}
	return edge, 0
}
