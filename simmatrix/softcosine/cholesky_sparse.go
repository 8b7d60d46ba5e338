package softcosine

import "slices"

// A rowFactor is a sparse lower triangular matrix F by rows, in ascending
// columns, so that the entry of the diagonal ends each row.
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
// [*PivotError].
//
// It is the up-looking method, which makes F row by row, but with edge rows
// at a time: rows that follow each other have much the same columns, and
// what is read of F for one of them serves all.
func factorize(s *Similarities, st *structure) (*rowFactor, error) {
	n := s.Len()
	up := &upLooking{
		structure: st, s: s, subtract: fastestSubtraction(), spread: fastestSpread(),
		starts: make([]int, n+1), ends: make([]int, n), diagonal: make([]float64, n),
		rows: make([]int32, st.nonZeros-n), values: make([]float64, st.nonZeros-n),
		accumulators: make([][edge]float64, n), seen: make([]int32, n), inBlock: make([]int32, n),
		out: rowFactor{offsets: make([]int, 1, n+1), cols: make([]int32, 0, st.nonZeros), values: make([]float64, 0, st.nonZeros)},
	}
	for j, entries := range st.columns {
		up.starts[j+1] = up.starts[j] + entries
		up.ends[j] = up.starts[j]
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

// upLooking is the state of a factorization. The block is the rows that are
// being made.
type upLooking struct {
	*structure
	s        *Similarities
	subtract subtraction
	spread   spread

	// F by columns below the diagonal: column j is at [starts[j], ends[j]) so
	// far. out is F by rows.
	starts, ends []int
	rows         []int32
	values       []float64
	diagonal     []float64
	out          rowFactor

	patterns      [edge][]int32   // the columns of each row of the block, without the diagonal
	size          int             // the number of its rows
	columns       []int32         // those columns that are before the block, ascending
	accumulators  [][edge]float64 // by column, the block's rows of PᵀSP and then of F
	panel         []float64       // the block's rows of F before the block
	corner        tile            // and in it
	seen, inBlock []int32         // marks of columns: one more than the row and the first row they were last found for
}

// find finds the columns of the block and sets its rows to those of PᵀSP.
func (up *upLooking) find(first, size int) {
	up.size, up.columns, up.corner = size, up.columns[:0], tile{}
	mark := int32(first) + 1 //nolint:gosec // n is an int32
	for r := range edge {
		up.corner[(edge+1)*r] = 1
		up.patterns[r] = up.patterns[r][:0]
		if r >= size {
			continue
		}
		up.patterns[r] = up.row(up.patterns[r], up.s, first+r, up.seen)
		slices.Sort(up.patterns[r])
		for _, j := range up.patterns[r] {
			if int(j) < first && up.inBlock[j] != mark {
				up.inBlock[j] = mark
				up.columns = append(up.columns, j)
			}
		}
		cols, sims := up.s.Row(int(up.order[first+r]))
		for k, term := range cols {
			switch j := int(up.places[term]); {
			case j < first:
				up.accumulators[j][r] = sims[k]
			case j < first+r:
				up.corner[edge*(j-first)+r] = sims[k]
			}
		}
	}
	slices.Sort(up.columns)
}

// eliminate makes the block's rows those of F.
func (up *upLooking) eliminate(first int) error {
	up.panel = up.panel[:0]
	for _, j := range up.columns {
		column, inverse := &up.accumulators[j], 1/up.diagonal[j]
		for r := range column {
			column[r] *= inverse
		}
		lo, hi := up.starts[j], up.ends[j]
		up.spread(up.accumulators, up.rows[lo:hi], up.values[lo:hi], column)
		up.panel = append(up.panel, column[:]...)
	}
	up.subtract(&up.corner, up.panel, up.panel)
	var floors [edge]float64
	for r := range floors[:up.size] {
		floors[r] = pivotFloor(len(up.order), 1)
	}
	if column, pivot := up.corner.factor(floors[:]); column < edge {
		return &PivotError{Row: int(up.order[first+column]), Pivot: pivot}
	}
	return nil
}

func (up *upLooking) store(first int) {
	for r := range up.size {
		for _, j := range up.patterns[r] {
			var value float64
			if int(j) < first {
				value = up.accumulators[j][r]
			} else {
				value = up.corner[edge*(int(j)-first)+r]
			}
			up.rows[up.ends[j]] = int32(first + r) //nolint:gosec // n is an int32
			up.values[up.ends[j]] = value
			up.ends[j]++
			up.out.cols, up.out.values = append(up.out.cols, j), append(up.out.values, value)
		}
		root := up.corner[(edge+1)*r]
		up.diagonal[first+r] = root
		up.out.cols = append(up.out.cols, int32(first+r)) //nolint:gosec // n is an int32
		up.out.values = append(up.out.values, root)
		up.out.offsets = append(up.out.offsets, len(up.out.cols))
	}
	for _, j := range up.columns {
		up.accumulators[j] = [edge]float64{}
	}
}
