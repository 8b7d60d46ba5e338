package softcosine

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// A Vector is a sparse vector: Values[k] is its coordinate of the term
// Terms[k], or of a document in the result of [Collection.Products]. Terms
// ascend, and no value is 0 or not finite; [NewVector] ensures it.
type Vector struct {
	Terms  []int32
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
		case notFinite(value):
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

// Dot returns xᵀy in O(m), ±Inf where it is out of range.
func (x Vector) Dot(y Vector) float64 {
	if sum := x.dot(y); finite(sum) {
		return sum
	}
	u, eu := scaled(x, nil)
	v, ev := scaled(y, nil)
	return math.Ldexp(u.dot(v), eu+ev)
}

// Norm returns ‖x‖ = √(xᵀx), +Inf where it is out of range.
func (x Vector) Norm() float64 {
	if square := x.dot(x); plain(square) {
		return math.Sqrt(square)
	}
	u, e := scaled(x, nil)
	return math.Ldexp(math.Sqrt(u.dot(u)), e)
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

func finite(v float64) bool { return !notFinite(v) }

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// plain reports whether a sum of squares is so far from both ends of the range
// of a float64 that products of vectors with such norms lose nothing there. It
// is false for 0 and for what is not finite.
func plain(square float64) bool { return square > 0x1p-400 && square < 0x1p400 }

// checked returns x. It panics where a coordinate is not finite.
func (x Vector) checked() Vector {
	if slices.ContainsFunc(x.Values, notFinite) {
		panic(panicFinite)
	}
	return x
}

// headroom is how many powers of two lie between the coordinates of a scaled
// vector and 1: as much as a sum over all terms can grow by.
const headroom = 64

// scaled returns u and e with Wx = u·2ᵉ, for the diagonal of W or nil for the
// identity, so that products of such u do not leave the range of a float64,
// whatever S: the largest coordinate of u is between 2⁻⁶⁶ and 2⁻⁶⁴. Coordinates
// that are smaller by 300 digits are left out. It panics where one of x is not
// finite.
func scaled(x Vector, weights []float64) (u Vector, e int) {
	fraction := func(term int32, v float64) (m float64, e int) {
		m, e = math.Frexp(v)
		if weights != nil {
			w, we := math.Frexp(weights[term])
			m, e = m*w, e+we
		}
		return m, e
	}
	x, e = x.checked(), math.MinInt
	for k, term := range x.Terms {
		if m, own := fraction(term, x.Values[k]); m != 0 {
			e = max(e, own)
		}
	}
	e += headroom
	return x.mapped(func(term int32, v float64) float64 {
		m, own := fraction(term, v)
		return math.Ldexp(m, own-e)
	}), e
}

// dot returns xᵀy, or what is not finite where a sum is out of range.
func (x Vector) dot(y Vector) float64 {
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

// inRange returns what a is, or an error that wraps [ErrRange].
func inRange(what string, a float64) (float64, error) {
	if !finite(a) {
		return 0, fmt.Errorf("%s is %w", what, ErrRange)
	}
	return a, nil
}
