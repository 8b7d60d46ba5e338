package learn

import "math"

const noVector = math.MaxUint32

// panels are vectors as a [multiply] reads them: tileCols of them side by side,
// dimension by dimension. Empty places hold zeros.
type panels struct {
	dim     int
	vectors int
	ids     []uint32  // of every place
	values  []float32 // tileCols·dim of every panel
	next    int       // the place of the next vector
}

func newPanels(dim, vectors int) *panels {
	places := (vectors + tileCols - 1) / tileCols * tileCols
	return &panels{dim: dim, ids: make([]uint32, 0, places), values: make([]float32, 0, places*dim)}
}

// add appends a vector with a unique id.
func (p *panels) add(id uint32, vector []float32) {
	if p.next == len(p.ids) {
		for range tileCols {
			p.ids = append(p.ids, noVector)
		}
		p.values = append(p.values, make([]float32, tileCols*p.dim)...)
	}
	p.ids[p.next] = id
	at := p.start(p.next)
	for d, x := range vector {
		p.values[at+d*tileCols] = x
	}
	p.next++
	p.vectors++
}

func (p *panels) endPanel() { p.next = len(p.ids) }

func (p *panels) len() int { return len(p.ids) / tileCols }

func (p *panels) panel(k int) []float32 {
	size := tileCols * p.dim
	return p.values[k*size : (k+1)*size]
}

// start returns where the first number of the vector at a place is; the others
// follow every tileCols.
func (p *panels) start(place int) int {
	return place/tileCols*tileCols*p.dim + place%tileCols
}

func (p *panels) appendVector(dst []float32, place int) []float32 {
	at := p.start(place)
	for d := range p.dim {
		dst = append(dst, p.values[at+d*tileCols])
	}
	return dst
}

// pick returns the vectors with the given ids, which are their places in p.
func (p *panels) pick(ids []uint32) *panels {
	picked := newPanels(p.dim, len(ids))
	var vector []float32
	for _, id := range ids {
		vector = p.appendVector(vector[:0], int(id))
		picked.add(id, vector)
	}
	return picked
}

func (p *panels) places() map[uint32]int {
	places := make(map[uint32]int, p.vectors)
	for place, id := range p.ids {
		places[id] = place
	}
	return places
}
