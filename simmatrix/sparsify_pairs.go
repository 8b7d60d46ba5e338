package simmatrix

import "slices"

// A columnIndex lists the entries of a matrix column by column, 8 bytes each:
// column j is at [offsets[j], offsets[j+1]) of the other slices, in ascending
// row. The similarities are copied because the matrix has them all over.
type columnIndex struct {
	offsets []int
	rows    []uint32
	places  []uint16 // of the entry in its row, under MaxNeighbors
	sims    []uint16
}

// byColumn returns the index of the entries that have a mark; marks of nil
// stand for all entries.
func (e *entries) byColumn(marks []uint8) columnIndex {
	n := len(e.offsets) - 1
	c := columnIndex{offsets: make([]int, n+1)}
	for at, col := range e.cols {
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
		first := e.offsets[i]
		for at := first; at < e.offsets[i+1]; at++ {
			if marks == nil || marks[at] != 0 {
				to := next[e.cols[at]]
				next[e.cols[at]]++
				c.rows[to], c.places[to], c.sims[to] = uint32(i), uint16(at-first), e.sims[at] //nolint:gosec // a matrix has fewer rows, a row fewer entries
			}
		}
	}
	return c
}

// column returns the rows that have an entry in column j, with its places in
// them and its similarities.
func (c *columnIndex) column(j int) (rows []uint32, places, sims []uint16) {
	lo, hi := c.offsets[j], c.offsets[j+1]
	return c.rows[lo:hi], c.places[lo:hi], c.sims[lo:hi]
}

// A pairOfEntries is s_ij and s_ji of a row i and a neighbor j. The similarity
// of one that is not there is 0.
type pairOfEntries struct {
	j          uint32
	ij, ji     pairEntry
	atIJ, atJI int // of those that are there in the matrix
	protected  bool
}

// A pairer marks the pairs that enter a matrix.
type pairer struct {
	*sparsifier
	columns columnIndex
	rank    []uint32 // of each term in the order of the strategy
	taken   []int    // entries of each row
	sums    []int    // of each row, in units

	// Scratch of pairsOf, valid until its next call, and of sorting.
	pairs []pairOfEntries
	place []uint32 // by neighbor: its place in pairs, plus 1; 0 for others
	keys  []uint64
}

// pairedEntries returns the entries where pairs stay or go together. Each pair
// is looked at once, in the row that comes first in the order.
func (s *sparsifier) pairedEntries() entries {
	n := len(s.from.terms)
	p := &pairer{
		sparsifier: s, columns: s.from.byColumn(s.marks), rank: make([]uint32, n),
		taken: make([]int, n), sums: make([]int, n), place: make([]uint32, n),
	}
	order := s.from.byDocFreq()
	for at, i := range order {
		p.rank[i] = uint32(at)
	}
	if s.inProtected != nil {
		for _, i := range order {
			if s.inProtected[i] {
				p.chooseProtected(i)
			}
		}
	}
	for _, i := range order {
		if p.fits(p.taken[i], p.sums[i], 1) {
			p.choose(i)
		}
	}
	if !s.opts.Symmetric {
		return s.markedEntries(chosen)
	}
	return p.chosenEntries()
}

// pairsOf returns the pairs of row i that have mark in a direction, in no
// order; those with rows before i in the order only if earlier. The directions
// of a pair are made alike if the matrix is to be symmetric.
func (p *pairer) pairsOf(i uint32, mark uint8, earlier bool) []pairOfEntries {
	for _, pair := range p.pairs {
		p.place[pair.j] = 0
	}
	p.pairs = p.pairs[:0]
	cols, sims := p.from.row(int(i))
	for k, marks := range p.row(int(i)) {
		if j := cols[k]; marks&mark != 0 && (earlier || p.rank[j] > p.rank[i]) {
			pair := p.pair(j)
			pair.ij = pairEntry{sim: sims[k], origins: p.from.originsAt(int(i), k)}
			pair.atIJ, pair.protected = p.from.offsets[i]+k, marks&protected != 0
		}
	}
	rows, places, back := p.columns.column(int(i))
	for k, j := range rows {
		if !earlier && p.rank[j] < p.rank[i] {
			continue
		}
		at, marks := p.from.offsets[j]+int(places[k]), uint8(kept) // as all in columns
		if mark != kept || p.inProtected != nil {
			marks = p.marks[at] // far away in memory
		}
		if marks&mark != 0 {
			pair := p.pair(j)
			pair.ji = pairEntry{sim: back[k], origins: p.from.originsAt(int(j), int(places[k]))}
			pair.atJI, pair.protected = at, pair.protected || marks&protected != 0
		}
	}
	if p.opts.Symmetric {
		for k := range p.pairs {
			pair := &p.pairs[k]
			pair.ij = pairEntry{sim: max(pair.ij.sim, pair.ji.sim), origins: pair.ij.origins | pair.ji.origins}
			pair.ji = pair.ij
		}
	}
	return p.pairs
}

// pair returns the pair with neighbor j in pairs, a new one where it has none.
// It is valid until the next call.
func (p *pairer) pair(j uint32) *pairOfEntries {
	if p.place[j] == 0 {
		p.pairs = append(p.pairs, pairOfEntries{j: j, atIJ: -1, atJI: -1})
		p.place[j] = uint32(len(p.pairs)) //nolint:gosec // at most the number of terms
	}
	return &p.pairs[p.place[j]-1]
}

// chooseProtected chooses the protected pairs of row i with later rows.
func (p *pairer) chooseProtected(i uint32) {
	for _, pair := range p.pairsOf(i, protected, false) {
		p.add(i, pair)
	}
}

// choose chooses, of the other pairs of row i with later rows, those that fit.
func (p *pairer) choose(i uint32) {
	p.keys = p.keys[:0]
	for _, pair := range p.pairsOf(i, kept, false) {
		oneWay := pair.atIJ < 0 || pair.atJI < 0
		if pair.protected || (p.opts.Mutual && oneWay) || !p.fits(p.taken[pair.j], p.sums[pair.j], pair.ji.sim) {
			continue
		}
		p.keys = append(p.keys, entryKey(entry{col: pair.j, sim: pair.ij.sim}))
	}
	slices.Sort(p.keys)
	for _, key := range p.keys {
		e := keyedEntry(key)
		if p.fits(p.taken[i], p.sums[i], e.sim) {
			p.add(i, p.pairs[p.place[e.col]-1])
		}
	}
}

// add marks a pair of row i as chosen.
func (p *pairer) add(i uint32, pair pairOfEntries) {
	if pair.atIJ >= 0 {
		p.marks[pair.atIJ] |= chosen
	}
	if pair.atJI >= 0 {
		p.marks[pair.atJI] |= chosen
	}
	if pair.ij.sim > 0 {
		p.taken[i]++
		p.sums[i] += int(pair.ij.sim)
	}
	if pair.ji.sim > 0 {
		p.taken[pair.j]++
		p.sums[pair.j] += int(pair.ji.sim)
	}
}

// chosenEntries returns the chosen pairs in both directions.
func (p *pairer) chosenEntries() entries {
	total := 0
	for _, taken := range p.taken {
		total += taken
	}
	out := roomFor(total, len(p.taken), p.from.origins != nil)
	for i := range p.taken {
		p.keys = p.keys[:0]
		for _, pair := range p.pairsOf(uint32(i), chosen, true) {
			p.keys = append(p.keys, entryKey(entry{col: pair.j, sim: pair.ij.sim, origins: pair.ij.origins}))
		}
		slices.Sort(p.keys)
		for _, key := range p.keys {
			out.appendEntry(keyedEntry(key))
		}
		out.offsets = append(out.offsets, len(out.cols))
	}
	return out
}

// appendEntry appends e to the row that is being written.
func (e *entries) appendEntry(n entry) {
	e.cols, e.sims = append(e.cols, n.col), append(e.sims, n.sim)
	if e.origins != nil {
		e.origins = append(e.origins, n.origins)
	}
}

// entryKey returns a number that orders entries as [compareEntries] does and
// holds all of e. Numbers are sorted several times as fast.
func entryKey(e entry) uint64 {
	return uint64(similarityUnits-e.sim)<<40 | uint64(e.col)<<8 | uint64(e.origins)
}

// keyedEntry returns the entry of a key.
func keyedEntry(key uint64) entry {
	return entry{
		sim:     similarityUnits - uint16(key>>40), //nolint:gosec // the key has no bit above
		col:     uint32(key >> 8 & 0xffffffff),
		origins: uint8(key & 0xff),
	}
}
