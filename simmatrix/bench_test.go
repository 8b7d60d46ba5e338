package simmatrix

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkFromCorpus learns from 12,000 documents of 100 words. It reports the
// size of the vocabulary and the largest heap seen.
func BenchmarkFromCorpus(b *testing.B) {
	c := corpusOf(zipfDocuments(12_000, 100, 20_000)...)
	for b.Loop() {
		stop := make(chan struct{})
		var largest atomic.Uint64
		go watchHeap(&largest, stop)
		m, err := FromCorpus(b.Context(), c, DefaultCorpusOptions(), nil)
		close(stop)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(m.Len()), "terms")
		b.ReportMetric(float64(largest.Load())/(1<<20), "MB-peak")
	}
}

func watchHeap(largest *atomic.Uint64, stop <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			largest.Store(max(largest.Load(), stats.HeapInuse))
		}
	}
}

// BenchmarkNearest compares all pairs of vectors of 200 dimensions.
func BenchmarkNearest(b *testing.B) {
	for _, rows := range []int{2_000, 10_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 1))
			t := &vectorTable{rows: rows, dim: 200, values: make([]float32, rows*200)}
			wide := make([]float64, t.dim)
			for i := range t.rows {
				for k := range wide {
					wide[k] = random.NormFloat64() + 0.3
				}
				scaleTo(t.row(i), wide, 1)
			}
			for b.Loop() {
				if _, err := t.nearest(b.Context(), nearestOptions{neighbors: 200, power: 3}, newStage(nil, "", 0)); err != nil {
					b.Fatal(err)
				}
			}
			pairs := float64(rows) * float64(rows) * float64(b.N)
			b.ReportMetric(pairs*2*float64(t.dim)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

// benchMatrix has rows of 200 neighbors.
func benchMatrix(b *testing.B, terms int) *Matrix {
	b.Helper()
	rows := make([]TermRow, terms)
	for i := range rows {
		rows[i].Term, rows[i].DocFreq = fmt.Sprintf("term%06d", i), uint32(i)
	}
	for i := range rows {
		for k := 1; k <= 200; k++ {
			rows[i].Neighbors = append(rows[i].Neighbors, Neighbor{Term: rows[(i+k)%terms].Term, Similarity: 1 / float32(k)})
		}
	}
	return mustNew(b, Meta{}, rows)
}

// BenchmarkRowAll iterates over a row of 200 neighbors.
func BenchmarkRowAll(b *testing.B) {
	row := benchMatrix(b, 1000).Row("term000500")
	b.ReportAllocs()
	var docs uint64
	for b.Loop() {
		for n := range row.All() {
			docs += uint64(n.DocFreq)
		}
	}
}

// BenchmarkMatrixRow looks a term up and packs its row of 200 neighbors.
func BenchmarkMatrixRow(b *testing.B) {
	m := benchMatrix(b, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if m.Row("term000500").IsZero() {
			b.Fatal("no row")
		}
	}
}

// BenchmarkDecode reads a matrix of 10,000 rows of 200 neighbors.
func BenchmarkDecode(b *testing.B) {
	file := encoded(b, benchMatrix(b, 10_000))
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(bytes.NewReader(file)); err != nil {
			b.Fatal(err)
		}
	}
}
