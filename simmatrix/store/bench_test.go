package store

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// realistic returns a matrix of n terms with 100 neighbors each. The terms have
// 7 letters on average, as stemmed English has that occurs in 3 documents.
func realistic(tb testing.TB, n int) (*simmatrix.Matrix, []string) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]simmatrix.TermRow, n)
	terms := make([]string, n)
	for i := range rows {
		word := make([]byte, 3+rng.IntN(7))
		for k := range word {
			word[k] = byte('a' + rng.IntN(26))
		}
		terms[i] = string(word) + strconv.FormatInt(int64(i), 36)[:1]
		rows[i] = simmatrix.TermRow{DocFreq: uint32(1 + rng.IntN(5000))}
	}
	seen := make(map[string]bool, n)
	for i := range terms {
		for seen[terms[i]] {
			terms[i] += "x"
		}
		seen[terms[i]] = true
		rows[i].Term = terms[i]
	}
	for i := range rows {
		start := rng.IntN(n)
		for k := range 100 {
			if j := (start + k*37) % n; j != i {
				rows[i].Neighbors = append(rows[i].Neighbors, simmatrix.Neighbor{Term: terms[j], Similarity: float32(1+rng.IntN(1000)) / 1000})
			}
		}
	}
	m := check.Got(simmatrix.New(simmatrix.Meta{Source: "benchmark", Docs: 100_000}, rows))(tb)
	return m, terms
}

func BenchmarkFourTermsFromCache(b *testing.B) {
	m, terms := realistic(b, 1000)
	s := open(b, Options{Files: map[string]Loader{"main": InMemory(m)}, CacheBytes: 64 << 20})
	rows := make([]simmatrix.Row, 4)
	lookUp := func(i int) {
		k := i * 4 % (len(terms) - 4)
		check.OK(b, s.Pin().For("shop-1", "title").Rows(b.Context(), terms[k:k+4], rows))
	}
	for i := range terms {
		lookUp(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		lookUp(i)
	}
}
