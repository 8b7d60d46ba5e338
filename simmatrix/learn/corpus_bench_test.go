package learn

import (
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/simmatrix"
)

// zipfVaried returns documents as zipfDocuments does, of shortest to longest
// words.
func zipfVaried(docs, shortest, longest, words int) [][]string {
	out := zipfDocuments(docs, longest, words)
	for d := range out {
		out[d] = out[d][:shortest+d%(longest-shortest+1)]
	}
	return out
}

// BenchmarkFromCorpus100k learns from 100,000 documents of 10 to 40 words. It
// reports the size of the vocabulary and the largest heap seen.
func BenchmarkFromCorpus100k(b *testing.B) {
	c := corpusOf(zipfVaried(100_000, 10, 40, 60_000)...)
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

// BenchmarkGram multiplies the co-occurrences of 20,000 documents by 120
// directions and back.
func BenchmarkGram(b *testing.B) {
	v := vocabularyOf(b, corpusOf(zipfVaried(20_000, 10, 40, 60_000)...), 3)
	o := DefaultCorpusOptions()
	s, err := v.ppmi(b.Context(), &o, 1<<40, simmatrix.NewStage(nil, "", 0))
	if err != nil {
		b.Fatal(err)
	}
	nonZeros := 0
	for _, block := range s.blocks {
		nonZeros += len(block.index)
	}
	in, out := newDense(s.cols, 120), newDense(s.cols, 120)
	for i := range in.Data {
		in.Data[i] = 1
	}
	for b.Loop() {
		if err := s.gram(b.Context(), out, in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(nonZeros)*4*120*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
