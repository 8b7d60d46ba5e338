package softcosine

import (
	"maps"
	"math"
	"slices"
)

// A Vector is a sparse vector: Values[k] is the coordinate of term Terms[k].
// Terms ascend, and values are finite and not 0, as [NewVector] ensures.
type Vector struct {
	Terms  []int32
	Values []float64
}

// NewVector returns the vector of the given coordinates, without zeros. It
// panics if a term is negative or a coordinate is not finite.
func NewVector(values map[int32]float64) Vector {
	var v Vector
	for _, term := range slices.Sorted(maps.Keys(values)) {
		value := values[term]
		switch {
		case term < 0:
			panic(panicTerm)
		case notFinite(value):
			panic(panicFinite)
		case value != 0:
			v.Terms, v.Values = append(v.Terms, term), append(v.Values, value)
		}
	}
	return v
}

// Messages of panics.
const (
	panicTerm   = "softcosine: term out of range"
	panicFinite = "softcosine: coordinate not finite"
)

// Len returns the number of coordinates that are not 0.
func (x Vector) Len() int { return len(x.Terms) }

// At returns the coordinate of term, or 0, in O(log m).
func (x Vector) At(term int32) float64 {
	k, ok := slices.BinarySearch(x.Terms, term)
	if !ok {
		return 0
	}
	return x.Values[k]
}

// Dot returns xᵀy in O(m).
func (x Vector) Dot(y Vector) float64 {
	sum, k := 0.0, 0
	for i, term := range x.Terms {
		for k < len(y.Terms) && y.Terms[k] < term {
			k++
		}
		if k == len(y.Terms) {
			break
		}
		if y.Terms[k] == term {
			sum += x.Values[i] * y.Values[k]
		}
	}
	return sum
}

// Norm returns ‖x‖ = √(xᵀx).
func (x Vector) Norm() float64 { return math.Sqrt(x.Dot(x)) }

// mapped returns the vector of fn's values, without zeros.
func (x Vector) mapped(fn func(term int32, value float64) float64) Vector {
	out := Vector{Terms: make([]int32, 0, len(x.Terms)), Values: make([]float64, 0, len(x.Terms))}
	for k, term := range x.Terms {
		if v := fn(term, x.Values[k]); v != 0 {
			out.Terms, out.Values = append(out.Terms, term), append(out.Values, v)
		}
	}
	return out
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// checked returns x. It panics if a coordinate is not finite.
func (x Vector) checked() Vector {
	if slices.ContainsFunc(x.Values, notFinite) {
		panic(panicFinite)
	}
	return x
}
