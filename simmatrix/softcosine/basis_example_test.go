package softcosine_test

import (
	"fmt"

	"github.com/akin-search/akin/simmatrix/softcosine"
)

// The cosine of the coordinates is the soft cosine: a store of vectors that
// knows the cosine can rank by it.
func ExampleNewBasis() {
	s, err := softcosine.NewSimilarities(3, func(yield func([2]int32, float64) bool) {
		_ = yield([2]int32{0, 1}, 0.5) && yield([2]int32{1, 0}, 0.5)
	})
	if err != nil {
		panic(err)
	}
	space, err := softcosine.NewSpace([]float64{1, 2, 1}, s)
	if err != nil {
		panic(err)
	}
	basis, err := softcosine.NewBasis(space, softcosine.MinimumDegree, 0)
	if err != nil {
		panic(err)
	}
	x := softcosine.NewVector(map[int32]float64{0: 1, 2: 1})
	y := softcosine.NewVector(map[int32]float64{1: 1})
	soft, err := space.Soft(x, y)
	if err != nil {
		panic(err)
	}
	a, b := basis.Coordinates(x), basis.Coordinates(y)
	fmt.Printf("soft cosine %.4f, cosine of coordinates %.4f\n", soft, a.Dot(b)/a.Norm()/b.Norm())
	fmt.Printf("cosine without S %.4f\n", space.Cosine(x, y))
	// Output:
	// soft cosine 0.3536, cosine of coordinates 0.3536
	// cosine without S 0.0000
}
