package softcosine

import (
	"maps"
	"math"
	"slices"
)

// A Vector is a sparse vector: Values[k] is its coordinate of the term
// Terms[k], or of a document in the result of [Space.Products]. Terms ascend,
// and no value is 0 or not finite; [NewVector] ensures it, and whoever makes a
// Vector otherwise must.
type Vector struct {
	// Terms are the terms that have a coordinate, ascending.
	Terms []int32
	// Values are their coordinates, as many as Terms.
	Values []float64
}

// NewVector returns the vector of the given coordinates without zeros. It
// panics where a term is negative or a coordinate is not finite.
func NewVector(values map[int32]float64) Vector {
	v := Vector{Terms: make([]int32, 0, len(values)), Values: make([]float64, 0, len(values))}
	for _, term := range slices.Sorted(maps.Keys(values)) {
		value := values[term]
		switch {
		case term < 0:
			panic(panicTerm)
		case math.IsNaN(value) || math.IsInf(value, 0):
			panic(panicFinite)
		case value != 0:
			v.Terms, v.Values = append(v.Terms, term), append(v.Values, value)
		}
	}
	return v
}

// The messages of panics.
const (
	panicTerm   = "softcosine: term out of range"
	panicFinite = "softcosine: coordinate not finite"
)

// Len returns the number of coordinates that are not 0.
func (x Vector) Len() int { return len(x.Terms) }

// At returns the coordinate of term, 0 where there is none, in O(log m).
func (x Vector) At(term int32) float64 {
	k, ok := slices.BinarySearch(x.Terms, term)
	if !ok {
		return 0
	}
	return x.Values[k]
}

// Dot returns xᵀy in O(m), ±Inf where it is out of range. It panics where it is
// not a number because a coordinate is not finite.
func (x Vector) Dot(y Vector) float64 {
	if sum := x.dot(y); finite(sum) {
		return sum
	}
	return wideDot(x, y, nil).float()
}

// Norm returns ‖x‖ = √(xᵀx), +Inf where it is out of range. It panics where a
// coordinate is not finite.
func (x Vector) Norm() float64 {
	sum := 0.0
	for _, v := range x.Values {
		sum += v * v
	}
	if plain(sum) {
		return math.Sqrt(sum)
	}
	return wideNorm(x, nil).float()
}

// Scaled returns f·x without zeros. It panics where a coordinate becomes too
// large.
func (x Vector) Scaled(f float64) Vector {
	return x.mapped(func(_ int32, v float64) float64 { return f * v }).checked()
}

// mapped returns the vector of fn's values, without its zeros.
func (x Vector) mapped(fn func(term int32, value float64) float64) Vector {
	out := Vector{Terms: make([]int32, 0, len(x.Terms)), Values: make([]float64, 0, len(x.Terms))}
	for k, term := range x.Terms {
		if v := fn(term, x.Values[k]); v != 0 {
			out.Terms, out.Values = append(out.Terms, term), append(out.Values, v)
		}
	}
	return out
}
