package simmatrix

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// randomSparse returns a matrix with about the given share of entries, whose
// columns shrink by decay from one to the next.
func randomSparse(random *rand.Rand, rows, cols int, share, decay float64) *sparse {
	s := &sparse{rows: rows, cols: cols, offsets: []int{0}}
	for range rows {
		for j := range cols {
			if random.Float64() < share {
				s.index = append(s.index, int32(j))
				s.value = append(s.value, float32(random.NormFloat64()*math.Pow(decay, float64(j))))
			}
		}
		s.offsets = append(s.offsets, len(s.index))
	}
	return s
}

func dense(s *sparse) *mat.Dense {
	d := mat.NewDense(s.rows, s.cols, nil)
	for i := range s.rows {
		for k := s.offsets[i]; k < s.offsets[i+1]; k++ {
			d.Set(i, int(s.index[k]), float64(s.value[k]))
		}
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
		{"one column", 30, 1, 1, 1, 100, 1},
		{"one entry", 1, 1, 1, 1, 100, 1},
		{"larger than the sketch, decaying", 300, 200, 0.2, 0.8, 12, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := randomSparse(random, tt.rows, tt.cols, tt.share, tt.decay)
			u, sigma, err := truncatedSVD(t.Context(), a, tt.k, rand.New(rand.NewPCG(1, 1)), newStage(nil, "", 0))
			if err != nil {
				t.Fatal(err)
			}
			var full mat.SVD
			if !full.Factorize(dense(a), mat.SVDThin) {
				t.Fatal("gonum's SVD failed")
			}
			if len(sigma) != tt.want || u.Cols != tt.want || u.Rows != tt.rows {
				t.Fatalf("%d values, U is %d×%d, want %d", len(sigma), u.Rows, u.Cols, tt.want)
			}
			for j, want := range full.Values(nil)[:tt.want] {
				if math.Abs(sigma[j]-want) > 1e-6 {
					t.Errorf("σ%d = %v, want %v", j, sigma[j], want)
				}
			}
			checkSubspace(t, u, &full)
		})
	}
}

// checkSubspace compares the projections on the leading left singular vectors,
// which do not depend on signs.
func checkSubspace(t *testing.T, u blas64.General, full *mat.SVD) {
	t.Helper()
	var wantU, got, want, diff mat.Dense
	full.UTo(&wantU)
	gotU := mat.NewDense(u.Rows, u.Cols, u.Data)
	leading := wantU.Slice(0, u.Rows, 0, u.Cols)
	got.Mul(gotU, gotU.T())
	want.Mul(leading, leading.T())
	diff.Sub(&got, &want)
	if d := mat.Norm(&diff, 2); d > 1e-5 {
		t.Errorf("the projections differ by %v", d)
	}
}

func TestTruncatedSVDStopsAtTheRank(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	a := randomSparse(random, 5, 30, 0.8, 1)
	// Every row four times: rank 5.
	repeated := &sparse{rows: 20, cols: 30, offsets: []int{0}}
	for i := range 20 {
		lo, hi := a.offsets[i%5], a.offsets[i%5+1]
		repeated.index = append(repeated.index, a.index[lo:hi]...)
		repeated.value = append(repeated.value, a.value[lo:hi]...)
		repeated.offsets = append(repeated.offsets, len(repeated.index))
	}
	_, sigma, err := truncatedSVD(t.Context(), repeated, 12, random, newStage(nil, "", 0))
	if err != nil || len(sigma) != 5 {
		t.Errorf("%d singular values, want 5: %v", len(sigma), err)
	}
	zero := &sparse{rows: 4, cols: 6, offsets: make([]int, 5)}
	u, sigma, err := truncatedSVD(t.Context(), zero, 3, random, newStage(nil, "", 0))
	if err != nil || len(sigma) != 0 || u.Cols != 0 {
		t.Errorf("a matrix of zeros: %v, %v", sigma, err)
	}
}

func TestTruncatedSVDHeedsTheContext(t *testing.T) {
	// Ends the context in every product in turn.
	for product := range svdProducts {
		ctx, cancel := context.WithCancel(t.Context())
		st := newStage(func(_ string, done, _ int) {
			if done == product {
				cancel()
			}
		}, "", svdProducts)
		_, _, err := truncatedSVD(ctx, randomSparse(rand.New(rand.NewPCG(1, 1)), 20, 20, 0.5, 1), 3, rand.New(rand.NewPCG(1, 1)), st)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended after %d products: %v", product, err)
		}
	}
}

func TestSparseProductAndTranspose(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	a := randomSparse(random, 300, 17, 0.3, 1) // several blocks of rows
	b := newDense(17, 5)
	for i := range b.Data {
		b.Data[i] = random.NormFloat64()
	}
	got := newDense(300, 5)
	got.Data[0] = math.NaN() // what was there before must not matter
	if err := a.mul(t.Context(), got, b); err != nil {
		t.Fatal(err)
	}
	var want mat.Dense
	want.Mul(dense(a), mat.NewDense(17, 5, b.Data))
	if !mat.EqualApprox(&want, mat.NewDense(300, 5, got.Data), 1e-12) {
		t.Error("the product is wrong")
	}
	if !mat.Equal(dense(a).T(), dense(a.transpose())) {
		t.Error("the transpose is wrong")
	}
}
