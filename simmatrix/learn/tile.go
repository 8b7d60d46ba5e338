package learn

// A tile is the dot products of tileRows vectors with the tileCols of a panel,
// as many as fit into the registers of a processor with AVX2 (Goto and van de
// Geijn, Anatomy of High-Performance Matrix Multiplication, 2008). Each is one
// sum in ascending order of the dimensions: it depends only on its two vectors.
const (
	tileRows = 6
	tileCols = 16
)

// A tile has what a [multiply] gives, and the floors that it takes.
type tile struct {
	dots   [tileRows][tileCols]float32
	floors [tileRows]float32
	above  [tileRows]uint16 // bit k of above[i]: dots[i][k] > floors[i]
}

// A multiply sets the dots and above of t and reports whether any is above its
// floor. rows has the vectors of t, panel those of a panel.
type multiply func(t *tile, rows, panel []float32) bool

// multiplyPortable is the multiply of any processor, in strips of four so that
// its sums fit into registers. It rounds more often than multiplyFMA.
func multiplyPortable(t *tile, rows, panel []float32) bool {
	for i := 0; i < tileRows; i += 2 {
		for k := 0; k < tileCols; k += 4 {
			var a0, a1, a2, a3, b0, b1, b2, b3 float32
			for r, p := rows, panel; len(r) >= tileRows && len(p) >= tileCols; r, p = r[tileRows:], p[tileCols:] {
				x, y := r[i], r[i+1]
				q := (*[4]float32)(p[k : k+4])
				a0 += x * q[0]
				a1 += x * q[1]
				a2 += x * q[2]
				a3 += x * q[3]
				b0 += y * q[0]
				b1 += y * q[1]
				b2 += y * q[2]
				b3 += y * q[3]
			}
			copy(t.dots[i][k:], []float32{a0, a1, a2, a3})
			copy(t.dots[i+1][k:], []float32{b0, b1, b2, b3})
		}
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
