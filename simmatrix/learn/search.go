package learn

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// blockRows is the number of vectors in a [searcher]: enough to reuse a panel
// often while it is in the cache, few enough to stay there.
const blockRows = 192

// A show compares the searcher's vectors.
type show func(s *searcher)

// showAll compares vectors with all vectors of p.
func (p *panels) showAll() show {
	return func(s *searcher) {
		s.load(s.all)
		s.scan(p, 0, p.len())
	}
}

// search finds for each vector of p the room largest dot products above floor
// with the vectors that it is shown, including itself. It passes them to found,
// best first, once per id and concurrently. It takes the vectors in the order
// of their places, nil for any; those near each other are best shown together.
func (p *panels) search(ctx context.Context, order []uint32, room int, floor float32, newShow func() show,
	found func(id uint32, best []candidate), st *simmatrix.Stage,
) error {
	if order == nil {
		for place, id := range p.ids {
			if id != noVector {
				order = append(order, uint32(place))
			}
		}
	}
	return parallel.EachBlock(ctx, len(order), blockRows, func() func(lo, hi int) {
		s, show := newSearcher(p.dim, room, floor), newShow()
		return func(lo, hi int) {
			s.begin(p, order[lo:hi])
			show(s)
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
	ids      []uint32     // of the block's vectors
	vectors  []float32    // one after another
	best     []candidates // of each
	all      []int        // 0, 1, ... for each

	// The vectors being compared, in groups of tileRows.
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

// begin takes the vectors at some places of p, at most blockRows.
func (s *searcher) begin(p *panels, places []uint32) {
	s.ids = s.ids[:0]
	s.vectors = s.vectors[:0]
	s.all = s.all[:0]
	for k, place := range places {
		s.best[k].reset()
		s.all = append(s.all, k)
		s.ids = append(s.ids, p.ids[place])
		s.vectors = p.appendVector(s.vectors, int(place))
	}
}

// follow takes the vectors of other.
func (s *searcher) follow(other *searcher) {
	s.ids = other.ids
	s.vectors = other.vectors
	s.all = other.all
	for k := range s.ids {
		s.best[k].reset()
	}
}

// load prepares rows to be compared. Empty places get an infinite floor.
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
		panel, ids := p.values[k*tileCols*p.stride:][:tileCols*p.dim], p.ids[k*tileCols:][:tileCols]
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

// A candidate is a dot product and its vector's id in one number, which sorts
// by larger product, then by lower id.
type candidate uint64

func newCandidate(cos float32, id uint32) candidate {
	b := math.Float32bits(cos)
	if b>>31 == 1 { // negative: more bits mean less
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

// candidates are the best so far and, until sortOut, as many others.
type candidates struct {
	room  int
	least float32 // only larger products are taken
	floor float32 // only larger products can be among the best
	seen  []candidate
}

func (c *candidates) reset() {
	c.seen, c.floor = c.seen[:0], c.least
}

// add may miss a product equal to the floor, of many in descending id.
func (c *candidates) add(one candidate) {
	c.seen = append(c.seen, one)
	if len(c.seen) >= 2*c.room {
		c.sortOut()
	}
}

// sortOut keeps the room best, and raises the floor if there are that many.
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

// selectLargest moves the k largest, 1 <= k <= all, to the front, the smallest
// of them to k-1, by Hoare's algorithm with the median of three.
func selectLargest(all []candidate, k int) {
	lo, hi := 0, len(all)-1
	for lo < hi {
		a := all[lo]
		b := all[lo+(hi-lo)/2]
		c := all[hi]
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

// A vectorTable holds one vector per row.
type vectorTable struct {
	rows, dim int
	values    []float32
}

func (t *vectorTable) row(i int) []float32 { return t.values[i*t.dim : (i+1)*t.dim] }

type nearestOptions struct {
	neighbors  int
	power      float64
	candidates []uint32 // ascending ids of possible neighbors; nil means all
	mixed      *mixture // in place of power; nil for vectors of one origin
}

// mostLearned is the largest similarity that is learned, in units. 1 would make
// an entry exact: that a word is as good as another, only people know.
const mostLearned = simmatrix.UnitsOfOne - 1

// units returns max(0, cos)^power in units of 1/65535, or the similarity of a
// dot product of mixed vectors.
func (o nearestOptions) units(cos float32) uint16 {
	if !(cos > 0) {
		return 0
	}
	if o.mixed != nil {
		return o.mixed.units(cos)
	}
	return uint16(min(math.Round(math.Pow(float64(cos), o.power)*simmatrix.UnitsOfOne), mostLearned))
}

// row returns the entries of vector id from candidates, best first.
func (o nearestOptions) row(id uint32, best []candidate) []simmatrix.Entry {
	row := make([]simmatrix.Entry, 0, len(best))
	for _, c := range best {
		if c.id() == id {
			continue
		}
		u := o.units(c.cos())
		if u == 0 || len(row) == o.neighbors {
			break
		}
		e := simmatrix.Entry{Col: c.id(), Units: u}
		if o.mixed != nil {
			e.Origins = o.mixed.origins(id, c)
		}
		row = append(row, e)
	}
	slices.SortFunc(row, simmatrix.CompareEntries)
	return row
}

// nearest compares all vectors with all candidates.
func (p *panels) nearest(ctx context.Context, opts nearestOptions, st *simmatrix.Stage) (simmatrix.Entries, error) {
	return p.nearestAmong(ctx, nil, opts, p.among(opts.candidates).showAll, st)
}

// nearestAmong returns, for every vector of p, whose ids are the rows, the
// largest dot products with the vectors that show compares it with, at most
// neighbors, as similarities, ties by lower id. For order see [panels.search].
func (p *panels) nearestAmong(ctx context.Context, order []uint32, opts nearestOptions, newShow func() show, st *simmatrix.Stage) (simmatrix.Entries, error) {
	room := max(0, min(opts.neighbors, p.vectors-1)) // per row
	found := simmatrix.Entries{Cols: make([]uint32, room*p.vectors), Sims: make([]uint16, room*p.vectors)}
	if opts.mixed != nil {
		found.Origins = make([]uint8, room*p.vectors)
	}
	lengths := make([]int, p.vectors)
	// A vector is also compared with itself, which may take one place.
	err := p.search(ctx, order, room+1, 0, newShow, func(id uint32, best []candidate) {
		row := opts.row(id, best)
		from := int(id) * room
		for k, e := range row {
			found.Cols[from+k], found.Sims[from+k] = e.Col, e.Units
			if found.Origins != nil {
				found.Origins[from+k] = e.Origins
			}
		}
		lengths[id] = len(row)
	}, st)
	if err != nil {
		return simmatrix.Entries{}, err
	}
	found.Offsets = make([]int, 1, len(lengths)+1)
	at := 0
	for i, l := range lengths { // close the gaps
		copy(found.Cols[at:], found.Cols[i*room:i*room+l])
		copy(found.Sims[at:], found.Sims[i*room:i*room+l])
		if found.Origins != nil {
			copy(found.Origins[at:], found.Origins[i*room:i*room+l])
		}
		at += l
		found.Offsets = append(found.Offsets, at)
	}
	if at < len(found.Cols) { // a matrix lives long: free unused memory
		found.Cols = append(make([]uint32, 0, at), found.Cols[:at]...)
		found.Sims = append(make([]uint16, 0, at), found.Sims[:at]...)
		if found.Origins != nil {
			found.Origins = append(make([]uint8, 0, at), found.Origins[:at]...)
		}
	}
	return found, nil
}

const noVector = math.MaxUint32

// panels are vectors in the layout of a [multiply]: tileCols side by side,
// dimension by dimension. Empty places are zero.
type panels struct {
	dim     int
	stride  int // dim, but for a [panels.part]
	vectors int
	ids     []uint32  // by place
	values  []float32 // tileCols·stride per panel
	next    int       // place of the next vector
}

func newPanels(dim, vectors int) *panels {
	places := (vectors + tileCols - 1) / tileCols * tileCols
	return &panels{dim: dim, stride: dim, ids: make([]uint32, 0, places), values: make([]float32, 0, places*dim)}
}

// add appends a vector with a unique id. A short one ends with zeros.
func (p *panels) add(id uint32, vector []float32) {
	if p.next == len(p.ids) {
		for range tileCols {
			p.ids = append(p.ids, noVector)
		}
		p.values = append(p.values, make([]float32, tileCols*p.stride)...)
	}
	p.ids[p.next] = id
	at := p.start(p.next)
	for d, x := range vector {
		p.values[at+d*tileCols] = x
	}
	p.next++
	p.vectors++
}

func (p *panels) len() int { return len(p.ids) / tileCols }

// start returns the place of a vector's first number of every tileCols.
func (p *panels) start(place int) int {
	return place/tileCols*tileCols*p.stride + place%tileCols
}

// part returns the dimensions [from, to) of the vectors, in the memory of p.
func (p *panels) part(from, to int) *panels {
	part := *p
	part.dim, part.values = to-from, p.values[from*tileCols:]
	return &part
}

func (p *panels) appendVector(dst []float32, place int) []float32 {
	at := p.start(place)
	for d := range p.dim {
		dst = append(dst, p.values[at+d*tileCols])
	}
	return dst
}

// pick returns the vectors with the given ids, which are their places.
func (p *panels) pick(ids []uint32) *panels {
	picked := newPanels(p.dim, len(ids))
	var vector []float32
	for _, id := range ids {
		vector = p.appendVector(vector[:0], int(id))
		picked.add(id, vector)
	}
	return picked
}

// among is [panels.pick]; nil means all vectors.
func (p *panels) among(ids []uint32) *panels {
	if ids == nil {
		return p
	}
	return p.pick(ids)
}

func (p *panels) places() map[uint32]int {
	places := make(map[uint32]int, p.vectors)
	for place, id := range p.ids {
		places[id] = place
	}
	return places
}
