package learn

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// A tile has the dot products of tileRows vectors and a panel's tileCols, as
// many as fit into the registers of a processor with AVX2 (Goto and van de
// Geijn, Anatomy of High-Performance Matrix Multiplication, 2008). Each is a
// sum in ascending order of dimensions, which depends only on its two vectors.
const (
	tileRows = 6
	tileCols = 16
)

// A tile has the results of a [multiply], and the floors that it uses.
type tile struct {
	dots   [tileRows][tileCols]float32
	floors [tileRows]float32
	above  [tileRows]uint16 // bit k of above[i]: dots[i][k] > floors[i]
}

// A multiply sets dots and above of t, and reports whether any dot is above its
// floor. rows has the vectors of t, panel those of a panel.
type multiply func(t *tile, rows, panel []float32) bool

// multiplyPortable is for any processor. It rounds more often than multiplyFMA.
func multiplyPortable(t *tile, rows, panel []float32) bool {
	dim := len(panel) / tileCols
	dots := blas32.General{Rows: tileRows, Cols: tileCols, Stride: tileCols, Data: make([]float32, tileRows*tileCols)}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, blas32.General{Rows: dim, Cols: tileRows, Stride: tileRows, Data: rows},
		blas32.General{Rows: dim, Cols: tileCols, Stride: tileCols, Data: panel}, 0, dots)
	for i := range t.dots {
		copy(t.dots[i][:], dots.Data[i*tileCols:])
	}
	some := false
	for i, floor := range t.floors {
		t.above[i] = 0
		for k, dot := range t.dots[i] {
			if dot > floor {
				t.above[i] |= 1 << k
				some = true
			}
		}
	}
	return some
}
