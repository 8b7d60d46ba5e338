package learn

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// blockRows is how many vectors a [searcher] has at a time: enough to use a
// panel often while it is in the processor's cache, few enough to stay there
// themselves.
const blockRows = 192

// A show compares the vectors that the searcher has begun with, those at the
// places [lo, hi), with others.
type show func(s *searcher, lo, hi int)

// showAll compares all with all vectors of p.
func (p *panels) showAll() show {
	return func(s *searcher, _, _ int) {
		s.load(s.all)
		s.scan(p, 0, p.len())
	}
}

// search finds for each vector of p the room largest dot products above the
// floor with the vectors that it is shown, itself included. It gives them to
// found, best first, once for each id and by several goroutines at once.
func (p *panels) search(ctx context.Context, room int, floor float32, newShow func() show,
	found func(id uint32, best []candidate), st *parallel.Stage,
) error {
	return parallel.EachBlock(ctx, len(p.ids), blockRows, func() func(lo, hi int) {
		s, show := newSearcher(p.dim, room, floor), newShow()
		return func(lo, hi int) {
			s.begin(p, lo, hi)
			show(s, lo, hi)
			for i, id := range s.ids {
				found(id, s.best[i].ranked())
			}
			st.Add(len(s.ids))
		}
	})
}

type searcher struct {
	multiply multiply
	dim      int
	ids      []uint32     // of the vectors of the block
	vectors  []float32    // one after the other
	best     []candidates // of each
	all      []int        // 0, 1, ... for each

	// The vectors that are compared now, in groups of tileRows.
	loaded []int // their places in the block
	packed []float32
	tiles  []tile
}

func newSearcher(dim, room int, floor float32) *searcher {
	s := &searcher{multiply: fastestMultiply(), dim: dim, best: make([]candidates, blockRows)}
	for i := range s.best {
		s.best[i] = candidates{room: room, least: floor}
	}
	return s
}

// begin takes the vectors at the places [lo, hi) of p, at most blockRows.
func (s *searcher) begin(p *panels, lo, hi int) {
	s.ids, s.vectors, s.all = s.ids[:0], s.vectors[:0], s.all[:0]
	for place := lo; place < hi; place++ {
		if id := p.ids[place]; id != noVector {
			s.best[len(s.ids)].reset()
			s.all = append(s.all, len(s.ids))
			s.ids = append(s.ids, id)
			s.vectors = p.appendVector(s.vectors, place)
		}
	}
}

// load prepares rows of the block to be compared. Places of the last tile that
// no row takes get an infinite floor.
func (s *searcher) load(rows []int) {
	count := (len(rows) + tileRows - 1) / tileRows
	s.loaded = rows
	s.tiles = slices.Grow(s.tiles[:0], count)[:count]
	s.packed = slices.Grow(s.packed[:0], count*tileRows*s.dim)[:count*tileRows*s.dim]
	for at := range count * tileRows {
		tile, i := at/tileRows, at%tileRows
		if at >= len(rows) {
			s.tiles[tile].floors[i] = float32(math.Inf(1))
			continue
		}
		s.tiles[tile].floors[i] = s.best[rows[at]].floor
		first := tile*tileRows*s.dim + i
		for d, x := range s.vectors[rows[at]*s.dim:][:s.dim] {
			s.packed[first+d*tileRows] = x
		}
	}
}

func (s *searcher) scan(p *panels, lo, hi int) {
	size := tileRows * s.dim
	for k := lo; k < hi; k++ {
		panel, ids := p.panel(k), p.ids[k*tileCols:][:tileCols]
		for t := range s.tiles {
			if s.multiply(&s.tiles[t], s.packed[t*size:][:size], panel) {
				s.take(t, ids)
			}
		}
	}
}

// take adds what is above the floors of a tile to the candidates.
func (s *searcher) take(t int, ids []uint32) {
	tile := &s.tiles[t]
	for i, above := range tile.above {
		if above == 0 {
			continue
		}
		best := &s.best[s.loaded[t*tileRows+i]]
		for ; above != 0; above &= above - 1 {
			k := bits.TrailingZeros16(above)
			if ids[k] != noVector {
				best.add(newCandidate(tile.dots[i][k], ids[k]))
			}
		}
		tile.floors[i] = best.floor
	}
}

// A candidate is a dot product and the id of its vector in one number that is
// larger for a larger product, then for a lower id.
type candidate uint64

func newCandidate(cos float32, id uint32) candidate {
	b := math.Float32bits(cos)
	if b>>31 == 1 { // negative: more bits are less
		b = ^b
	} else {
		b |= 1 << 31
	}
	return candidate(b)<<32 | candidate(^id)
}

func (c candidate) id() uint32 { return ^uint32(c & math.MaxUint32) }

func (c candidate) cos() float32 {
	b := uint32(c >> 32)
	if b>>31 == 1 {
		return math.Float32frombits(b &^ (1 << 31))
	}
	return math.Float32frombits(^b)
}

// candidates are the best so far and, until they are next sorted out, up to as
// many worse ones.
type candidates struct {
	room  int
	least float32 // only larger products are taken
	floor float32 // only larger products can be among the best
	seen  []candidate
}

func (c *candidates) reset() {
	c.seen, c.floor = c.seen[:0], c.least
}

// add takes a candidate. Where many come in descending id, one with the
// product of the floor may be missed.
func (c *candidates) add(one candidate) {
	c.seen = append(c.seen, one)
	if len(c.seen) >= 2*c.room {
		c.sortOut()
	}
}

// sortOut keeps the room best, and raises the floor if there are so many.
func (c *candidates) sortOut() {
	if len(c.seen) >= c.room {
		selectLargest(c.seen, c.room)
		c.seen = c.seen[:c.room]
		c.floor = c.seen[c.room-1].cos()
	}
}

// ranked returns the best in descending order, valid until reset.
func (c *candidates) ranked() []candidate {
	c.sortOut()
	slices.Sort(c.seen)
	slices.Reverse(c.seen)
	return c.seen
}

// selectLargest moves the k largest to the front, the least of them to k-1, by
// Hoare's algorithm with the median of three. k is in [1, len(all)].
func selectLargest(all []candidate, k int) {
	lo, hi := 0, len(all)-1
	for lo < hi {
		a, b, c := all[lo], all[lo+(hi-lo)/2], all[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for all[i] > pivot {
				i++
			}
			for all[j] < pivot {
				j--
			}
			if i <= j {
				all[i], all[j] = all[j], all[i]
				i++
				j--
			}
		}
		switch {
		case k-1 <= j:
			hi = j
		case k-1 >= i:
			lo = i
		default:
			return
		}
	}
}
