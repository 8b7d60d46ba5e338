package simmatrix

import "slices"

// A Columns lists the entries of a matrix column by column, 8 bytes each:
// column j is at [offsets[j], offsets[j+1]) of the other slices, in ascending
// row. The similarities are copied because in the matrix they lie far apart.
type Columns struct {
	offsets []int
	rows    []uint32
	places  []uint16 // of the entry in its row, under MaxNeighbors
	sims    []uint16
}

// ByColumn returns the index of the entries that have a mark; marks of nil
// stand for all entries.
func (e *Entries) ByColumn(marks []uint8) Columns {
	n := len(e.Offsets) - 1
	c := Columns{offsets: make([]int, n+1)}
	for at, col := range e.Cols {
		if marks == nil || marks[at] != 0 {
			c.offsets[col+1]++
		}
	}
	for j := range n {
		c.offsets[j+1] += c.offsets[j]
	}
	total := c.offsets[n]
	c.rows, c.places, c.sims = make([]uint32, total), make([]uint16, total), make([]uint16, total)
	next := slices.Clone(c.offsets[:n])
	for i := range n {
		first := e.Offsets[i]
		for at := first; at < e.Offsets[i+1]; at++ {
			if marks == nil || marks[at] != 0 {
				to := next[e.Cols[at]]
				next[e.Cols[at]]++
				c.rows[to], c.places[to], c.sims[to] = uint32(i), uint16(at-first), e.Sims[at] //nolint:gosec // a matrix has fewer rows, a row fewer entries
			}
		}
	}
	return c
}

// Column returns the rows that have an entry in column j, with its places in
// them and its similarities.
func (c *Columns) Column(j int) (rows []uint32, places, sims []uint16) {
	lo, hi := c.offsets[j], c.offsets[j+1]
	return c.rows[lo:hi], c.places[lo:hi], c.sims[lo:hi]
}
