package learn

import (
	"context"
	"math"
	"slices"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// A vectorTable holds one vector a row.
type vectorTable struct {
	rows, dim int
	values    []float32
}

func newVectorTable(rows int) *vectorTable { return &vectorTable{rows: rows} }

func (t *vectorTable) row(i int) []float32 { return t.values[i*t.dim : (i+1)*t.dim] }

func (t *vectorTable) cut(rows int) {
	t.rows, t.values = rows, t.values[:rows*t.dim]
}

// nearest returns for every row the neighbors largest dot products with the
// others, ties by lower row, as similarities. It compares all pairs.
func (t *vectorTable) nearest(ctx context.Context, opts nearestOptions, st *parallel.Stage) (simmatrix.Entries, error) {
	p := newPanels(t.dim, t.rows)
	for i := range t.rows {
		p.add(uint32(min(i, simmatrix.MaxTerms)), t.row(i))
	}
	return p.nearest(ctx, opts, st)
}

type nearestOptions struct {
	neighbors int
	power     float64
	threshold float64 // on the cosine, at least 0
	// candidates are the ascending ids of those that may be neighbors; nil is
	// all.
	candidates []uint32
}

// floor returns the largest float32 that is not above the threshold.
func (o nearestOptions) floor() float32 {
	floor := float32(o.threshold)
	if float64(floor) > o.threshold {
		floor = math.Nextafter32(floor, 0)
	}
	return floor
}

// units returns max(0, cos)^power in units of 1/65535, 0 at or under the
// threshold and where it rounds to 0.
func (o nearestOptions) units(cos float32) uint16 {
	if !(float64(cos) > o.threshold) {
		return 0
	}
	return uint16(math.Round(math.Pow(min(float64(cos), 1), o.power) * simmatrix.UnitsOfOne))
}

// row returns the entries that candidates, best first, give the vector id, in
// the order of a row.
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
		row = append(row, simmatrix.Entry{Col: c.id(), Units: u})
	}
	slices.SortFunc(row, simmatrix.CompareEntries)
	return row
}

// nearest compares all with all candidates. The ids of the vectors are their
// rows, and ascend.
func (p *panels) nearest(ctx context.Context, opts nearestOptions, st *parallel.Stage) (simmatrix.Entries, error) {
	shown := p
	if opts.candidates != nil {
		shown = p.pick(opts.candidates)
	}
	return p.nearestAmong(ctx, opts, shown.showAll, st)
}

// nearestAmong returns for every vector of p the neighbors largest dot products
// with others among those that show compares it with. The ids are the rows of
// the result.
func (p *panels) nearestAmong(ctx context.Context, opts nearestOptions, newShow func() show, st *parallel.Stage) (simmatrix.Entries, error) {
	room := max(0, min(opts.neighbors, p.vectors-1)) // for each row
	found := simmatrix.Entries{Cols: make([]uint32, room*p.vectors), Sims: make([]uint16, room*p.vectors)}
	lengths := make([]int, p.vectors)
	// A vector is compared with itself, too, and may take one place.
	err := p.search(ctx, room+1, opts.floor(), newShow, func(id uint32, best []candidate) {
		row := opts.row(id, best)
		from := int(id) * room
		for k, e := range row {
			found.Cols[from+k], found.Sims[from+k] = e.Col, e.Units
		}
		lengths[id] = len(row)
	}, st)
	if err != nil {
		return simmatrix.Entries{}, err
	}
	compact(&found, lengths, room)
	return found, nil
}

// compact closes the gaps of rows that begin every room entries, and sets the
// offsets.
func compact(e *simmatrix.Entries, lengths []int, room int) {
	e.Offsets = make([]int, 1, len(lengths)+1)
	at := 0
	for i, l := range lengths {
		copy(e.Cols[at:], e.Cols[i*room:i*room+l])
		copy(e.Sims[at:], e.Sims[i*room:i*room+l])
		at += l
		e.Offsets = append(e.Offsets, at)
	}
	if at < len(e.Cols) { // a matrix lives long: free what is unused
		e.Cols = append(make([]uint32, 0, at), e.Cols[:at]...)
		e.Sims = append(make([]uint16, 0, at), e.Sims[:at]...)
	}
}
