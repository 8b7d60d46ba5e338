package softcosine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestVectorKeepsTermsInOrderWithoutZeros(t *testing.T) {
	v := NewVector(map[int32]float64{7: 2, 3: -1, 5: 0, 0: 4})
	if !slices.Equal(v.Terms, []int32{0, 3, 7}) || !slices.Equal(v.Values, []float64{4, -1, 2}) {
		t.Errorf("got %v", v)
	}
	if v.Len() != 3 || v.At(7) != 2 || v.At(5) != 0 || v.At(100) != 0 || (Vector{}).At(0) != 0 {
		t.Errorf("Len and At of %v", v)
	}
}

func TestVectorRefusesWhatIsNoCoordinate(t *testing.T) {
	for name, values := range map[string]map[int32]float64{
		"negative term": {-1: 1}, "NaN": {0: math.NaN()}, "infinity": {0: math.Inf(-1)},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			NewVector(values)
		})
	}
}

func TestVectorDotAndNormAreThoseOfTheDenseVectors(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		x, y := randomDocument(rng, 12), randomDocument(rng, 12)
		dot, square := 0.0, 0.0
		for i := range int32(12) {
			dot += x.At(i) * y.At(i)
			square += x.At(i) * x.At(i)
		}
		if x.Dot(y) != dot || y.Dot(x) != dot || !near(x.Norm(), math.Sqrt(square), 1e-15) {
			t.Errorf("%v and %v: dot %v, norm %v; want %v, %v", x, y, x.Dot(y), x.Norm(), dot, math.Sqrt(square))
		}
	})
}
