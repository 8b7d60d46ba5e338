package simmatrix

import "sort"

// symmetric reports whether s_ij = s_ji for all i and j. The entries must have
// passed the checks of a matrix: each row is in the order of [CompareEntries],
// so that it can be searched for the mirror of an entry.
func (e *Entries) symmetric() bool {
	mirrored := 0
	for i := range len(e.Offsets) - 1 {
		cols, sims := e.Row(i)
		for k, j := range cols {
			if int(j) > i {
				continue
			}
			if !e.has(int(j), uint32(i), sims[k]) {
				return false
			}
			mirrored++
		}
	}
	return 2*mirrored == len(e.Cols) // else some entry over the diagonal has none under it
}

// has reports whether row i has a similarity in a column.
func (e *Entries) has(i int, col uint32, units uint16) bool {
	cols, sims := e.Row(i)
	k := sort.Search(len(cols), func(k int) bool { return sims[k] < units || (sims[k] == units && cols[k] >= col) })
	return k < len(cols) && cols[k] == col && sims[k] == units
}
