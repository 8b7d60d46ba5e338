package simmatrix

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// A vectorTable holds one vector a row. Only before the first part of a vector
// is there has it no dimensions.
type vectorTable struct {
	rows, dim int
	values    []float32
}

func newVectorTable(rows int) *vectorTable { return &vectorTable{rows: rows} }

func (t *vectorTable) row(i int) []float32 { return t.values[i*t.dim : (i+1)*t.dim] }

// cut keeps the first rows rows.
func (t *vectorTable) cut(rows int) {
	t.rows, t.values = rows, t.values[:rows*t.dim]
}

// general returns rows [lo, hi) as a matrix.
func (t *vectorTable) general(lo, hi int) blas32.General {
	return blas32.General{Rows: hi - lo, Cols: t.dim, Stride: t.dim, Data: t.values[lo*t.dim : hi*t.dim]}
}

// nearestOptions are the settings of nearest.
type nearestOptions struct {
	neighbors int
	power     float64
	threshold float64 // on the cosine, at least 0
}

// units returns max(0, cos)^power in units of 1/65535, 0 at or under the
// threshold and where it rounds to 0.
func (o nearestOptions) units(cos float32) uint16 {
	if !(float64(cos) > o.threshold) {
		return 0
	}
	return uint16(math.Round(math.Pow(min(float64(cos), 1), o.power) * similarityUnits))
}

// The tile of dot products that is computed at a time: it, its rows and its
// columns stay in the processor's cache, and it is small enough that the
// multiplication does not start goroutines of its own.
const (
	tileRows = 64
	tileCols = 128
)

// nearest returns for every vector the neighbors largest dot products with the
// others, ties by lower row, as similarities. It compares all pairs.
func (t *vectorTable) nearest(ctx context.Context, opts nearestOptions, st *stage) (entries, error) {
	room := min(opts.neighbors, t.rows-1) // for each row
	found := entries{
		cols: make([]uint32, max(room*t.rows, 0)),
		sims: make([]uint16, max(room*t.rows, 0)),
	}
	lengths := make([]int, t.rows)
	err := eachBlock(ctx, t.rows, tileRows, func() func(lo, hi int) {
		s := newSearcher(t, room, opts)
		return func(lo, hi int) {
			s.search(lo, hi)
			for i := lo; i < hi; i++ {
				row := s.ranked(i - lo)
				for k, e := range row {
					found.cols[i*room+k], found.sims[i*room+k] = e.col, e.sim
				}
				lengths[i] = len(row)
			}
			st.add(hi - lo)
		}
	})
	if err != nil {
		return entries{}, err
	}
	found.compact(lengths, room)
	return found, nil
}

// compact closes the gaps of rows that begin every room entries and are
// lengths long, and sets the offsets.
func (e *entries) compact(lengths []int, room int) {
	e.offsets = make([]int, 1, len(lengths)+1)
	at := 0
	for i, l := range lengths {
		copy(e.cols[at:], e.cols[i*room:i*room+l])
		copy(e.sims[at:], e.sims[i*room:i*room+l])
		at += l
		e.offsets = append(e.offsets, at)
	}
	if at < len(e.cols) { // a matrix lives long: do not keep what is not used
		e.cols = append(make([]uint32, 0, at), e.cols[:at]...)
		e.sims = append(make([]uint16, 0, at), e.sims[:at]...)
	}
}

// A searcher finds the nearest vectors of a block of rows at a time.
type searcher struct {
	table *vectorTable
	opts  nearestOptions
	tile  blas32.General
	best  []candidates
	row   []entry
}

func newSearcher(t *vectorTable, room int, opts nearestOptions) *searcher {
	s := &searcher{
		table: t, opts: opts,
		tile: blas32.General{Stride: tileCols, Data: make([]float32, tileRows*tileCols)},
		best: make([]candidates, tileRows),
	}
	for i := range s.best {
		s.best[i] = candidates{room: room, floor: float32(opts.threshold)}
	}
	return s
}

// search fills best with the nearest of rows [lo, hi), at most tileRows.
func (s *searcher) search(lo, hi int) {
	for i := range s.best {
		s.best[i].heap = s.best[i].heap[:0]
	}
	s.tile.Rows = hi - lo
	for from := 0; from < s.table.rows; from += tileCols {
		to := min(from+tileCols, s.table.rows)
		s.tile.Cols = to - from
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, s.table.general(lo, hi), s.table.general(from, to), 0, s.tile)
		for i := range s.tile.Rows {
			dots := s.tile.Data[i*s.tile.Stride:][:s.tile.Cols]
			if self := lo + i - from; self >= 0 && self < len(dots) {
				dots[self] = -1
			}
			s.best[i].offer(dots, uint32(min(from, MaxTerms)))
		}
	}
}

// ranked returns the neighbors of row i of the block in the order of a row.
// It is valid until the next call.
func (s *searcher) ranked(i int) []entry {
	s.row = s.row[:0]
	for _, c := range s.best[i].heap {
		if u := s.opts.units(c.cos); u > 0 {
			s.row = append(s.row, entry{col: c.col, sim: u})
		}
	}
	slices.SortFunc(s.row, compareEntries)
	return s.row
}

// candidates are the best vectors seen so far for one row: a heap with the
// worst at the root, which is the one with the smallest cosine and among
// equals the largest column.
type candidates struct {
	heap  []candidate
	room  int
	floor float32 // only larger cosines are taken
}

type candidate struct {
	cos float32
	col uint32
}

func (a candidate) worse(b candidate) bool {
	return a.cos < b.cos || (a.cos == b.cos && a.col > b.col)
}

// offer takes the cosines of the columns from first on. Columns come in
// ascending order, so that one that only equals the root loses to it.
func (c *candidates) offer(cosines []float32, first uint32) {
	col := first
	for _, cos := range cosines {
		switch {
		case !(cos > c.floor):
		case len(c.heap) < c.room:
			c.heap = append(c.heap, candidate{cos, col})
			c.up(len(c.heap) - 1)
		case c.room > 0 && cos > c.heap[0].cos:
			c.heap[0] = candidate{cos, col}
			c.down()
		}
		col++
	}
}

func (c *candidates) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !c.heap[i].worse(c.heap[parent]) {
			return
		}
		c.heap[i], c.heap[parent] = c.heap[parent], c.heap[i]
		i = parent
	}
}

func (c *candidates) down() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(c.heap) {
			return
		}
		if child+1 < len(c.heap) && c.heap[child+1].worse(c.heap[child]) {
			child++
		}
		if !c.heap[child].worse(c.heap[i]) {
			return
		}
		c.heap[i], c.heap[child] = c.heap[child], c.heap[i]
		i = child
	}
}
