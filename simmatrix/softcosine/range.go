package softcosine

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrRange is wrapped by the errors of results that are above the range of a
// float64.
var ErrRange = errors.New("outside of the range of a float64")

func finite(v float64) bool { return !notFinite(v) }

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// plain reports whether a sum of squares is so far from both ends of the range
// of a float64 that neither its summands nor products of vectors with such
// norms lose anything there. It is false for 0 and for what is not finite.
func plain(square float64) bool { return square > 0x1p-400 && square < 0x1p400 }

// checked returns x. It panics where a coordinate is not finite.
func (x Vector) checked() Vector {
	if slices.ContainsFunc(x.Values, notFinite) {
		panic(panicFinite)
	}
	return x
}

// A wide is the number frac·2^exp, 0 or far beyond the range of a float64.
type wide struct {
	frac float64 // 0 or at least ½ and less than 1, or the negative of that
	exp  int
}

// newWide returns v·2^exp.
func newWide(v float64, exp int) wide {
	frac, e := math.Frexp(v)
	return wide{frac, e + exp}
}

// float returns the nearest float64, which is infinite or 0 where a is out of
// range.
func (a wide) float() float64 { return math.Ldexp(a.frac, a.exp) }

func (a wide) root() wide {
	frac, exp := a.frac, a.exp
	if exp%2 != 0 {
		frac, exp = 2*frac, exp-1
	}
	return newWide(math.Sqrt(frac), exp/2)
}

func (a wide) times(b wide) wide { return newWide(a.frac*b.frac, a.exp+b.exp) }

func (a wide) plus(b wide) wide {
	if a.frac == 0 || (b.frac != 0 && b.exp > a.exp) {
		a, b = b, a
	}
	return newWide(a.frac+math.Ldexp(b.frac, b.exp-a.exp), a.exp)
}

// over returns a / (b·c), 0 where b or c is 0.
func (a wide) over(b, c wide) wide {
	if b.frac == 0 || c.frac == 0 {
		return wide{}
	}
	return newWide(a.frac/b.frac/c.frac, a.exp-b.exp-c.exp)
}

// headroom is how many powers of two lie between the coordinates of a shrunk
// vector and 1: as much as a sum over all terms can grow by.
const headroom = 64

// shrunk returns Wx, for the diagonal of W or nil for the identity, divided by
// a power of two. Its coordinates are below 2⁻⁶⁴ and the largest is at least a
// quarter of that, so that Sᵀ·u does not leave the range of a float64, whatever
// S. Those that are too small compared with the largest are left out. It panics
// where a coordinate of x is not finite.
func shrunk(x Vector, weights []float64) Vector {
	x = x.checked()
	largest := math.MinInt
	for k, term := range x.Terms {
		if w := weighted(x.Values[k], weights, term); w.frac != 0 {
			largest = max(largest, w.exp)
		}
	}
	return x.mapped(func(term int32, v float64) float64 {
		w := weighted(v, weights, term)
		if w.frac == 0 {
			return 0
		}
		return math.Ldexp(w.frac, w.exp-largest-headroom)
	})
}

func weighted(v float64, weights []float64, term int32) wide {
	if weights == nil {
		return newWide(v, 0)
	}
	return newWide(v, 0).times(newWide(weights[term], 0))
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
	var sum wide
	for k, i := range x.Terms {
		if v := y.At(i); v != 0 {
			sum = sum.plus(weighted(x.Values[k], weights, i).times(weighted(v, weights, i)))
		}
	}
	return sum
}

func wideNorm(x Vector, weights []float64) wide { return wideDot(x, x, weights).root() }

// wideInner returns ⟨x, y⟩. It panics where a coordinate is not finite.
func (sp *Space) wideInner(x, y Vector) wide {
	sum := wideDot(x, y, sp.weights) // s_ii = 1
	for k, i := range x.Terms {
		var row wide
		cols, sims := sp.s.Row(int(i))
		for l, j := range cols {
			if v := y.At(j); v != 0 {
				row = row.plus(weighted(v, sp.weights, j).times(newWide(sims[l], 0)))
			}
		}
		sum = sum.plus(weighted(x.Values[k], sp.weights, i).times(row))
	}
	return sum
}

// wideSoftNorm is [Space.SoftNorm] without its range.
func (sp *Space) wideSoftNorm(x Vector) (wide, error) {
	square := sp.wideInner(x, x)
	rounding := wideDot(x, x, sp.weights).times(newWide(roundingShare, 0))
	switch {
	case square.frac >= 0:
		return square.root(), nil
	case square.plus(rounding).frac >= 0:
		return wide{}, nil
	default:
		return wide{}, fmt.Errorf("%w: %.4g", ErrNotReal, square.float())
	}
}

// inRange returns what a is, or an error that wraps [ErrRange].
func inRange(what string, a float64) (float64, error) {
	if !finite(a) {
		return 0, fmt.Errorf("%s is %w", what, ErrRange)
	}
	return a, nil
}
