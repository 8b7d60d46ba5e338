package softcosine

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigPrecision is enough for sums of few numbers that are not negative.
const bigPrecision = 200

func newBig(v float64) *big.Float { return new(big.Float).SetPrec(bigPrecision).SetFloat64(v) }

// bigProduct returns the product of the pair by the definition, without a
// range. Nothing may be negative.
func bigProduct(sp *Space, x, y Vector, n Normalization) float64 {
	dot := func(x, y Vector, similar bool) *big.Float {
		sum := newBig(0)
		for k, i := range x.Terms {
			for l, j := range y.Terms {
				factors := []float64{sp.Weight(i), x.Values[k], sp.Weight(j), y.Values[l]}
				if similar {
					factors = append(factors, sp.s.At(int(i), int(j)))
				} else if i != j {
					continue
				}
				product := newBig(1)
				for _, factor := range factors {
					product.Mul(product, newBig(factor))
				}
				sum.Add(sum, product)
			}
		}
		return sum
	}
	product := dot(x, y, n != Cosine)
	if n != None {
		norms := newBig(1)
		for _, v := range []Vector{x, y} {
			norms.Mul(norms, new(big.Float).Sqrt(dot(v, v, n == Soft)))
		}
		if norms.Sign() == 0 {
			return 0
		}
		product.Quo(product, norms)
	}
	out, _ := product.Float64()
	return out
}

// checkProducts compares the products of all pairs, one by one and of whole
// collections, with the definition. Nothing may be negative.
func checkProducts(t *testing.T, sp *Space, x, y []Vector) {
	t.Helper()
	for _, n := range normalizations {
		products, err := allProducts(sp, x, y, n)
		beyond := false
		for i := range x {
			for k := range y {
				want := bigProduct(sp, x[i], y[k], n)
				got, pairErr := sp.pair(x[i], y[k], n)
				if math.IsInf(want, 0) {
					beyond = true
					if !errors.Is(pairErr, ErrRange) {
						t.Errorf("%v of %v and %v: %v, %v; want an error of the range", n, x[i], y[k], got, pairErr)
					}
					continue
				}
				if pairErr != nil || !near(got, want, 1e-12) {
					t.Errorf("%v of %v and %v: %v, %v; want %v", n, x[i], y[k], got, pairErr, want)
				}
				if err == nil && !near(products[i].At(int32(k)), want, 1e-12) {
					t.Errorf("%v of %v and %v: %v in a collection, want %v", n, x[i], y[k], products[i].At(int32(k)), want)
				}
			}
		}
		if beyond != errors.Is(err, ErrRange) || beyond == (err == nil) {
			t.Errorf("%v: error %v, out of range %v", n, err, beyond)
		}
	}
}

// anyFinite returns a positive number of any size.
func anyFinite(rng *rand.Rand) float64 {
	return math.Ldexp(0.5+rng.Float64()/2, rng.IntN(2098)-1073)
}

func TestTheLengthOfAVectorDoesNotMatter(t *testing.T) {
	one := NewVector(map[int32]float64{0: 1, 1: 1e-200})
	sp := mustSpace(t, ones(2), Identity(2))
	for name, x := range map[string]Vector{
		"large":      NewVector(map[int32]float64{0: 1e200, 1: 1}),
		"largest":    NewVector(map[int32]float64{0: math.MaxFloat64, 1: 1}),
		"small":      NewVector(map[int32]float64{0: 1e-200}),
		"smallest":   NewVector(map[int32]float64{0: math.SmallestNonzeroFloat64}),
		"both sizes": NewVector(map[int32]float64{0: 1e200, 1: 1e-200}),
	} {
		for _, y := range []Vector{one, x} {
			soft, err := sp.Soft(x, y)
			for what, got := range map[string]float64{"soft": soft, "hard": sp.Hard(x, y), "cosine": sp.Cosine(x, y)} {
				if err != nil || !near(got, 1, 1e-15) {
					t.Errorf("%s: %s of %v and %v is %v, %v; want 1", name, what, x, y, got, err)
				}
			}
		}
		checkProducts(t, sp, []Vector{x, one, {}}, []Vector{one, x, {}})
		document, err := sp.DotDocument(x)
		if err != nil || !near(document.At(0), 1, 1e-15) {
			t.Errorf("%s: DotDocument %v, %v", name, document, err)
		}
		document, err = sp.CosineDocument(x)
		if err != nil || !near(document.At(0), 1, 1e-15) {
			t.Errorf("%s: CosineDocument %v, %v", name, document, err)
		}
		if query := sp.CosineQuery(x); !near(query.At(0), 1, 1e-15) {
			t.Errorf("%s: CosineQuery %v", name, query)
		}
		if norm := x.Norm(); norm != x.At(0) || sp.HardNorm(x) != norm {
			t.Errorf("%s: norms %v and %v, want %v", name, norm, sp.HardNorm(x), x.At(0))
		}
		pairs, err := NewPhi2(sp)
		if err != nil || !near(pairs.Cosine(x, one), 1, 1e-15) {
			t.Errorf("%s: cosine of pairs %v, %v", name, pairs.Cosine(x, one), err)
		}
	}
}

// Weights, similarities, and coordinates of any size that a float64 has, all
// in one vector.
func TestProductsOfNumbersOfAnySizeAreTheDefinition(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		n := 1 + rng.IntN(4)
		weights, entries := make([]float64, n), map[[2]int32]float64{}
		for i := range weights {
			weights[i] = 1
			if rng.IntN(2) == 0 {
				weights[i] = anyFinite(rng)
			}
			if j := int32(rng.IntN(n)); int(j) != i {
				entries[[2]int32{int32(i), j}] = 1 / (1 + anyFinite(rng))
			}
		}
		sp := mustSpace(t, weights, mustSimilarities(t, n, entries))
		docs := make([]Vector, 3)
		for k := range docs {
			values := map[int32]float64{}
			for range rng.IntN(n + 1) {
				values[int32(rng.IntN(n))] = anyFinite(rng)
			}
			docs[k] = NewVector(values)
		}
		for _, normalization := range normalizations[1:] {
			products, err := allProducts(sp, docs, docs, normalization)
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range docs {
				for k, y := range docs {
					got, err := sp.pair(x, y, normalization)
					if want := bigProduct(sp, x, y, normalization); err != nil || !near(got, want, 1e-12) || !near(products[i].At(int32(k)), want, 1e-12) {
						t.Errorf("%v of %v and %v: %v, %v and in a collection %v; want %v", normalization, x, y, got, err, products[i].At(int32(k)), want)
					}
				}
			}
		}
	})
}

// Signs cancel, so that no more is known than that there is no NaN.
func TestNothingIsNaN(t *testing.T) {
	number := func(what string, v float64, err error) {
		t.Helper()
		if math.IsNaN(v) {
			t.Errorf("%s: NaN, %v", what, err)
		}
	}
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		const n = 3
		signed := func() float64 {
			return anyFinite(rng) * float64(1-2*rng.IntN(2))
		}
		entries := map[[2]int32]float64{}
		for range rng.IntN(4) {
			if i, j := int32(rng.IntN(n)), int32(rng.IntN(n)); i != j {
				entries[[2]int32{i, j}] = signed()
			}
		}
		weights := []float64{anyFinite(rng), 1, anyFinite(rng)}
		sp := mustSpace(t, weights, mustSimilarities(t, n, entries))
		x, y := NewVector(map[int32]float64{0: signed(), 1: signed()}), NewVector(map[int32]float64{0: signed(), 1: signed(), 2: signed()})
		soft, err := sp.Soft(x, y)
		number("soft", soft, err)
		norm, err := sp.SoftNorm(x)
		number("soft norm", norm, err)
		number("hard", sp.Hard(x, y), nil)
		number("cosine", sp.Cosine(x, y), nil)
		number("inner product", sp.InnerProduct(x, y), nil)
		number("norm", sp.HardNorm(y), nil)
		number("dot", x.Dot(y), nil)
		for _, normalization := range normalizations {
			products, err := allProducts(sp, []Vector{x, y}, []Vector{y, x}, normalization)
			for _, row := range products {
				for _, v := range row.Values {
					if !finite(v) {
						t.Errorf("%v: %v, %v", normalization, row, err)
					}
				}
			}
		}
		vector, err := sp.DotDocument(x)
		for _, v := range append(vector.Values, sp.CosineQuery(x).Values...) {
			if !finite(v) {
				t.Errorf("a store gets %v, %v", v, err)
			}
		}
	})
}

func TestInnerProductsBeyondTheRangeAreInfinite(t *testing.T) {
	sp := mustSpace(t, ones(2), mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: -1, {1, 0}: -1}))
	x, y := NewVector(map[int32]float64{0: 1e200, 1: 1e200}), NewVector(map[int32]float64{0: 1e200})
	if got := sp.InnerProduct(y, y); !math.IsInf(got, 1) {
		t.Errorf("1e400 is %v", got)
	}
	if got := sp.InnerProduct(x, x); got != 0 { // 1e400 - 1e400, twice
		t.Errorf("what cancels is %v", got)
	}
	if norm, err := sp.SoftNorm(x); norm != 0 || err != nil {
		t.Errorf("its norm is %v, %v", norm, err)
	}
	if _, err := allProducts(sp, []Vector{y}, []Vector{{}, y}, None); !errors.Is(err, ErrRange) {
		t.Errorf("in a collection: %v", err)
	}
	far := mustSpace(t, []float64{math.MaxFloat64}, Identity(1))
	if norm, err := far.SoftNorm(NewVector(map[int32]float64{0: 2})); norm != 0 || !errors.Is(err, ErrRange) {
		t.Errorf("a norm above the range: %v, %v", norm, err)
	}
	large := NewVector(map[int32]float64{0: math.MaxFloat64, 1: math.MaxFloat64})
	if !math.IsInf(large.Norm(), 1) || !math.IsInf(sp.HardNorm(large), 1) || !math.IsInf(large.Dot(large), 1) {
		t.Errorf("norms %v and %v, dot product %v", large.Norm(), sp.HardNorm(large), large.Dot(large))
	}
	if got := large.Dot(NewVector(map[int32]float64{0: 2, 1: -2})); got != 0 {
		t.Errorf("a dot product that cancels is %v", got)
	}
}

func TestVectorsThatWouldNotBeFinitePanic(t *testing.T) {
	s := mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: 0.5, {1, 0}: 0.5})
	sp := mustSpace(t, []float64{1e200, 1}, s)
	x, unit := NewVector(map[int32]float64{0: 1e200, 1: 1}), NewVector(map[int32]float64{0: 1})
	bad := Vector{Terms: []int32{0}, Values: []float64{math.NaN()}}
	infinite := Vector{Terms: []int32{0}, Values: []float64{math.Inf(1)}}
	basis, err := NewBasis(sp, MinimumDegree, 0)
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := NewPhi2(sp)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(){
		"Weighted":           func() { sp.Weighted(x) },
		"DotQuery":           func() { sp.DotQuery(x) },
		"Expand":             func() { sp.Expand(x) },
		"Map":                func() { pairs.Map(x) },
		"Coordinates":        func() { basis.Coordinates(x) },
		"Dot of NaN":         func() { bad.Dot(x) },
		"Norm of NaN":        func() { bad.Norm() },
		"product of NaN":     func() { sp.InnerProduct(bad, unit) },
		"hard of infinity":   func() { sp.Hard(unit, infinite) },
		"soft of NaN":        func() { _, _ = sp.Soft(unit, bad) },
		"cosine of infinity": func() { sp.Cosine(infinite, infinite) },
		"a row of NaN":       func() { _, _ = allProducts(sp, []Vector{bad}, []Vector{unit}, Hard) },
		"a column of NaN":    func() { _, _ = allProducts(sp, []Vector{unit}, []Vector{bad}, None) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != panicFinite {
					t.Errorf("recovered %v", got)
				}
			}()
			call()
		})
	}
}

func TestWeightingsRefuseWhatIsNotFinite(t *testing.T) {
	st := &Frequencies{Docs: 1000, DocFreqs: []int64{1, 1}, MeanTerms: math.MaxFloat64, MeanBytes: math.SmallestNonzeroFloat64, Slope: 1}
	large := NewVector(map[int32]float64{0: math.MaxFloat64, 1: math.MaxFloat64})
	for _, letters := range []string{"nfn", "nfc", "Lnn", "nnc", "nnu", "nnb"} {
		w, _, err := ParseSMARTPair(letters)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := w.Apply(large, 100, st); !errors.Is(err, ErrWeighting) || v.Len() != 0 {
			t.Errorf("%s: %v, %v", letters, v, err)
		}
	}
}
