package learn

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
)

// addPart appends the vectors of the columns of a, V·σ^sigmaPower of a =
// U·σ·Vᵀ, each scaled to the length. It changes v.
func (t *vectorTable) addPart(v blas64.General, sigma []float64, sigmaPower, length float64) {
	scales := make([]float64, len(sigma))
	for j, s := range sigma {
		scales[j] = math.Pow(s, sigmaPower)
	}
	wider := vectorTable{rows: t.rows, dim: t.dim + len(sigma)}
	wider.values = make([]float32, wider.rows*wider.dim)
	for i := range t.rows {
		copy(wider.row(i), t.row(i))
		if len(sigma) > 0 {
			part := rowOf(v, i).Data
			for j := range part {
				part[j] *= scales[j]
			}
			scaleTo(wider.row(i)[t.dim:], part, length)
		}
	}
	*t = wider
}

// shortest is the length under which a vector's direction is rounding error.
const shortest = 1e-9

// scaleTo sets dst to src scaled to the given length, or to zero.
func scaleTo(dst []float32, src []float64, length float64) {
	norm := blas64.Nrm2(blas64.Vector{N: len(src), Inc: 1, Data: src})
	for j, x := range src {
		if norm > shortest {
			dst[j] = float32(x / norm * length)
		} else {
			dst[j] = 0
		}
	}
}
