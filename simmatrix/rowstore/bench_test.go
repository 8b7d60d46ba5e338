package rowstore

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
	if err != nil {
		tb.Fatal(err)
	}
	return m, terms
}

func BenchmarkFourTermsFromCache(b *testing.B) {
	m, terms := realistic(b, 1000)
	s := open(b, Options{Files: map[string]Loader{"main": InMemory(m)}, CacheBytes: 64 << 20})
	rows := make([]simmatrix.Row, 4)
	lookUp := func(i int) {
		k := i * 4 % (len(terms) - 4)
		if err := s.Pin().For("shop-1", "title").Rows(b.Context(), terms[k:k+4], rows); err != nil {
			b.Fatal(err)
		}
	}
	for i := range terms {
		lookUp(i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		lookUp(i)
		i++
	}
}

func BenchmarkFourTermsFromMemory(b *testing.B) {
	m, terms := realistic(b, 1000)
	s := open(b, Options{Files: map[string]Loader{"main": InMemory(m)}})
	v := s.Pin().For("i", "f").version
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		k := i * 4 % (len(terms) - 4)
		if _, err := v.fetch(b.Context(), terms[k:k+4]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkFourTermsFromRedis reports the median of a look-up without cache.
func BenchmarkFourTermsFromRedis(b *testing.B) {
	r := startRedis(b)
	m, terms := realistic(b, 20_000)
	publish(b, r.admin(b), m)
	s := open(b, Options{RedisURL: r.url(), RedisTimeout: time.Second})
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
}

// BenchmarkPush reports rows a second and what a row of 100 neighbors takes
// in Redis.
func BenchmarkPush(b *testing.B) {
	r := startRedis(b)
	const n = 50_000
	m, _ := realistic(b, n)
	a, c := r.admin(b), r.client(b)
	used := func() float64 {
		var bytes float64
		for line := range strings.Lines(c.Info(b.Context(), "memory").Val()) {
			fmt.Sscanf(line, "used_memory:%g", &bytes)
		}
		return bytes
	}
	packed := 0
	for _, row := range m.Rows() {
		packed += len(row.Packed())
	}
	var elapsed time.Duration
	var perRow float64
	for b.Loop() {
		c.FlushAll(b.Context())
		before := used()
		start := time.Now()
		publish(b, a, m)
		elapsed += time.Since(start)
		perRow = (used() - before) / n
	}
	b.ReportMetric(float64(b.N)*n/elapsed.Seconds(), "rows/s")
	b.ReportMetric(perRow, "B/row-in-Redis")
	b.ReportMetric(float64(packed)/n, "B/row-packed")
}

// BenchmarkCacheEntry reports what an entry takes beside its strings, which
// entryBytes states.
func BenchmarkCacheEntry(b *testing.B) {
	const n = 100_000
	row, err := simmatrix.PackRow(1, []simmatrix.Neighbor{{Term: "abcdefgh", Similarity: 1}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := newCache(1 << 40)
		if err != nil {
			b.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		strs := 0
		for i := range n {
			packed, err := simmatrix.ParseRow(strings.Clone(row.Packed()))
			if err != nil {
				b.Fatal(err)
			}
			c.add("main@1", []string{term(i)}, []simmatrix.Row{packed})
			strs += len(term(i)) + len(row.Packed())
		}
		c.rows.CleanUp()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc)-float64(strs))/n, "B/entry")
		runtime.KeepAlive(c)
		c.close()
	}
}

// quantile returns the q-quantile in microseconds.
func quantile(took []time.Duration, q float64) float64 {
	slices.Sort(took)
	return float64(took[int(q*float64(len(took)-1))]) / float64(time.Microsecond)
}
