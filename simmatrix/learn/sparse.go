package learn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/parallel"
)

// A sparse matrix keeps the blocks of rows in which it was made, because
// joining them would take twice the memory.
type sparse struct {
	rows, cols int
	blocks     []sparseBlock
}

// A sparseBlock has compressed rows: lengths[0] ascending columns with values,
// then those of the second row, and so on.
type sparseBlock struct {
	lengths []int32
	index   []int32
	value   []float32
}

const (
	nonZeroBytes = 4 + 4
	rowsPerBlock = 64
)

func (b *sparseBlock) add(column int32, value float32) {
	b.index = append(b.index, column)
	b.value = append(b.value, value)
}

// makeSparse makes a matrix on all processors. It calls newFill once for each;
// the result appends the entries of a row to a block. If they take more than
// room bytes, it returns an [*oversize].
func makeSparse(
	ctx context.Context, rows, cols int, room int64, newFill func() func(row int, b *sparseBlock), st *simmatrix.Stage,
) (*sparse, error) {
	s := &sparse{rows: rows, cols: cols, blocks: make([]sparseBlock, (rows+rowsPerBlock-1)/rowsPerBlock)}
	limited, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var finished, held atomic.Int64 // rows, and bytes of entries
	err := parallel.EachBlock(limited, rows, rowsPerBlock, func() func(lo, hi int) {
		fill := newFill()
		var scratch sparseBlock
		return func(lo, hi int) {
			scratch.index, scratch.value = scratch.index[:0], scratch.value[:0]
			lengths := make([]int32, hi-lo)
			for i := lo; i < hi; i++ {
				before := len(scratch.index)
				fill(i, &scratch)
				lengths[i-lo] = int32(len(scratch.index) - before) //nolint:gosec // at most cols, which int32 indexes
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

// bytes returns the memory of the entries.
func (s *sparse) bytes() (n int64) {
	for k := range s.blocks {
		n += nonZeroBytes * int64(len(s.blocks[k].index))
	}
	return n
}

// An oversize is the error of entries without room.
type oversize struct{ need, room int64 }

// Error implements error.
func (o *oversize) Error() string {
	return fmt.Sprintf("entries of about %s, room for %s", megabytes(o.need), megabytes(o.room))
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", max(n, 0)>>20) }

// explain turns an oversize of the named entries into a [simmatrix.ErrMemory].
func explain(err error, entries string, limit int64) error {
	o, ok := errors.AsType[*oversize](err)
	if !ok {
		return err
	}
	return fmt.Errorf("%w: the %s take about %s, %s of %s are left for them: lower the number of documents or of terms, "+
		"or raise the smallest document frequency or co-occurrence",
		simmatrix.ErrMemory, entries, megabytes(o.need), megabytes(o.room), megabytes(limit))
}

// gram sets dst = sᵀ·(s·src), adding in the order of the rows of s.
func (s *sparse) gram(ctx context.Context, dst, src blas64.General) error {
	return EachPanel(ctx, dst, src, func() func(out, in []PanelRow) {
		return func(out, in []PanelRow) {
			for _, block := range s.blocks {
				if ctx.Err() != nil {
					return
				}
				at := 0
				for _, length := range block.lengths {
					to := at + int(length)
					gramRow(out, in, block.index[at:to], block.value[at:to])
					at = to
				}
			}
		}
	})
}

// times returns s·m.
func (s *sparse) times(ctx context.Context, m blas64.General) (blas64.General, error) {
	product := newDense(s.rows, m.Cols)
	err := parallel.EachBlock(ctx, len(s.blocks), 1, func() func(lo, hi int) {
		return func(k, _ int) {
			at, row := 0, k*rowsPerBlock
			for _, length := range s.blocks[k].lengths {
				to := at + int(length)
				addProduct(rowOf(product, row), s.blocks[k].index[at:to], s.blocks[k].value[at:to], m)
				at = to
				row++
			}
		}
	})
	return product, err
}

// addProduct adds a·m to dst, for a sparse row a.
func addProduct(dst blas64.Vector, index []int32, value []float32, m blas64.General) {
	for k, j := range index {
		blas64.Axpy(float64(value[k]), rowOf(m, int(j)), dst)
	}
}

// gramRow adds aᵀ·(a·in) to out, for a sparse row a.
func gramRow(out, in []PanelRow, index []int32, value []float32) {
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

// windowUnits is the weight of adjacent terms. Terms k apart weigh
// windowUnits/k, an integer up to maxWindow, so that counts are exact.
const windowUnits = 60

// ppmi returns the positive pointwise mutual information of contexts and terms,
//
//	max(0, ln(c_ij / (c_i · q_j))),  q_j = c_j^α / Σ_k c_k^α
//
// for context j and term i. c_ij = Σ 1/distance over all pairs at most window
// apart in a text, in both directions, c_i = Σ_j c_ij, and α is the context
// power. Terms outside the vocabulary do not count in distances. For room see
// makeSparse.
func (v *vocabulary) ppmi(ctx context.Context, o *CorpusOptions, room int64, st *simmatrix.Stage) (*sparse, error) {
	n := len(v.terms)
	sums := v.contextSums(o.Window)
	contexts := contextShares(sums, o.ContextPower)
	places := occurrences(v.sequence, nil, n)
	return makeSparse(ctx, n, n, room, func() func(int, *sparseBlock) {
		counter := &contextCounter{units: make([]int, n)}
		return func(j int, b *sparseBlock) {
			counter.count(v.sequence, nil, places[j], o.Window)
			for _, i := range counter.found {
				associate(b, i, counter.units[i], sums[i], contexts[j])
			}
		}
	}, st)
}

// associate adds the association of a term and a context, with its share, that
// co-occurred in units to a column of b, if it is positive. A context without a
// share, which occurs in copies of passages alone, says nothing.
func associate(b *sparseBlock, column int32, units, sum int, share float64) {
	if share == 0 {
		return
	}
	if pmi := math.Log(float64(units) / (float64(sum) * share)); pmi > 0 {
		b.add(column, float32(pmi))
	}
}

// contextShares returns q_j for the sums c_j of ppmi.
func contextShares(sums []int, power float64) []float64 {
	shares, total := make([]float64, len(sums)), 0.0
	for j, c := range sums {
		shares[j] = math.Pow(float64(c), power)
		total += shares[j]
	}
	if total > 0 { // else no two terms co-occur
		for j := range shares {
			shares[j] /= total
		}
	}
	return shares
}

func (v *vocabulary) contextSums(window int) []int {
	sums := make([]int, len(v.terms))
	for p, i := range v.sequence {
		if i < 0 {
			continue
		}
		for k := 1; k <= window && v.sequence[p+k] >= 0; k++ {
			sums[i] += windowUnits / k
			sums[v.sequence[p+k]] += windowUnits / k
		}
	}
	return sums
}

type contextCounter struct {
	units []int   // c_ij of the current row by column, in window units
	found []int32 // the columns that are not 0, ascending
}

// count counts the terms around places in a sequence, and returns the sum.
// indices is as in [occurrences].
func (c *contextCounter) count(sequence, indices, places []int32, window int) (sum int) {
	for _, j := range c.found {
		c.units[j] = 0
	}
	c.found = c.found[:0]
	for _, p := range places {
		for _, step := range []int{-1, 1} {
			distance := 1
			for q := int(p) + step; distance <= window && sequence[q] >= 0; q += step {
				j := indexOf(sequence[q], indices)
				if j == absent {
					continue
				}
				if c.units[j] == 0 {
					c.found = append(c.found, j)
				}
				c.units[j] += windowUnits / distance
				sum += windowUnits / distance
				distance++
			}
		}
	}
	slices.Sort(c.found)
	return sum
}

// termDocuments returns the document-term matrix, a document per row, with
// weights
//
//	ln(1 + tf) · ln(1 + (N − df + 0.5)/(df + 0.5))
//
// and every document scaled to unit length.
func (v *vocabulary) termDocuments(ctx context.Context, room int64, st *simmatrix.Stage) (*sparse, error) {
	idf := v.idf()
	starts := []int{1} // of documents
	for p, i := range v.sequence[1:] {
		if i == endOfDocument {
			starts = append(starts, p+2)
		}
	}
	return makeSparse(ctx, len(starts)-1, len(v.terms), room, func() func(int, *sparseBlock) {
		var doc []int32
		return func(row int, b *sparseBlock) {
			doc = doc[:0]
			for _, i := range v.sequence[starts[row]:starts[row+1]] {
				if i >= 0 {
					doc = append(doc, i)
				}
			}
			weigh(doc, idf, b)
		}
	}, st)
}

func (v *vocabulary) idf() []float64 {
	idf := make([]float64, len(v.terms))
	for i, df := range v.docFreqs {
		idf[i] = simmatrix.IDF(int64(df), int64(v.docs)) //nolint:gosec // documents are counted in memory
	}
	return idf
}

// weigh adds a document, whose terms it sorts, to b at unit length. It returns
// the length before.
func weigh(doc []int32, idf []float64, b *sparseBlock) float32 {
	slices.Sort(doc)
	start, squares := len(b.value), 0.0
	for from := 0; from < len(doc); {
		to := from + 1
		for to < len(doc) && doc[to] == doc[from] {
			to++
		}
		weight := math.Log1p(float64(to-from)) * idf[doc[from]]
		squares += weight * weight
		b.add(doc[from], float32(weight))
		from = to
	}
	length := float32(math.Sqrt(squares)) // positive: no idf is 0
	for k := start; k < len(b.value); k++ {
		b.value[k] /= length
	}
	return length
}
