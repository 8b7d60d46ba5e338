package learn

import (
	"sync/atomic"
	"testing"
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

// BenchmarkFromCorpus reports the size of the vocabulary and the largest heap
// seen.
func BenchmarkFromCorpus(b *testing.B) {
	for name, docs := range map[string][][]string{
		"12,000 documents of 100 words":       zipfDocuments(12_000, 100, 20_000),
		"100,000 documents of 10 to 40 words": zipfVaried(100_000, 10, 40, 60_000),
	} {
		b.Run(name, func(b *testing.B) {
			c := corpusOf(docs...)
			for b.Loop() {
				stop := make(chan struct{})
				var largest atomic.Uint64
				go watchHeap(&largest, stop)
				m := mustLearn(b, c, DefaultCorpusOptions())
				close(stop)
				b.ReportMetric(float64(m.Len()), "terms")
				b.ReportMetric(float64(largest.Load())/(1<<20), "MB-peak")
			}
		})
	}
}
