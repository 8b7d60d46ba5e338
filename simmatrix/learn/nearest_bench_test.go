package learn

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// BenchmarkNearest compares all pairs of vectors.
func BenchmarkNearest(b *testing.B) {
	for _, size := range []struct{ rows, dim int }{{2_000, 200}, {10_000, 200}, {20_000, 100}} {
		b.Run(fmt.Sprintf("rows=%d/dim=%d", size.rows, size.dim), func(b *testing.B) {
			p := clusteredVectors(rand.New(rand.NewPCG(1, 1)), size.rows, size.dim).asPanels()
			for b.Loop() {
				exactly(b, p, nearestOptions{neighbors: 200, power: 3})
			}
			pairs := float64(size.rows) * float64(size.rows) * float64(b.N)
			b.ReportMetric(pairs*2*float64(size.dim)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// BenchmarkMultiply has one processor compare a block of vectors with others,
// by each implementation and by gonum, in turns, and reports how many times as
// fast as gonum each is.
func BenchmarkMultiply(b *testing.B) {
	const others = 1024
	for name, multiply := range multiplies() {
		for _, dim := range []int{100, 200, 300} {
			b.Run(fmt.Sprintf("%s/dim=%d", name, dim), func(b *testing.B) {
				random := rand.New(rand.NewPCG(1, 1))
				rows, columns := unitVectors(random, blockRows, dim), unitVectors(random, others, dim)
				p := columns.asPanels()
				s := newSearcher(dim, 1, 1)
				s.multiply = multiply
				s.begin(rows.asPanels(), 0, blockRows)
				s.load(s.all)
				general := func(t *vectorTable, from, size int) blas32.General {
					return blas32.General{Rows: size, Cols: dim, Stride: dim, Data: t.values[from*dim : (from+size)*dim]}
				}
				// 64 times 128 are few enough that gonum stays on one processor, too.
				tile := blas32.General{Rows: 64, Cols: 128, Stride: 128, Data: make([]float32, 64*128)}
				var ours, gonums time.Duration
				for b.Loop() {
					start := time.Now()
					s.scan(p, 0, p.len())
					ours += time.Since(start)
					start = time.Now()
					for i := 0; i < blockRows; i += tile.Rows {
						for k := 0; k < others; k += tile.Cols {
							blas32.Gemm(blas.NoTrans, blas.Trans, 1, general(rows, i, tile.Rows), general(columns, k, tile.Cols), 0, tile)
						}
					}
					gonums += time.Since(start)
				}
				flop := 2 * blockRows * others * float64(dim) * float64(b.N)
				b.ReportMetric(flop/ours.Seconds()/1e9, "GFLOP/s")
				b.ReportMetric(flop/gonums.Seconds()/1e9, "gonum-GFLOP/s")
				b.ReportMetric(gonums.Seconds()/ours.Seconds(), "times-gonum")
			})
		}
	}
}
