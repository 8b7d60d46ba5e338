package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
	m, err := simmatrix.New(simmatrix.Meta{Source: "benchmark", Docs: 100_000}, rows)
	check.OK(tb, err)
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

// BenchmarkFourTermsFromRedis reports the median of a look-up without cache,
// over a unix socket and over TCP.
func BenchmarkFourTermsFromRedis(b *testing.B) {
	r := startOnPort(b)
	m, terms := realistic(b, 20_000)
	publishMatrix(b, r.admin(b), m)
	for name, at := range map[string]Redis{"unix": r.at(), "TCP": {URL: "redis://" + r.addr()}} {
		b.Run(name, func(b *testing.B) {
			s := open(b, Options{Redis: at, RedisTimeout: time.Second})
			waitFor(b, 10*time.Second, "the version", func() bool { return served(s) != "" })
			v := s.Pin().For("i", "f").version
			rng := rand.New(rand.NewPCG(3, 4))
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				k := rng.IntN(len(terms) - 4)
				start := time.Now()
				if _, err := s.remote.read(b.Context(), v, terms[k:k+4]); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			b.ReportMetric(quantile(took, 0.5), "p50-µs")
			b.ReportMetric(quantile(took, 0.99), "p99-µs")
		})
	}
}

// BenchmarkPush reports rows a second and what a row of 100 neighbors takes
// in Redis, and how fast all are pulled again. Terms and similarities are
// random, which nothing makes small.
func BenchmarkPush(b *testing.B) {
	m, _ := realistic(b, 200_000)
	_, a, c := setup(b)
	used := func() (bytes float64) {
		for line := range strings.Lines(c.Info(b.Context(), "memory").Val()) {
			fmt.Sscanf(line, "used_memory:%g", &bytes)
		}
		return bytes
	}
	n := float64(m.Len())
	var pushing, pulling time.Duration
	var perRow float64
	for b.Loop() {
		c.FlushAll(b.Context())
		before := used()
		start := time.Now()
		publishMatrix(b, a, m)
		pushing += time.Since(start)
		perRow = (used() - before) / n
		start = time.Now()
		if _, _, err := a.Pull(b.Context(), "main", "", nil); err != nil {
			b.Fatal(err)
		}
		pulling += time.Since(start)
	}
	b.ReportMetric(float64(b.N)*n/pushing.Seconds(), "rows-pushed/s")
	b.ReportMetric(float64(b.N)*n/pulling.Seconds(), "rows-pulled/s")
	b.ReportMetric(perRow, "B/row-in-Redis")
}

// quantile returns the q-quantile in microseconds.
func quantile(took []time.Duration, q float64) float64 {
	slices.Sort(took)
	return float64(took[int(q*float64(len(took)-1))]) / float64(time.Microsecond)
}
