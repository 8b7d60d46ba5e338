package shape

import (
	"slices"

	"github.com/akin-search/akin/simmatrix"
)

// A pairEntry is one direction of a pair: an [simmatrix.Entry] without its
// column.
type pairEntry struct {
	sim     uint16 // 0 where it is missing
	origins uint8
}

// A pairOfEntries is s_ij and s_ji of a row i and a neighbor j. A missing one
// has similarity 0.
type pairOfEntries struct {
	j          uint32
	ij, ji     pairEntry
	atIJ, atJI int // valid only where the entry is in the matrix
	protected  bool
}

type pairer struct {
	*sparsifier
	columns simmatrix.Columns
	rank    []uint32 // of each term in the order of the strategy
	taken   []int    // entries of each row
	sums    []int    // of each row, in units

	// Scratch of pairsOf, valid until its next call, and of sorting.
	pairs []pairOfEntries
	place []uint32 // by neighbor: its place in pairs, plus 1; 0 for others
	keys  []uint64
}

// pairedEntries returns the entries where pairs stay or go together. Each pair
// is considered in the row that comes first.
func (s *sparsifier) pairedEntries() simmatrix.Entries {
	n := len(s.from.Terms)
	p := &pairer{
		sparsifier: s, columns: s.from.ByColumn(s.marks), rank: make([]uint32, n),
		taken: make([]int, n), sums: make([]int, n), place: make([]uint32, n),
	}
	order := byDocFreq(s.from)
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
	cols, sims := p.from.Row(int(i))
	for k, marks := range p.row(int(i)) {
		if j := cols[k]; marks&mark != 0 && (earlier || p.rank[j] > p.rank[i]) {
			pair := p.pair(j)
			pair.ij = pairEntry{sim: sims[k], origins: p.from.OriginsAt(int(i), k)}
			pair.atIJ, pair.protected = p.from.Offsets[i]+k, marks&protected != 0
		}
	}
	rows, places, back := p.columns.Column(int(i))
	for k, j := range rows {
		if !earlier && p.rank[j] < p.rank[i] {
			continue
		}
		at, marks := p.from.Offsets[j]+int(places[k]), uint8(kept) // as all in columns
		if mark != kept || p.inProtected != nil {
			marks = p.marks[at] // far away in memory
		}
		if marks&mark != 0 {
			pair := p.pair(j)
			pair.ji = pairEntry{sim: back[k], origins: p.from.OriginsAt(int(j), int(places[k]))}
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

// pair returns the pair with neighbor j, a new one where it has none, valid
// until the next call.
func (p *pairer) pair(j uint32) *pairOfEntries {
	if p.place[j] == 0 {
		p.pairs = append(p.pairs, pairOfEntries{j: j, atIJ: -1, atJI: -1})
		p.place[j] = uint32(len(p.pairs)) //nolint:gosec // at most the number of terms
	}
	return &p.pairs[p.place[j]-1]
}

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
		p.keys = append(p.keys, entryKey(simmatrix.Entry{Col: pair.j, Units: pair.ij.sim}))
	}
	slices.Sort(p.keys)
	for _, key := range p.keys {
		e := keyedEntry(key)
		if p.fits(p.taken[i], p.sums[i], e.Units) {
			p.add(i, p.pairs[p.place[e.Col]-1])
		}
	}
}

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

func (p *pairer) chosenEntries() simmatrix.Entries {
	total := 0
	for _, taken := range p.taken {
		total += taken
	}
	out := simmatrix.NewEntriesFor(total, len(p.taken), p.from.Origins != nil)
	for i := range p.taken {
		p.keys = p.keys[:0]
		for _, pair := range p.pairsOf(uint32(i), chosen, true) {
			p.keys = append(p.keys, entryKey(simmatrix.Entry{Col: pair.j, Units: pair.ij.sim, Origins: pair.ij.origins}))
		}
		slices.Sort(p.keys)
		for _, key := range p.keys {
			out.AppendEntry(keyedEntry(key))
		}
		out.Offsets = append(out.Offsets, len(out.Cols))
	}
	return out
}

// entryKey packs e into a number that sorts as [simmatrix.CompareEntries]
// orders, several times as fast.
func entryKey(e simmatrix.Entry) uint64 {
	return uint64(simmatrix.UnitsOfOne-e.Units)<<40 | uint64(e.Col)<<8 | uint64(e.Origins)
}

func keyedEntry(key uint64) simmatrix.Entry {
	return simmatrix.Entry{
		Units:   simmatrix.UnitsOfOne - uint16(key>>40), //nolint:gosec // the key has no bit above
		Col:     uint32(key >> 8 & 0xffffffff),
		Origins: uint8(key & 0xff),
	}
}
