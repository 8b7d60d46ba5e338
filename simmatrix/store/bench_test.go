package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// randomMatrix returns a matrix of n terms of nine bytes with 100 neighbors
// each, of random similarities.
func randomMatrix(tb testing.TB, n int) (m *simmatrix.Matrix, terms []string) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]simmatrix.TermRow, n)
	for i := range rows {
		terms = append(terms, fmt.Sprintf("%03x%06d", rng.IntN(1<<12), i))
		rows[i] = simmatrix.TermRow{Term: terms[i], DocFreq: uint32(1 + rng.IntN(5000))}
	}
	for i := range rows {
		for k := range 100 {
			near := simmatrix.Neighbor{Term: terms[(i+1+k*37)%n], Similarity: float32(1+rng.IntN(1000)) / 1000}
			rows[i].Neighbors = append(rows[i].Neighbors, near)
		}
	}
	return check.Got(simmatrix.New(simmatrix.Meta{Source: "benchmark", Docs: 100_000}, rows))(tb), terms
}

// BenchmarkFourTerms looks up the rows of four terms in the cache, and without
// it in Redis, over a socket and over TCP.
func BenchmarkFourTerms(b *testing.B) {
	r := startOnPort(b)
	m, terms := randomMatrix(b, 20_000)
	publishMatrix(b, r.admin(b), m)
	for _, from := range []struct {
		name string
		o    Options
	}{
		{"cache", Options{Files: map[string]Loader{"main": InMemory(m)}, CacheBytes: 64 << 20}},
		{"socket", Options{Redis: r.at(), RedisTimeout: time.Second}},
		{"TCP", Options{Redis: Redis{URL: "redis://" + r.addr()}, RedisTimeout: time.Second}},
	} {
		b.Run(from.name, func(b *testing.B) {
			s := open(b, from.o)
			waitFor(b, "the version", func() bool { return served(s) != "" })
			known := terms
			if from.o.CacheBytes > 0 {
				known = terms[:1000]
			}
			rows := make([]simmatrix.Row, 4)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				k := i * 4 % len(known)
				start := time.Now()
				check.OK(b, s.Pin().For("i", "f").Rows(b.Context(), known[k:k+4], rows))
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
		})
	}
}

// BenchmarkSearchesOverManyTerms looks up four of 100,000 terms, as frequent as
// they are by Zipf's law, with the cache that a matrix has by default.
func BenchmarkSearchesOverManyTerms(b *testing.B) {
	s, _ := wideStore(b, 64<<20)
	zipf := rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 1, distinctTerms-1)
	rows, terms := make([]simmatrix.Row, 4), make([]string, 4)
	for b.Loop() {
		for k := range terms {
			terms[k] = term(int(zipf.Uint64()))
		}
		check.OK(b, s.Pin().For("i", "f").Rows(b.Context(), terms, rows))
	}
	stats := s.Stats().Cache
	b.ReportMetric(float64(stats.Hits)/float64(stats.Hits+stats.Misses), "hits/look-up")
}

// BenchmarkPush pushes and activates 14,100,000 neighbors, of 141,000 terms, to
// a Redis on a socket, and pulls them again.
func BenchmarkPush(b *testing.B) {
	m, _ := randomMatrix(b, 141_000)
	_, a, c := setup(b)
	used := func() (bytes float64) {
		for line := range strings.Lines(c.Info(b.Context(), "memory").Val()) {
			fmt.Sscanf(line, "used_memory:%g", &bytes)
		}
		return bytes
	}
	var push, pull time.Duration
	var took float64
	for b.Loop() {
		check.OK(b, c.FlushAll(b.Context()).Err())
		before, start := used(), time.Now()
		publishMatrix(b, a, m)
		push += time.Since(start)
		took = used() - before
		start = time.Now()
		_, _, err := a.Pull(b.Context(), "main", "", nil)
		check.OK(b, err)
		pull += time.Since(start)
	}
	b.ReportMetric(push.Seconds()/float64(b.N), "s-pushing")
	b.ReportMetric(pull.Seconds()/float64(b.N), "s-pulling")
	b.ReportMetric(took/float64(m.Meta().NonZeros), "B/neighbor")
}
