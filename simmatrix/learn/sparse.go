package learn

import (
	"context"
	"slices"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// A sparse matrix keeps the blocks of rows in which it was made: joining them
// would take twice the memory.
type sparse struct {
	rows, cols int
	blocks     []sparseBlock
}

// A sparseBlock holds rows in compressed form: the entries of the first row,
// lengths[0] ascending columns and their values, then those of the second.
type sparseBlock struct {
	lengths []int32
	index   []int32
	value   []float32
}

const nonZeroBytes = 4 + 4

func (b *sparseBlock) add(column int32, value float32) {
	b.index = append(b.index, column)
	b.value = append(b.value, value)
}

func (b *sparseBlock) all(fn func(index []int32, value []float32)) {
	at := 0
	for _, l := range b.lengths {
		end := at + int(l)
		fn(b.index[at:end], b.value[at:end])
		at = end
	}
}

// makeSparse makes a matrix on all processors. newFill is called once for each;
// what it returns appends the entries of a row to a block. Where they come to
// more than room bytes, it returns an [*oversize].
func makeSparse(
	ctx context.Context, rows, cols int, room int64, newFill func() func(row int, b *sparseBlock), st *parallel.Stage,
) (*sparse, error) {
	const rowsPerBlock = 64
	s := &sparse{rows: rows, cols: cols, blocks: make([]sparseBlock, (rows+rowsPerBlock-1)/rowsPerBlock)}
	limited, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var finished, held atomic.Int64 // rows, and bytes of their entries
	err := parallel.EachBlock(limited, rows, rowsPerBlock, func() func(lo, hi int) {
		fill := newFill()
		var scratch sparseBlock
		return func(lo, hi int) {
			scratch.index, scratch.value = scratch.index[:0], scratch.value[:0]
			lengths := make([]int32, hi-lo)
			for i := lo; i < hi; i++ {
				before := len(scratch.index)
				fill(i, &scratch)
				lengths[i-lo] = int32(len(scratch.index) - before) //nolint:gosec // at most cols, which are indexed by int32
			}
			s.blocks[lo/rowsPerBlock] = sparseBlock{lengths, slices.Clone(scratch.index), slices.Clone(scratch.value)}
			finished.Add(int64(hi - lo))
			if held.Add(int64(len(scratch.index))*nonZeroBytes) > room {
				giveUp()
			}
			st.Add(hi - lo)
		}
	})
	if ctx.Err() == nil && held.Load() > room {
		share := float64(rows) / float64(finished.Load())
		return nil, &oversize{need: int64(share * float64(held.Load())), room: room}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// panelWidth is how many columns of a dense matrix are multiplied at a time:
// one line of the processor's cache, so that a panel of ten thousand rows stays
// in it.
const panelWidth = 8

type panelRow [panelWidth]float64

// gram sets dst = sᵀ·(s·src). A panel is the work of one goroutine, which adds
// in the order of the rows of s, so that the result is always the same.
func (s *sparse) gram(ctx context.Context, dst, src blas64.General) error {
	panels := (src.Cols + panelWidth - 1) / panelWidth
	return parallel.EachBlock(ctx, panels, 1, func() func(lo, hi int) {
		in, out := make([]panelRow, s.cols), make([]panelRow, s.cols)
		return func(p, _ int) {
			from := p * panelWidth
			to := min(from+panelWidth, src.Cols)
			for j := range in {
				in[j] = panelRow{}
				copy(in[j][:], src.Data[j*src.Stride+from:j*src.Stride+to])
			}
			clear(out)
			for b := range s.blocks {
				if ctx.Err() != nil {
					return
				}
				s.blocks[b].all(func(index []int32, value []float32) { gramRow(out, in, index, value) })
			}
			for j := range out {
				copy(dst.Data[j*dst.Stride+from:j*dst.Stride+to], out[j][:])
			}
		}
	})
}

// gramRow adds aᵀ·(a·in) to out, for a sparse row a.
func gramRow(out, in []panelRow, index []int32, value []float32) {
	value = value[:len(index)]
	var a, b, c, d, e, f, g, h float64
	for k, j := range index {
		v, r := float64(value[k]), &in[j]
		a += v * r[0]
		b += v * r[1]
		c += v * r[2]
		d += v * r[3]
		e += v * r[4]
		f += v * r[5]
		g += v * r[6]
		h += v * r[7]
	}
	for k, j := range index {
		v, r := float64(value[k]), &out[j]
		r[0] += v * a
		r[1] += v * b
		r[2] += v * c
		r[3] += v * d
		r[4] += v * e
		r[5] += v * f
		r[6] += v * g
		r[7] += v * h
	}
}
