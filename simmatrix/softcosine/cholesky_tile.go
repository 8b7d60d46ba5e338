package softcosine

import "math"

// A tile is an edge×edge block of a matrix, column by column: element (r, c)
// is at [edge·c + r]. A panel is a matrix of edge rows, column by column as
// well: tiles side by side. Both are what a processor with AVX2 reads
// fastest.
const edge = 8

type tile [edge * edge]float64

// A subtraction sets t = t − A·Bᵀ for panels a and b of equally many
// columns.
type subtraction func(t *tile, a, b []float64)

// subtractPortable is the subtraction of any processor. It goes over the
// tile in squares of four, so that sums stay in registers. Where the
// compiler has no fused multiplication and addition, it rounds more often
// than subtractFMA.
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

// solve sets t = t·L⁻ᵀ for the Cholesky factor L of the tile on the
// diagonal.
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
