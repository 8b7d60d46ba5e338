package softcosine

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
)

// A Vector is a sparse vector: Values[k] is its coordinate of the term
// Terms[k], or of a document in the result of [Collection.Products]. Terms ascend,
// and no value is 0 or not finite; [NewVector] ensures it.
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
	return float(wideDot(x, y, nil))
}

// Norm returns ‖x‖ = √(xᵀx), +Inf where it is out of range.
func (x Vector) Norm() float64 {
	sum := 0.0
	for _, v := range x.Values {
		sum += v * v
	}
	if plain(sum) {
		return math.Sqrt(sum)
	}
	return float(wideNorm(x, nil))
}

// Scaled returns f·x without zeros. It panics at a coordinate out of range.
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

// A wide is a float64 whose exponent may be far beyond its range.
type wide = *big.Float

func times(a, b wide) wide { return new(big.Float).Mul(a, b) }

func plus(a, b wide) wide { return new(big.Float).Add(a, b) }

// over returns a / (b·c), 0 where b or c is 0.
func over(a, b, c wide) float64 {
	if b.Sign() == 0 || c.Sign() == 0 {
		return 0
	}
	return float(new(big.Float).Quo(new(big.Float).Quo(a, b), c))
}

// float returns the nearest float64, infinite or 0 where a is out of range.
func float(a wide) float64 {
	v, _ := a.Float64()
	return v
}

// headroom is how many powers of two lie between the coordinates of a shrunk
// vector and 1: as much as a sum over all terms can grow by.
const headroom = 64

// shrunk returns Wx, for the diagonal of W or nil for the identity, divided by
// a power of two: its coordinates are below 2⁻⁶⁴ and the largest is at least a
// quarter of that, so that Sᵀ·u does not leave the range of a float64, whatever
// S. It panics where a coordinate of x is not finite.
func shrunk(x Vector, weights []float64) Vector {
	x = x.checked()
	largest := math.MinInt
	for k, term := range x.Terms {
		if w := weighted(x.Values[k], weights, term); w.Sign() != 0 {
			largest = max(largest, w.MantExp(nil))
		}
	}
	return x.mapped(func(term int32, v float64) float64 {
		w := weighted(v, weights, term)
		if w.Sign() == 0 {
			return 0
		}
		return float(new(big.Float).SetMantExp(w, -largest-headroom))
	})
}

func weighted(v float64, weights []float64, term int32) wide {
	if weights == nil {
		return big.NewFloat(v)
	}
	return times(big.NewFloat(v), big.NewFloat(weights[term]))
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

// wideDot returns (Wx)ᵀ(Wy). It panics where a coordinate is not finite.
func wideDot(x, y Vector, weights []float64) wide {
	x, y = x.checked(), y.checked()
	sum := new(big.Float)
	for k, i := range x.Terms {
		if v := y.At(i); v != 0 {
			sum = plus(sum, times(weighted(x.Values[k], weights, i), weighted(v, weights, i)))
		}
	}
	return sum
}

func wideNorm(x Vector, weights []float64) wide { return new(big.Float).Sqrt(wideDot(x, x, weights)) }

// wideInner returns ⟨x, y⟩. It panics where a coordinate is not finite.
func (sp *Space) wideInner(x, y Vector) wide {
	sum := wideDot(x, y, sp.weights) // s_ii = 1
	for k, i := range x.Terms {
		row := new(big.Float)
		cols, sims := sp.s.Row(int(i))
		for l, j := range cols {
			if v := y.At(j); v != 0 {
				row = plus(row, times(weighted(v, sp.weights, j), big.NewFloat(sims[l])))
			}
		}
		sum = plus(sum, times(weighted(x.Values[k], sp.weights, i), row))
	}
	return sum
}

// wideSoftNorm is [Space.SoftNorm] without its range.
func (sp *Space) wideSoftNorm(x Vector) (wide, error) {
	square := sp.wideInner(x, x)
	rounding := times(wideDot(x, x, sp.weights), big.NewFloat(roundingShare))
	switch {
	case square.Sign() >= 0:
		return new(big.Float).Sqrt(square), nil
	case plus(square, rounding).Sign() >= 0:
		return new(big.Float), nil
	default:
		return nil, fmt.Errorf("%w: %.4g", ErrNotReal, float(square))
	}
}

// inRange returns what a is, or an error that wraps [ErrRange].
func inRange(what string, a float64) (float64, error) {
	if !finite(a) {
		return 0, fmt.Errorf("%s is %w", what, ErrRange)
	}
	return a, nil
}
