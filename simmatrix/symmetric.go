package simmatrix

// symmetric reports whether s_ij = s_ji for all i and j. The entries must have
// passed the checks of a matrix. It looks at a band of columns at a time, about
// a sixteenth of the entries, which it takes memory for.
func (e *entries) symmetric() bool {
	const bands = 16
	n := len(e.offsets) - 1
	starts := e.startsUnder()
	if 2*starts[n] != len(e.cols) {
		return false // and if there are as many over the diagonal, none is missing where each under it has its mirror
	}
	var under []entry
	row := make([]uint16, n) // the similarities of a row by column
	for lo := 0; lo < n; {
		hi := lo + 1
		for hi < n && starts[hi+1]-starts[lo] <= starts[n]/bands {
			hi++
		}
		under = e.under(under, lo, hi, starts)
		for j := lo; j < hi; j++ {
			if !e.mirrors(j, under[starts[j]-starts[lo]:starts[j+1]-starts[lo]], row) {
				return false
			}
		}
		lo = hi
	}
	return true
}

// startsUnder returns where each column starts, and the last one ends, among
// the entries under the diagonal, column after column.
func (e *entries) startsUnder() []int {
	n := len(e.offsets) - 1
	starts := make([]int, n+1)
	for i := range n {
		cols, _ := e.row(i)
		for _, col := range cols {
			if int(col) < i {
				starts[col+1]++
			}
		}
	}
	for j := range n {
		starts[j+1] += starts[j]
	}
	return starts
}

// under returns the entries under the diagonal in the columns [lo, hi), column
// after column, with their row in place of the column. It uses the memory of
// dst.
func (e *entries) under(dst []entry, lo, hi int, starts []int) []entry {
	size := starts[hi] - starts[lo]
	if cap(dst) < size {
		dst = make([]entry, size)
	}
	next := make([]int, hi-lo)
	for j := range next {
		next[j] = starts[lo+j] - starts[lo]
	}
	for i := lo + 1; i < len(e.offsets)-1; i++ {
		cols, sims := e.row(i)
		for k, col := range cols {
			if int(col) >= lo && int(col) < min(hi, i) {
				at := &next[int(col)-lo]
				dst[:size][*at] = entry{col: uint32(i), sim: sims[k]} //nolint:gosec // at most MaxTerms
				*at++
			}
		}
	}
	return dst[:size]
}

// mirrors reports whether the entries of column j under the diagonal are in row
// j over it, too. row holds zeros, and does again afterwards.
func (e *entries) mirrors(j int, under []entry, row []uint16) bool {
	cols, sims := e.row(j)
	for k, col := range cols {
		row[col] = sims[k]
	}
	same := true
	for _, u := range under {
		same = same && row[u.col] == u.sim
	}
	for _, col := range cols {
		row[col] = 0
	}
	return same
}
