package soft

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/akin-search/akin/expand"
)

// window100 returns a search of 8 terms with 100 hits of 100 terms each, out
// of 20,000 terms with 200 neighbors each, frequent ones more often than
// rare ones.
func window100(tb testing.TB) (*Reranker, []expand.RerankField, []expand.Hit) {
	tb.Helper()
	const vocabulary, neighbors, length, k = 20_000, 200, 100, 100
	rng := rand.New(rand.NewPCG(6, 2))
	m := &fakeMatrix{version: "m@1", docs: 100_000}
	zipf := rand.NewZipf(rng, 1.1, 50, vocabulary-1)
	for i := range vocabulary {
		row := map[string]float64{}
		for len(row) < neighbors {
			row[term(rng.IntN(vocabulary))] = 0.1 + 0.9*rng.Float64()
		}
		m.set(tb, term(i), uint32(1+rng.IntN(10_000)), row)
	}
	v := &fakeVectors{docs: map[docName]map[string]map[string]int64{}}
	var hits []expand.Hit
	for h := range k {
		doc := map[string]int64{}
		for len(doc) < length {
			doc[term(int(zipf.Uint64()))]++
		}
		id := strconv.Itoa(h)
		v.docs[docName{"i", id}] = map[string]map[string]int64{"body": doc}
		hits = append(hits, expand.Hit{Index: "i", ID: id, SeqNo: int64(h), PrimaryTerm: 1, Version: 1})
	}
	f := expand.RerankField{Field: "body", Boost: 1, Similarities: m}
	for i := range 8 {
		f.Terms, f.Freqs = append(f.Terms, term(i*10)), append(f.Freqs, 1)
	}
	r := New(Options{Vectors: v, Bytes: 256 << 20, TTL: time.Hour})
	tb.Cleanup(r.Close)
	return r, []expand.RerankField{f}, hits
}

// BenchmarkRerank scores a window of 100 hits of 100 terms, with rows of 200
// neighbors: warm with the norms of the documents remembered, with sums besides
// over the 8 words and 20 terms near each, and without the norms.
func BenchmarkRerank(b *testing.B) {
	r, fields, hits := window100(b)
	sum := expand.SumField{Boost: 1}
	for i, text := range fields[0].Terms {
		word := expand.SumWord{Weight: 1 + float64(i), Terms: []string{text}, Boosts: []float64{1}}
		for k := range 20 {
			word.Terms, word.Boosts = append(word.Terms, term(1000+20*i+k)), append(word.Boosts, 0.25)
		}
		sum.Words = append(sum.Words, word)
	}
	summed := &expand.Rerank{Fields: fields, Sums: []expand.Sum{{Fields: []expand.SumField{sum}}}}
	score := func(b *testing.B, by *expand.Rerank) {
		b.Helper()
		if _, err := r.Scores(b.Context(), by, hits); err != nil {
			b.Fatal(err)
		}
	}
	score(b, summed)
	for name, by := range map[string]*expand.Rerank{"warm": by(fields), "sums": summed} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				score(b, by)
			}
		})
	}
	b.Run("norms", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			forgetSquares(r, fields, hits)
			b.StartTimer()
			score(b, by(fields))
		}
	})
}
