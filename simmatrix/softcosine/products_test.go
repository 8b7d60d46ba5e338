package softcosine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

var normalizations = []Normalization{None, Hard, Soft, Cosine}

// allProducts returns (WX)ᵀ·S·(WY), normalized by n (the notes, remark to theorem
// 3.4), in sparse rows: out[i].At(k) is that of x[i] and y[k]. Time and errors
// are those of [Collection.Products].
func allProducts(sp *Space, x, y []Vector, n Normalization) ([]Vector, error) {
	c := NewCollection(sp, y)
	out := make([]Vector, len(x))
	for i := range x {
		row, err := c.Products(x[i], n)
		if err != nil {
			return nil, fmt.Errorf("row %d of the products: %w", i, err)
		}
		out[i] = row
	}
	return out, nil
}

// pairwise returns what the space computes for the pair.
func pairwise(t *testing.T, sp *Space, x, y Vector, n Normalization) float64 {
	t.Helper()
	switch n {
	case Hard:
		return sp.Hard(x, y)
	case Soft:
		soft, err := sp.Soft(x, y)
		if err != nil {
			t.Fatal(err)
		}
		return soft
	case Cosine:
		return sp.Cosine(x, y)
	default:
		return sp.InnerProduct(x, y)
	}
}

func TestProductsAreThoseOfThePairs(t *testing.T) {
	eachCase(t, func(t *testing.T, rng *rand.Rand) {
		t.Helper()
		f := form{symmetric: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			f = form{symmetric: true, negative: true, dominant: true}
		}
		sp := randomSpace(t, rng, f)
		x, y := randomDocuments(rng, sp.Len(), rng.IntN(4)), randomDocuments(rng, sp.Len(), rng.IntN(5))
		for _, n := range normalizations {
			products, err := allProducts(sp, x, y, n)
			if err != nil || len(products) != len(x) {
				t.Fatalf("%v: %d rows, %v", n, len(products), err)
			}
			for i := range x {
				for k := range y {
					want := pairwise(t, sp, x[i], y[k], n)
					if got := products[i].At(int32(k)); !near(got, want, 1e-12) {
						t.Errorf("%v, documents %d and %d: %v, want %v", n, i, k, got, want)
					}
				}
				for _, v := range products[i].Values {
					if v == 0 {
						t.Errorf("%v: a 0 is stored in %v", n, products[i])
					}
				}
			}
		}
	})
}

func TestProductsAreTheMatrixProduct(t *testing.T) {
	// (WX)ᵀ·S·(WY) by dense matrices, as the remark to theorem 3.4 writes it.
	rng := rand.New(rand.NewPCG(5, 6))
	sp := mustSpace(t, []float64{1, 2, 0.5, 3, 1, 1}, randomSimilarities(t, rng, 6, form{}))
	x, y := randomDocuments(rng, 6, 5), randomDocuments(rng, 6, 7)
	weighted := func(docs []Vector) *mat.Dense {
		m := mat.NewDense(6, len(docs), nil)
		for k, d := range docs {
			for i := range int32(6) {
				m.Set(int(i), k, sp.Weight(i)*d.At(i))
			}
		}
		return m
	}
	s := mat.NewDense(6, 6, nil)
	s.Apply(func(i, j int, _ float64) float64 { return sp.s.At(i, j) }, s)
	var want mat.Dense
	want.Product(weighted(x).T(), s, weighted(y))
	got, err := allProducts(sp, x, y, None)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		for k := range y {
			if !near(got[i].At(int32(k)), want.At(i, k), 1e-12) {
				t.Errorf("(%d, %d): %v, want %v", i, k, got[i].At(int32(k)), want.At(i, k))
			}
		}
	}
}

func TestProductsNameTheDocumentWhoseNormIsNotReal(t *testing.T) {
	sp := mustSpace(t, ones(2), mustSimilarities(t, 2, map[[2]int32]float64{{0, 1}: -2, {1, 0}: -2}))
	bad, good := NewVector(map[int32]float64{0: 1, 1: 1}), NewVector(map[int32]float64{0: 1})
	for want, docs := range map[string][2][]Vector{
		"row 1": {{good, bad}, {good}}, "document 2": {{good}, {good, good, bad}},
	} {
		_, err := allProducts(sp, docs[0], docs[1], Soft)
		if !errors.Is(err, ErrNotReal) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if _, err := allProducts(sp, docs[0], docs[1], Hard); err != nil {
			t.Errorf("hard: %v", err)
		}
	}
}

func TestACollectionIsUsedAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	sp := randomSpace(t, rng, form{})
	docs := randomDocuments(rng, sp.Len(), 40)
	c := NewCollection(sp, docs)
	for range 3 {
		for _, n := range normalizations {
			got, err := c.Products(docs[1], n)
			if err != nil {
				t.Fatal(err)
			}
			for k, y := range docs {
				if want := pairwise(t, sp, docs[1], y, n); !near(got.At(int32(k)), want, 1e-12) {
					t.Errorf("%v, document %d: %v, want %v", n, k, got.At(int32(k)), want)
				}
			}
		}
	}
}

func TestAnUnknownNormalizationPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_, _ = NewCollection(mustSpace(t, nil, Identity(0)), nil).Products(Vector{}, Normalization(9))
}
