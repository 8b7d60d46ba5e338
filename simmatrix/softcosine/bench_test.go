package softcosine

import (
	"math/rand/v2"
	"testing"
)

// benchSpace returns a space of n terms with c neighbors each and documents of m
// terms, enough of them that their rows of S come from memory in turn.
func benchSpace(b *testing.B, n, c, m int) (sp *Space, docs []Vector) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	s, err := NewSimilarities(n, func(yield func([2]int32, float64) bool) {
		for i := range n {
			for j := range different(rng, n, c, i) {
				if !yield([2]int32{int32(i), j}, rng.Float64()) {
					return
				}
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1 + rng.Float64()
	}
	if sp, err = NewSpace(weights, s); err != nil {
		b.Fatal(err)
	}
	document := func() Vector {
		values := make(map[int32]float64, m)
		for i := range different(rng, n, m, -1) {
			values[i] = float64(1 + rng.IntN(3))
		}
		return NewVector(values)
	}
	for range 64 {
		docs = append(docs, document())
	}
	return sp, docs
}

// different returns count different terms of n, none of which is but.
func different(rng *rand.Rand, n, count, but int) map[int32]bool {
	terms := make(map[int32]bool, count)
	for len(terms) < count {
		if i := rng.IntN(n); i != but {
			terms[int32(i)] = true
		}
	}
	return terms
}

// BenchmarkInnerProduct is of pairs of documents of 100 terms in a space of 20,000
// terms with 100 neighbors each: algorithm 1 of the notes, and for comparison the
// sum over all pairs of terms of two documents.
func BenchmarkInnerProduct(b *testing.B) {
	sp, docs := benchSpace(b, 20_000, 100, 100)
	var sink float64
	b.Run("algorithm 1", func(b *testing.B) {
		b.ReportAllocs()
		for k := 0; b.Loop(); k++ {
			sink += sp.InnerProduct(docs[k%len(docs)], docs[(k+1)%len(docs)])
		}
	})
	b.Run("double loop", func(b *testing.B) {
		b.ReportAllocs()
		for k := 0; b.Loop(); k++ {
			sink += doubleLoop(sp, docs[k%len(docs)], docs[(k+1)%len(docs)])
		}
	})
	if sink == 0 {
		b.Fatal("the products are 0")
	}
}

// doubleLoop returns ⟨x, y⟩ as lemma 3.3 of the notes sums it up.
func doubleLoop(sp *Space, x, y Vector) float64 {
	sum := 0.0
	for k, i := range x.Terms {
		for l, j := range y.Terms {
			sum += sp.Weight(i) * x.Values[k] * sp.s.At(int(i), int(j)) * sp.Weight(j) * y.Values[l]
		}
	}
	return sum
}
