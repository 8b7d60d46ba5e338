package softcosine

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/akin-search/akin/e2e/check"
)

// plenty is more than a small matrix needs.
var plenty = Limits{Entries: 1 << 20, Products: 1 << 30}

func mustBasis(tb testing.TB, sp *Space) *Basis {
	tb.Helper()
	return check.Got(NewBasis(tb.Context(), sp, plenty))(tb)
}

// definiteSpace returns a space whose S is positive definite, with negative
// entries: symmetric and dominant.
func definiteSpace(tb testing.TB, rng *rand.Rand) *Space {
	tb.Helper()
	return randomSpace(tb, rng, form{symmetric: true, negative: true, dominant: true})
}

func TestBasisMakesDotProductsOfInnerProducts(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := definiteSpace(t, rng)
		b := mustBasis(t, sp)
		x, y := randomDocument(rng, sp.Len()), randomDocument(rng, sp.Len())
		u, v := b.Map(x), b.Map(y)
		got, want := u.Dot(v), byDefinition(sp, x, y)
		check.That(t, near(got, want, 1e-12), "Φ₁(x)ᵀΦ₁(y) = %v, inner product %v", got, want)
		got, want = quotient(u.Dot(v), u.Norm(), v.Norm()), softByDefinition(sp, x, y)
		check.That(t, near(got, want, 1e-12), "cosine %v, soft cosine %v", got, want)
	})
}

// permuted returns PᵀSP for the first terms of an order.
func permuted(tb testing.TB, s *Similarities, order []int32) *Similarities {
	tb.Helper()
	entries := map[[2]int32]float64{}
	for k, i := range order {
		for l, j := range order {
			if k != l && s.At(int(i), int(j)) != 0 {
				entries[[2]int32{int32(k), int32(l)}] = s.At(int(i), int(j))
			}
		}
	}
	return mustSimilarities(tb, len(order), entries)
}

func orderOf(tb testing.TB, s *Similarities) []int32 {
	tb.Helper()
	return check.Got(minimumDegree(tb.Context(), s, plenty))(tb)
}

// E·Eᵀ = S, and F of E = P·F is the lower triangular factor of PᵀSP with a
// positive diagonal, of which there is only one (the notes, theorem 3.2): gonum
// makes the same.
func TestBasisIsTheFactorOfS(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := definiteSpace(t, rng)
		b, order := mustBasis(t, sp), orderOf(t, sp.s)
		f := check.Got(DenseBasis(permuted(t, sp.s, order)))(t)
		var square mat.Dense
		square.Mul(f, f.T())
		for k, i := range order {
			for l, j := range order {
				want := sp.s.At(int(i), int(j))
				got := b.Row(i).Dot(b.Row(j))
				check.That(t, near(got, want, 1e-12), "row %d of E times row %d is %v, s = %v", i, j, got, want)
				check.That(t, near(square.At(k, l), want, 1e-12), "dense: %v, s = %v", square.At(k, l), want)
				check.That(t, near(b.Row(i).At(int32(l)), f.At(k, l), 1e-12), "F(%d, %d) is %v, dense %v", k, l, b.Row(i).At(int32(l)), f.At(k, l))
			}
		}
	})
}

// The papers print EWx; with S = EEᵀ the coordinates are EᵀWx.
func TestBasisTakesTheTransposeOfE(t *testing.T) {
	s := mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: 0.5, {1, 0}: 0.5})
	e := check.Got(DenseBasis(s))(t)
	check.That(t, e.At(0, 0) == 1 && e.At(1, 0) == 0.5 && near(e.At(1, 1), math.Sqrt(0.75), 1e-15), "E is %v", mat.Formatted(e))
	product := func(change mat.Matrix) float64 {
		var a, b mat.VecDense
		a.MulVec(change, mat.NewVecDense(2, []float64{1, 0}))
		b.MulVec(change, mat.NewVecDense(2, []float64{0, 1}))
		return mat.Dot(&a, &b)
	}
	check.That(t, near(product(e.T()), 0.5, 1e-15), "(Eᵀx)ᵀ(Eᵀy) = %v, want s = 0.5", product(e.T()))
	check.That(t, near(product(e), 0.5*math.Sqrt(0.75), 1e-15), "(Ex)ᵀ(Ey) = %v, want ½·√¾, which is not s", product(e))
}

// The failing term is the first in the order with which the leading part of
// PᵀSP is not positive definite.
func TestBasisNamesTheTermWhereSFails(t *testing.T) {
	failed := 0
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: true, negative: rng.IntN(2) == 0})
		order := orderOf(t, sp.s)
		var pivot *PivotError
		_, err := NewBasis(t.Context(), sp, plenty)
		if !errors.As(err, &pivot) {
			check.OK(t, err)
			check.OK(t, check.ErrOf(DenseBasis(sp.s)))
			return
		}
		failed++
		check.That(t, errors.Is(err, ErrNotDefinite) && pivot.Pivot < 0 && order[pivot.Done] == pivot.Term, "%v, the order is %v", err, order)
		check.OK(t, check.ErrOf(DenseBasis(permuted(t, sp.s, order[:pivot.Done]))))
		check.Error(t, ErrNotDefinite, check.ErrOf(DenseBasis(permuted(t, sp.s, order[:pivot.Done+1]))))
	})
	check.That(t, failed > propertyCases/10 && failed < propertyCases*9/10, "%d of %d matrices are not definite", failed, propertyCases)
}

func TestBasisRefusesWhatHasNone(t *testing.T) {
	both := func(pairs map[[2]int32]float64) map[[2]int32]float64 {
		all := map[[2]int32]float64{}
		for at, sim := range pairs {
			all[at], all[[2]int32{at[1], at[0]}] = sim, sim
		}
		return all
	}
	turn := func(degrees float64) float64 { return math.Cos(degrees * math.Pi / 180) }
	for name, c := range map[string]struct {
		s     map[[2]int32]float64
		terms []int32 // that it may fail at; none if it is not symmetric
		want  string
	}{
		"two synonyms":         {both(map[[2]int32]float64{{1, 2}: 1}), []int32{1, 2}, "(pivot 0)"},
		"opposites":            {both(map[[2]int32]float64{{0, 2}: -1}), []int32{0, 2}, "not positive definite"},
		"three in a plane":     {both(map[[2]int32]float64{{0, 1}: turn(37), {1, 2}: turn(23), {0, 2}: turn(60)}), []int32{0, 1, 2}, "not positive definite"},
		"above 1":              {both(map[[2]int32]float64{{1, 4}: 1.5}), []int32{1, 4}, "(pivot -1.25)"},
		"no triangle":          {both(map[[2]int32]float64{{0, 1}: 0.9, {1, 2}: 0.9}), []int32{0, 1, 2}, "not positive definite"},
		"one way":              {map[[2]int32]float64{{0, 1}: 0.5}, nil, "s(0, 1) = 0.5 and s(1, 0) = 0"},
		"one way, below":       {map[[2]int32]float64{{2, 1}: 0.5}, nil, "s(2, 1) = 0.5 and s(1, 2) = 0"},
		"not as much back":     {map[[2]int32]float64{{0, 1}: 0.5, {1, 0}: 0.25}, nil, "s(0, 1) = 0.5 and s(1, 0) = 0.25"},
		"asymmetric, singular": {map[[2]int32]float64{{0, 1}: 1}, nil, "s(0, 1) = 1 and s(1, 0) = 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustSimilarities(t, 5, c.s)
			_, err := NewBasis(t.Context(), mustSpace(t, ones(5), s), plenty)
			var pivot *PivotError
			switch {
			case c.terms == nil:
				check.Error(t, ErrNotSymmetric, err)
				check.Error(t, ErrNotSymmetric, check.ErrOf(DenseBasis(s)))
			case !errors.As(err, &pivot) || !slices.Contains(c.terms, pivot.Term):
				t.Errorf("error %v, want a pivot of %v", err, c.terms)
			}
			check.That(t, strings.Contains(err.Error(), c.want), "error %v, want one with %q", err, c.want)
		})
	}
}

// A row of zeros beside s_ii, and no terms at all.
func TestBasisOfTermsThatAreLikeNoOther(t *testing.T) {
	s := mustSimilarities(t, 3, map[[2]int32]float64{{0, 2}: 0.5, {2, 0}: 0.5})
	sp := mustSpace(t, []float64{1, 4, 1}, s)
	b := mustBasis(t, sp)
	check.Equal(t, 4, b.NonZeros())
	check.Equal(t, Vector{Terms: []int32{b.places[1]}, Values: []float64{8}}, b.Map(NewVector(map[int32]float64{1: 2})))
	none := mustBasis(t, mustSpace(t, nil, Identity(0)))
	check.That(t, none.NonZeros() == 0 && none.Map(Vector{}).Len() == 0, "the basis of no terms")
	check.OK(t, check.ErrOf(DenseBasis(Identity(0))))
}

// A limit that is one too low is said, with how far the factor came; a matrix
// that fails before is found out all the same.
func TestBasisKeepsItsLimits(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		sp := randomSpace(t, rng, form{symmetric: true, dominant: true})
		need := mustBasis(t, sp).NonZeros() // sums of positive products are not 0
		check.OK(t, check.ErrOf(NewBasis(t.Context(), sp, Limits{Entries: need, Products: plenty.Products})))
		var limit *LimitError
		_, err := NewBasis(t.Context(), sp, Limits{Entries: need - 1, Products: plenty.Products})
		check.That(t, errors.As(err, &limit) && errors.Is(err, ErrTooLarge) && limit.Done < limit.Terms && limit.Terms == sp.Len(), "error %v", err)
	})
	chain := map[[2]int32]float64{} // 0 – 1 – 2 – … , and 8 = 9
	for i := range int32(9) {
		chain[[2]int32{i, i + 1}], chain[[2]int32{i + 1, i}] = 0.25, 0.25
	}
	sp := mustSpace(t, ones(10), mustSimilarities(t, 10, chain))
	check.Error(t, ErrTooLarge, check.ErrOf(NewBasis(t.Context(), sp, Limits{Entries: 6, Products: 100})))
	ring := chain
	ring[[2]int32{0, 9}], ring[[2]int32{9, 0}] = 0.25, 0.25
	sp = mustSpace(t, ones(10), mustSimilarities(t, 10, ring))
	check.Error(t, ErrTooLarge, check.ErrOf(NewBasis(t.Context(), sp, Limits{Entries: 100, Products: 1})))
	ring[[2]int32{8, 9}], ring[[2]int32{9, 8}] = 1, 1
	sp = mustSpace(t, ones(10), mustSimilarities(t, 10, ring))
	check.Error(t, ErrNotDefinite, check.ErrOf(NewBasis(t.Context(), sp, Limits{Entries: 28, Products: 100})))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Error(t, context.Canceled, check.ErrOf(NewBasis(ctx, sp, plenty)))
}

// An order has every term once. It makes no entry of a tree that S has not, and
// few in a grid: by number it would be 30 a term.
func TestMinimumDegreeFillsInLittle(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		n := 1 + rng.IntN(40)
		s := randomSimilarities(t, rng, n, form{symmetric: true})
		order := orderOf(t, s)
		slices.Sort(order)
		for i, term := range order {
			check.Must(t, int(term) == i && len(order) == n, "order %v", order)
		}
		tree := map[[2]int32]float64{}
		for i := 1; i < n; i++ {
			parent, child := int32(rng.IntN(i)), int32(i)
			tree[[2]int32{parent, child}], tree[[2]int32{child, parent}] = 0.5/float64(n), 0.5/float64(n)
		}
		b := mustBasis(t, mustSpace(t, ones(n), mustSimilarities(t, n, tree)))
		check.Equal(t, 2*n-1, b.NonZeros())
	})
	const side = 30
	grid := map[[2]int32]float64{}
	for i := range int32(side * side) {
		for _, j := range []int32{i + side, i + 1} {
			if j < side*side && (j == i+side || j%side > 0) {
				grid[[2]int32{i, j}], grid[[2]int32{j, i}] = 0.2, 0.2
			}
		}
	}
	b := mustBasis(t, mustSpace(t, ones(side*side), mustSimilarities(t, side*side, grid)))
	check.That(t, b.NonZeros() < 12*side*side, "%d entries", b.NonZeros())
}
