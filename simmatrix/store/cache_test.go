package store

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/simmatrix"
)

// distinctTerms is the vocabulary of the searches below.
const distinctTerms = 100_000

// wideRow returns the row of term i: about 100 neighbors of the names, in a
// string of its own.
func wideRow(tb testing.TB, i int, names []string) simmatrix.Row {
	tb.Helper()
	neighbors := make([]simmatrix.Neighbor, 80+i%40)
	for k := range neighbors {
		neighbors[k] = simmatrix.Neighbor{Term: names[(i*7+k*131)%len(names)], Similarity: 1 / float32(k+1), DocFreq: uint32(k)}
	}
	return check.Got(simmatrix.PackRow(uint32(i), neighbors))(tb)
}

// wideStore returns a store whose rows are made when they are fetched, and the
// number of those.
func wideStore(tb testing.TB, cacheBytes uint64) (*Store, *atomic.Int64) {
	tb.Helper()
	s := open(tb, Options{Files: map[string]Loader{"main": InMemory(newMatrix(tb, "one", 1))}, CacheBytes: cacheBytes})
	fetches := new(atomic.Int64)
	names := make([]string, 5000)
	for i := range names {
		names[i] = term(i)
	}
	v := s.Pin().For("i", "f").version
	v.row = func(t string) simmatrix.Row {
		fetches.Add(1)
		return wideRow(tb, check.Got(strconv.Atoi(t[1:]))(tb), names)
	}
	return s, fetches
}

// heap returns the bytes of all objects that are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestCacheIsBoundedInRealMemory looks up 100,000 distinct terms, which take
// some 110 MB, in parts of larger texts, as searches have them.
func TestCacheIsBoundedInRealMemory(t *testing.T) {
	const bound = 16 << 20
	s, fetches := wideStore(t, bound)
	before := heap()
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]simmatrix.Row, 4)
	for first := 0; first < distinctTerms; first += len(rows) {
		query := strings.Repeat(" ", 200)
		terms := make([]string, len(rows))
		for k := range terms {
			query += term(first+k) + " "
			terms[k] = query[len(query)-1-len(term(first+k)) : len(query)-1]
		}
		check.OK(t, s.Pin().For("i", "f").Rows(t.Context(), terms, rows))
		check.Must(t, rows[3].DocFreq() == uint32(first+3), "row %d has document frequency %d", first+3, rows[3].DocFreq())
		if i := rng.IntN(first + 1); i%3 == 0 { // some again
			check.OK(t, s.Pin().For("i", "f").Rows(t.Context(), []string{term(i)}, rows[:1]))
		}
	}
	stated, inUse := s.Stats().Cache.Bytes, heap()-before
	check.That(t, stated <= bound && stated >= bound*9/10, "%d bytes stated, want at most %d and about that", stated, bound)
	// The library's tables grow in powers of two, and the Go runtime rounds up.
	check.That(t, inUse <= bound*5/4, "%d bytes of heap, want at most a quarter over %d", inUse, bound)
	n := fetches.Load()
	check.That(t, n >= distinctTerms, "%d fetches", n)
	t.Logf("%d bytes stated, %d in use, %.2f of the bound", stated, inUse, float64(inUse)/bound)
	runtime.KeepAlive(s)
}
