package searches

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// The bounds of Space-Saving: of N searches in n places, no count is N/n too
// small, and no weight N/n too large.
func TestCountsAreTooSmallByNoMoreThanTheBound(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 58))
		places, total := 5+int(seed), int64(0)
		s, exact := newSketch(places), map[key]int64{}
		zipf := rand.NewZipf(random, 1.1, 1, 1000)
		for range 20_000 {
			k := key{text: strconv.FormatUint(zipf.Uint64(), 10)}
			n := 1 + random.Int64N(3)
			s.add(k, random.IntN(3), Found(random.IntN(int(Enough))), n)
			exact[k] += n
			total += n
		}
		bound := total / int64(places)
		check.That(t, len(s.at) <= places && len(s.order) == len(s.at), "%d and %d of %d places", len(s.at), len(s.order), places)
		for k, n := range exact {
			counted, weight := int64(0), s.order[0].weight // of what is not kept at most
			if c := s.at[k]; c != nil {
				counted, weight = c.days.weight(), c.weight
			}
			check.That(t, counted <= n && n-counted <= bound, "seed %d: %d of %d were counted, the bound is %d", seed, counted, n, bound)
			check.That(t, n <= weight && weight-n <= bound, "seed %d: the weight of %d is %d, the bound is %d", seed, n, weight, bound)
		}
	}
}

func TestDaysAreForgotten(t *testing.T) {
	s := newSketch(3)
	s.add(key{text: "old"}, 1, None, 9)
	s.add(key{text: "both"}, 1, Few, 5)
	s.add(key{text: "both"}, 2, Enough, 2)
	s.add(key{text: "new"}, 2, Related, 1)
	s.forget(2)
	check.Equal(t, 2, len(s.at))
	check.Equal(t, byDay{{2, counts{Enough: 2}}}, s.at[key{text: "both"}].days, cmpAll)
	check.Equal(t, "both", s.order[0].key.text, "nothing that finds little is left of it")
}

// BenchmarkDistinctTexts counts 2,000,000 different texts, and says how much
// memory that takes.
func BenchmarkDistinctTexts(b *testing.B) {
	const texts = 2_000_000
	c := check.Got(Open(b.Context(), Options{Keep: 30}))(b)
	defer c.Close()
	text := make([]string, texts)
	for i := range text {
		text[i] = fmt.Sprintf("what people type, %d", i*7919%texts)
	}
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before, i := heap(), 0
	for b.Loop() {
		c.Add("shop", "title,body", text[i%texts], None)
		i++
	}
	for ; i < texts; i++ {
		c.Add("shop", "title,body", text[i%texts], None)
	}
	b.ReportMetric((heap()-before)/(1<<20), "MB")
	runtime.KeepAlive(text)
	check.Equal(b, maxPlaces, len(c.sketch.at))
}
