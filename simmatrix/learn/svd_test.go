package learn

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// sparseOf returns the matrix of rows, in blocks of two rows.
func sparseOf(cols int, rows ...map[int]float64) *sparse {
	s := &sparse{rows: len(rows), cols: cols}
	for i, row := range rows {
		if i%2 == 0 {
			s.blocks = append(s.blocks, sparseBlock{})
		}
		b := &s.blocks[len(s.blocks)-1]
		for _, j := range slices.Sorted(maps.Keys(row)) {
			b.add(int32(j), float32(row[j]))
		}
		b.lengths = append(b.lengths, int32(len(row)))
	}
	return s
}

// randomSparseRows returns rows with about the given share of entries, whose columns
// shrink by decay from one to the next.
func randomSparseRows(random *rand.Rand, rows, cols int, share, decay float64) []map[int]float64 {
	out := make([]map[int]float64, rows)
	for i := range out {
		out[i] = map[int]float64{}
		for j := range cols {
			if random.Float64() < share {
				out[i][j] = random.NormFloat64() * math.Pow(decay, float64(j))
			}
		}
	}
	return out
}

func randomSparse(random *rand.Rand, rows, cols int, share, decay float64) *sparse {
	return sparseOf(cols, randomSparseRows(random, rows, cols, share, decay)...)
}

func dense(s *sparse) *mat.Dense {
	d := mat.NewDense(s.rows, s.cols, nil)
	i := 0
	for _, b := range s.blocks {
		b.all(func(index []int32, value []float32) {
			for k, j := range index {
				d.Set(i, int(j), float64(value[k]))
			}
			i++
		})
	}
	return d
}

func TestTruncatedSVDAgreesWithTheFullOne(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, tt := range []struct {
		name         string
		rows, cols   int
		share, decay float64
		k, want      int
	}{
		{"tall", 90, 30, 0.3, 1, 10, 10},
		{"wide", 30, 90, 0.3, 1, 10, 10},
		{"more dimensions than rows", 15, 60, 0.5, 1, 100, 15},
		{"more dimensions than columns", 60, 15, 0.5, 1, 100, 15},
		{"one column", 30, 1, 1, 1, 100, 1},
		{"one entry", 1, 1, 1, 1, 100, 1},
		{"larger than the sketch, decaying", 300, 200, 0.2, 0.8, 12, 12},
		{"values over five orders of magnitude", 60, 20, 1, 0.55, 20, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := randomSparse(random, tt.rows, tt.cols, tt.share, tt.decay)
			v, sigma, err := Leading(t.Context(), gramOf(a), tt.k, rand.New(rand.NewPCG(1, 1)), simmatrix.NewStage(nil, "", 0))
			check.OK(t, err)
			var full mat.SVD
			check.Must(t, full.Factorize(dense(a), mat.SVDThin), "gonum's SVD failed")
			if len(sigma) != tt.want || v.Cols != tt.want || v.Rows != tt.cols {
				t.Fatalf("%d values, V is %d×%d, want %d", len(sigma), v.Rows, v.Cols, tt.want)
			}
			for j, want := range full.Values(nil)[:tt.want] {
				check.That(t, math.Abs(sigma[j]-want) <= 1e-6, "σ%d = %v, want %v", j, sigma[j], want)
			}
			checkSubspace(t, v, &full)
		})
	}
}

// checkSubspace compares the projections on the leading right singular vectors,
// which do not depend on signs.
func checkSubspace(t *testing.T, v blas64.General, full *mat.SVD) {
	t.Helper()
	var wantV, got, want, diff mat.Dense
	full.VTo(&wantV)
	gotV := mat.NewDense(v.Rows, v.Cols, v.Data)
	leading := wantV.Slice(0, v.Rows, 0, v.Cols)
	got.Mul(gotV, gotV.T())
	want.Mul(leading, leading.T())
	diff.Sub(&got, &want)
	d := mat.Norm(&diff, 2)
	check.That(t, d <= 1e-5, "the projections differ by %v", d)
}

// gramOf returns AᵀA, whose vectors and values are the right singular ones.
func gramOf(a *sparse) Symmetric {
	return Symmetric{Size: a.cols, Rank: a.rows, Multiply: a.gram}
}

func TestTruncatedSVDStopsAtTheRank(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	rows := randomSparseRows(random, 5, 30, 0.8, 1)
	repeated := sparseOf(30, slices.Concat(rows, rows, rows, rows)...) // of rank 5
	_, sigma, err := Leading(t.Context(), gramOf(repeated), 12, random, simmatrix.NewStage(nil, "", 0))
	check.That(t, err == nil && len(sigma) == 5, "%d singular values, want 5: %v", len(sigma), err)
	zero := sparseOf(6, make([]map[int]float64, 4)...)
	v, sigma, err := Leading(t.Context(), gramOf(zero), 3, random, simmatrix.NewStage(nil, "", 0))
	check.That(t, err == nil && len(sigma) == 0 && v.Cols == 0, "a matrix of zeros: %v, %v", sigma, err)
}

// all calls fn for each row of the block.
func (b *sparseBlock) all(fn func(index []int32, value []float32)) {
	at := 0
	for _, l := range b.lengths {
		fn(b.index[at:at+int(l)], b.value[at:at+int(l)])
		at += int(l)
	}
}

func TestDenseProductsHeedTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := newDense(1000, 10)
	check.Error(t, context.Canceled, orthonormalize(ctx, a))
	check.Error(t, context.Canceled, check.ErrOf(crossProduct(ctx, a, a)))
	check.Error(t, context.Canceled, check.ErrOf(timesSmall(ctx, a, newDense(10, 3))))
}
