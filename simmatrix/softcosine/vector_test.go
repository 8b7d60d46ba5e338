package softcosine

import (
	"math"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestVectorKeepsTermsInOrderWithoutZeros(t *testing.T) {
	v := NewVector(map[int32]float64{7: 2, 3: -1, 5: 0, 0: 4})
	check.That(t, slices.Equal(v.Terms, []int32{0, 3, 7}) && slices.Equal(v.Values, []float64{4, -1, 2}), "got %v", v)
	check.That(t, v.Len() == 3 && v.At(7) == 2 && v.At(5) == 0 && v.At(100) == 0 && (Vector{}).At(0) == 0, "Len and At of %v", v)
}

func TestVectorRefusesWhatIsNoCoordinate(t *testing.T) {
	for name, values := range map[string]map[int32]float64{
		"negative term": {-1: 1}, "NaN": {0: math.NaN()}, "infinity": {0: math.Inf(-1)},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				check.That(t, recover() != nil, "no panic")
			}()
			NewVector(values)
		})
	}
}
