package simmatrix

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
)

// A sparse matrix in compressed rows: row i is at [offsets[i], offsets[i+1])
// of index, its ascending columns, and value.
type sparse struct {
	rows, cols int
	offsets    []int
	index      []int32
	value      []float32
}

// A sparseBlock holds consecutive rows of a sparse matrix that is being made.
type sparseBlock struct {
	lengths []int
	index   []int32
	value   []float32
}

// joinBlocks puts the blocks of a matrix with the given number of columns
// below each other.
func joinBlocks(blocks []sparseBlock, cols int) *sparse {
	nonZeros, rows := 0, 0
	for _, b := range blocks {
		nonZeros += len(b.index)
		rows += len(b.lengths)
	}
	s := &sparse{
		rows: rows, cols: cols,
		offsets: make([]int, 1, rows+1),
		index:   make([]int32, 0, nonZeros),
		value:   make([]float32, 0, nonZeros),
	}
	for i, b := range blocks {
		for _, l := range b.lengths {
			s.offsets = append(s.offsets, s.offsets[len(s.offsets)-1]+l)
		}
		s.index = append(s.index, b.index...)
		s.value = append(s.value, b.value...)
		blocks[i] = sparseBlock{} // so that the memory of two whole matrices is never held
	}
	return s
}

// transpose returns sᵀ.
func (s *sparse) transpose() *sparse {
	t := &sparse{
		rows: s.cols, cols: s.rows,
		offsets: make([]int, s.cols+1),
		index:   make([]int32, len(s.index)),
		value:   make([]float32, len(s.value)),
	}
	for _, j := range s.index {
		t.offsets[j+1]++
	}
	for j := range s.cols {
		t.offsets[j+1] += t.offsets[j]
	}
	next := slices.Clone(t.offsets)
	for i := range s.rows {
		for k := s.offsets[i]; k < s.offsets[i+1]; k++ {
			j := s.index[k]
			t.index[next[j]], t.value[next[j]] = int32(i), s.value[k]
			next[j]++
		}
	}
	return t
}

// mul sets dst = s·src. A row of dst is the work of one goroutine, which adds
// in the order of the columns, so that the result is always the same.
func (s *sparse) mul(ctx context.Context, dst, src blas64.General) error {
	const rowsPerBlock = 128
	return eachBlock(ctx, s.rows, rowsPerBlock, func() func(lo, hi int) {
		return func(lo, hi int) {
			for i := lo; i < hi; i++ {
				out := rowOf(dst, i)
				clear(out.Data)
				for k := s.offsets[i]; k < s.offsets[i+1]; k++ {
					blas64.Axpy(float64(s.value[k]), rowOf(src, int(s.index[k])), out)
				}
			}
		}
	})
}

func newDense(rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
}

func rowOf(a blas64.General, i int) blas64.Vector {
	return blas64.Vector{N: a.Cols, Inc: 1, Data: a.Data[i*a.Stride : i*a.Stride+a.Cols]}
}
