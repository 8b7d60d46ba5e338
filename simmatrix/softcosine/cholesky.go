package softcosine

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Cholesky returns the lower triangular E with positive diagonal for which
//
//	S = E·Eᵀ
//
// in O(n³) (the notes, theorem 3.2), on all processors. Where S is not positive
// definite the error is a [*PivotError]. It takes about 12·n² bytes, of which
// 8·n² are the result. The same S gives the same bits on one kind of processor.
// It is two to four times as fast as gonum's, which has no kernel for AVX2.
func Cholesky(s mat.Symmetric) (*mat.TriDense, error) {
	p := newPanels(s.SymmetricDim())
	p.load(s)
	if err := p.factor(runtime.GOMAXPROCS(0)); err != nil {
		return nil, err
	}
	return p.lower(), nil
}

// panels are the lower triangle of a symmetric matrix of order n, cut into
// panels of edge rows. Panel i has i+1 tiles, as a [subtraction] reads them.
// Rows are added up to a multiple of edge, with a 1 on the diagonal.
type panels struct {
	n      int
	tiles  int // of a side
	values []float64
	floors []float64 // by row, what a pivot has to be above
}

// newPanels returns the identity matrix without its diagonal.
func newPanels(n int) *panels {
	tiles := (n + edge - 1) / edge
	p := &panels{n: n, tiles: tiles, values: make([]float64, edge*edge*tiles*(tiles+1)/2), floors: make([]float64, edge*tiles)}
	for i := n; i < edge*tiles; i++ {
		p.set(i, i, 1)
	}
	return p
}

func (p *panels) panel(i, tiles int) []float64 {
	start := edge * edge * i * (i + 1) / 2
	return p.values[start : start+edge*edge*tiles]
}

func (p *panels) tile(i, j int) *tile { return (*tile)(p.panel(i, j+1)[edge*edge*j:]) }

func (p *panels) set(i, j int, value float64) { p.panel(i/edge, i/edge+1)[edge*j+i%edge] = value }

func (p *panels) load(s mat.Symmetric) {
	var upper blas64.Symmetric
	if raw, ok := s.(mat.RawSymmetricer); ok {
		upper = raw.RawSymmetric()
	}
	for i := range p.tiles {
		panel, first := p.panel(i, i+1), edge*i
		rows := min(edge, p.n-first)
		for j := range first + rows {
			column := panel[edge*j : edge*j+rows]
			from := max(0, j-first) // above is the other triangle
			if upper.Uplo == blas.Upper {
				copy(column[from:], upper.Data[upper.Stride*j+first+from:upper.Stride*j+first+rows])
				continue
			}
			for r := from; r < rows; r++ {
				column[r] = s.At(first+r, j)
			}
		}
	}
}

func (p *panels) lower() *mat.TriDense {
	if p.n == 0 {
		return new(mat.TriDense)
	}
	out := mat.NewTriDense(p.n, mat.Lower, nil)
	raw := out.RawTriangular()
	for i := range p.n {
		panel, row := p.panel(i/edge, i/edge+1)[i%edge:], raw.Data[raw.Stride*i:]
		for j := range i + 1 {
			row[j] = panel[edge*j]
		}
	}
	return out
}

// blockTiles is how many columns of tiles are made before the next, so that the
// panels that they multiply with stay in the cache of a processor.
const blockTiles = 8

// factor makes the lower triangle its Cholesky factor, with up to the given
// number of goroutines. Blocks of columns come one after the other; below
// its diagonal the rows of a block do not depend on each other.
func (p *panels) factor(workers int) error {
	for i := range p.n {
		p.floors[i] = pivotFloor(p.n, p.tile(i/edge, i/edge)[(edge+1)*(i%edge)])
	}
	subtract := fastestSubtraction()
	for lo := 0; lo < p.tiles; lo += blockTiles {
		hi := min(lo+blockTiles, p.tiles)
		for i := lo; i < hi; i++ {
			if err := p.diagonal(i, lo, subtract); err != nil {
				return err
			}
		}
		p.below(lo, hi, workers, subtract)
	}
	return nil
}

// diagonal finishes the tiles of panel i from column lo of tiles to the end.
func (p *panels) diagonal(i, lo int, subtract subtraction) error {
	p.finish(i, lo, i, subtract)
	t := p.tile(i, i)
	before := p.panel(i, i)
	subtract(t, before, before)
	if column, pivot := t.factor(p.floors[edge*i:]); column < edge {
		return &PivotError{Row: edge*i + column, Pivot: pivot}
	}
	return nil
}

// finish finishes the tiles of panel i in the columns [lo, hi), whose tiles on
// the diagonal are finished and not in panel i.
func (p *panels) finish(i, lo, hi int, subtract subtraction) {
	for j := lo; j < hi; j++ {
		t := p.tile(i, j)
		subtract(t, p.panel(i, j), p.panel(j, j))
		t.solve(p.tile(j, j))
	}
}

// minShare is the number of products for which a goroutine is worth its start.
const minShare = 1 << 18

// below finishes the columns [lo, hi) of tiles in the panels below them.
func (p *panels) below(lo, hi, workers int, subtract subtraction) {
	products := edge * edge * edge * (p.tiles - hi) * (hi - lo) * hi
	workers = min(workers, products/minShare)
	if workers < 2 {
		for i := hi; i < p.tiles; i++ {
			p.finish(i, lo, hi, subtract)
		}
		return
	}
	var next atomic.Int64
	next.Store(int64(hi))
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < p.tiles; i = int(next.Add(1)) - 1 {
				p.finish(i, lo, hi, subtract)
			}
		})
	}
	wg.Wait()
}

// A tile is an edge×edge block of a matrix, column by column: element (r, c) is
// at [edge·c + r]. A panel is tiles next to each other, a matrix of edge rows.
const edge = 8

type tile [edge * edge]float64

// A subtraction sets t = t − A·Bᵀ for panels a and b of equally many columns.
type subtraction func(t *tile, a, b []float64)

// subtractPortable is the subtraction of any processor, in squares of four, so
// that sums stay in registers. It may round more often than subtractFMA.
func subtractPortable(t *tile, a, b []float64) {
	for c := 0; c < edge; c += 2 {
		for r := 0; r < edge; r += 4 {
			var p0, p1, p2, p3, q0, q1, q2, q3 float64
			for x, y := a, b; len(x) >= edge && len(y) >= edge; x, y = x[edge:], y[edge:] {
				rows, u, v := (*[4]float64)(x[r:r+4]), y[c], y[c+1]
				p0 += rows[0] * u
				p1 += rows[1] * u
				p2 += rows[2] * u
				p3 += rows[3] * u
				q0 += rows[0] * v
				q1 += rows[1] * v
				q2 += rows[2] * v
				q3 += rows[3] * v
			}
			left, right := t[edge*c+r:], t[edge*(c+1)+r:]
			left[0], left[1], left[2], left[3] = left[0]-p0, left[1]-p1, left[2]-p2, left[3]-p3
			right[0], right[1], right[2], right[3] = right[0]-q0, right[1]-q1, right[2]-q2, right[3]-q3
		}
	}
}

// factor makes the lower triangle of t its Cholesky factor. It returns the
// first column whose pivot is not above its floor, and that pivot; or edge.
func (t *tile) factor(floors []float64) (column int, pivot float64) {
	for c := range edge {
		pivot = t[edge*c+c]
		if !(pivot > floors[c]) { // NaN is not above it, either
			return c, pivot
		}
		root := math.Sqrt(pivot)
		for r := c; r < edge; r++ {
			t[edge*c+r] /= root
		}
		for k := c + 1; k < edge; k++ {
			for r := k; r < edge; r++ {
				t[edge*k+r] -= t[edge*c+r] * t[edge*c+k]
			}
		}
	}
	return edge, 0
}

// solve sets t = t·L⁻ᵀ for the Cholesky factor L of the tile on the diagonal.
func (t *tile) solve(l *tile) {
	for c := range edge {
		column := (*[edge]float64)(t[edge*c:])
		for k := range c {
			before, factor := (*[edge]float64)(t[edge*k:]), l[edge*k+c]
			for r := range edge {
				column[r] -= before[r] * factor
			}
		}
		inverse := 1 / l[edge*c+c]
		for r := range edge {
			column[r] *= inverse
		}
	}
}
