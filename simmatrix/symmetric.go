package simmatrix

// symmetric reports whether s_ij = s_ji for all i and j. The entries must have
// passed the checks of a matrix. It looks at a band of columns at a time, about
// a sixteenth of the entries, which it takes memory for.
func (e *Entries) symmetric() bool {
	const bands = 16
	n := len(e.Offsets) - 1
	starts := e.startsUnder()
	if 2*starts[n] != len(e.Cols) {
		return false // and if there are as many over the diagonal, none is missing where each under it has its mirror
	}
	var under []Entry
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
func (e *Entries) startsUnder() []int {
	n := len(e.Offsets) - 1
	starts := make([]int, n+1)
	for i := range n {
		cols, _ := e.Row(i)
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
func (e *Entries) under(dst []Entry, lo, hi int, starts []int) []Entry {
	size := starts[hi] - starts[lo]
	if cap(dst) < size {
		dst = make([]Entry, size)
	}
	next := make([]int, hi-lo)
	for j := range next {
		next[j] = starts[lo+j] - starts[lo]
	}
	for i := lo + 1; i < len(e.Offsets)-1; i++ {
		cols, sims := e.Row(i)
		for k, col := range cols {
			if int(col) >= lo && int(col) < min(hi, i) {
				at := &next[int(col)-lo]
				dst[:size][*at] = Entry{Col: uint32(i), Units: sims[k]} //nolint:gosec // at most MaxTerms
				*at++
			}
		}
	}
	return dst[:size]
}

// mirrors reports whether the entries of column j under the diagonal are in row
// j over it, too. row holds zeros, and does again afterwards.
func (e *Entries) mirrors(j int, under []Entry, row []uint16) bool {
	cols, sims := e.Row(j)
	for k, col := range cols {
		row[col] = sims[k]
	}
	same := true
	for _, u := range under {
		same = same && row[u.Col] == u.Units
	}
	for _, col := range cols {
		row[col] = 0
	}
	return same
}
