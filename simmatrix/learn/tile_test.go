package learn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// multiplies are the implementations that this processor can run.
func multiplies() map[string]multiply {
	return map[string]multiply{"fastest": fastestMultiply(), "portable": multiplyPortable}
}

// A tileCase is random vectors in the layout of a [multiply].
type tileCase struct {
	dim         int
	rows, panel []float32
	floors      [tileRows]float32
}

func newTileCase(random *rand.Rand, dim int) tileCase {
	c := tileCase{dim: dim, rows: make([]float32, tileRows*dim), panel: make([]float32, tileCols*dim)}
	for i := range c.rows {
		c.rows[i] = float32(random.NormFloat64())
	}
	for i := range c.panel {
		c.panel[i] = float32(random.NormFloat64())
	}
	for i := range c.floors {
		c.floors[i] = float32(random.NormFloat64())
	}
	return c
}

// exact returns a dot product in float64 and a bound on the rounding error of
// any order of summation in float32: n·2⁻²⁴·Σ|x||y|, Higham, Accuracy and
// Stability of Numerical Algorithms (2002), section 3.1. One is added for what
// that leaves out.
func (c *tileCase) exact(i, k int) (dot, bound float64) {
	for d := range c.dim {
		product := float64(c.rows[d*tileRows+i]) * float64(c.panel[d*tileCols+k])
		dot += product
		bound += math.Abs(product)
	}
	return dot, bound * float64(c.dim+1) * 0x1p-24
}

func TestMultiplyGivesDotProductsAndWhichAreAboveTheFloor(t *testing.T) {
	for name, multiply := range multiplies() {
		random := rand.New(rand.NewPCG(3, 4))
		for _, dim := range []int{0, 1, 2, 3, 7, 8, 16, 50, 100, 101, 333} {
			c := newTileCase(random, dim)
			if dim > 0 {
				c.rows[0] = float32(math.NaN()) // no sum that it is part of is above anything
				c.floors[1] = math.MaxFloat32
				c.floors[2] = -math.MaxFloat32
			}
			tile := tile{floors: c.floors}
			tile.dots[5][5], tile.above[5] = 99, 0xffff // what was there before does not matter
			some := multiply(&tile, c.rows, c.panel)
			want := false
			for i, dots := range tile.dots {
				for k, dot := range dots {
					if exact, bound := c.exact(i, k); math.Abs(float64(dot)-exact) > bound || math.IsNaN(float64(dot)) != math.IsNaN(exact) {
						t.Errorf("%s, %d dimensions: dot %d·%d is %v, want %v ± %v", name, dim, i, k, dot, exact, bound)
					}
					above := tile.above[i]>>k&1 == 1
					check.That(t, above == (dot > c.floors[i]), "%s, %d dimensions: %v above %v: %v", name, dim, dot, c.floors[i], above)
					want = want || above
				}
			}
			check.Equal(t, want, some, name, dim)
		}
	}
}

// The dot product of two vectors has the same bits wherever they stand, and
// whichever of them is the row: results cannot depend on how the vectors are
// cut into blocks.
func TestMultiplyDependsOnlyOnTheTwoVectors(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for name, multiply := range multiplies() {
		for _, dim := range []int{1, 37, 100} {
			vectors := make([][]float32, tileRows)
			for i := range vectors {
				for range dim {
					vectors[i] = append(vectors[i], float32(random.NormFloat64()))
				}
			}
			dots := func(order []int, shift int) [tileRows][tileRows]float32 {
				rows, panel := make([]float32, tileRows*dim), make([]float32, tileCols*dim)
				for at, v := range order {
					for d, x := range vectors[v] {
						rows[d*tileRows+at] = x
						panel[d*tileCols+(at+shift)%tileCols] = x
					}
				}
				var tile tile
				multiply(&tile, rows, panel)
				var out [tileRows][tileRows]float32
				for i, v := range order {
					for k, w := range order {
						out[v][w] = tile.dots[i][(k+shift)%tileCols]
					}
				}
				return out
			}
			first := dots([]int{0, 1, 2, 3, 4, 5}, 0)
			for i := range first {
				for k := range first {
					check.Equal(t, first[k][i], first[i][k], name, i, k, k, i)
				}
			}
			for shift := range tileCols {
				check.Equal(t, first, dots(random.Perm(tileRows), shift), name)
			}
		}
	}
}
