package source

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// spellings returns n made-up words like those of an index of English text
// in length and in how many others are near one: stems of syllables, which
// share endings and beginnings, inflected forms of them, and misspellings.
func spellings(n int) []string {
	random := rand.New(rand.NewPCG(11, 12))
	pick := func(from []string) string { // the first ones often
		x := random.Float64()
		return from[int(x*x*float64(len(from)))]
	}
	onsets := []string{"", "s", "c", "t", "p", "r", "m", "d", "b", "l", "f", "st", "h", "tr", "n", "pr", "v", "ch", "g", "w", "sh", "gr", "br", "qu", "k", "th", "sp", "j", "y", "z"}
	vowels := []string{"e", "a", "i", "o", "u", "ea", "io", "ou", "ai", "y", "ee", "oo"}
	codas := []string{"", "", "n", "r", "s", "l", "t", "m", "nt", "d", "c", "ck", "ng", "p", "ll", "st", "x"}
	endings := []string{"s", "ed", "ing", "er", "ly", "al", "ness", "able", "ism", "'s"}
	words, seen := make([]string, 0, n), map[string]bool{}
	for len(words) < n {
		var word string
		switch kind := random.IntN(10); {
		case kind < 5 || len(words) < 10:
			var b strings.Builder
			for range 1 + random.IntN(4) {
				b.WriteString(pick(onsets) + pick(vowels) + pick(codas))
			}
			word = b.String()
		case kind < 8:
			word = words[random.IntN(len(words))] + pick(endings)
		default:
			word = misspelled(random, words[random.IntN(len(words))])
		}
		if len(word) > 1 && len(word) < 20 && !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// misspelled returns the word with one or two letters wrong.
func misspelled(random *rand.Rand, word string) string {
	letters := []byte(word)
	for range 1 + random.IntN(2) {
		at, letter := random.IntN(len(letters)), byte('a'+random.IntN(26))
		switch random.IntN(4) {
		case 0:
			letters[at] = letter
		case 1:
			letters = slices.Insert(letters, at, letter)
		case 2:
			if len(letters) > 2 {
				letters = slices.Delete(letters, at, at+1)
			}
		default:
			next := (at + 1) % len(letters)
			letters[at], letters[next] = letters[next], letters[at]
		}
	}
	return string(letters)
}

// BenchmarkEditDistance100k builds the matrix of 100,000 words by the default
// settings, which are C = 100 and a distance of at most 2. all-pairs/tree is
// how many times longer the comparison of a row with all words takes that have
// an allowed length, by the bit-parallel algorithm of Myers, on one processor
// in the same run.
func BenchmarkEditDistance100k(b *testing.B) {
	const sample = 300
	words := spellings(100_000)
	terms := textTerms(words...)
	o := DefaultSpellingOptions()
	for b.Loop() {
		stop := make(chan struct{})
		var largest atomic.Uint64
		go watchHeap(&largest, stop)
		m, err := FromSpelling(b.Context(), terms, o, nil)
		close(stop)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(largest.Load())/(1<<20), "MB-peak")
		b.ReportMetric(float64(m.Meta().NonZeros)/float64(m.Len()), "neighbors/term")
	}
	slices.Sort(words)
	s := newEditSearcher(newTermTree(words), &o)
	start, found := time.Now(), 0
	for i := range sample {
		found += len(s.find(i * len(words) / sample))
	}
	tree := time.Since(start)
	start, seen := time.Now(), 0
	for i := range sample {
		seen += allWithin(words[i*len(words)/sample], words, &o)
	}
	pairs := time.Since(start)
	if seen < found {
		b.Fatalf("%d pairs of %d", seen, found)
	}
	b.ReportMetric(float64(pairs)/float64(tree), "all-pairs/tree")
	b.ReportMetric(float64(tree.Microseconds())/sample, "µs/term")
}

// allWithin returns how many words are neighbors of query, by comparing all
// whose length is allowed with the algorithm of Myers (1999, "A fast
// bit-vector algorithm for approximate string matching") in the form of Hyyrö
// (2003) for whole words of up to 64 bytes.
func allWithin(query string, words []string, o *SpellingOptions) int {
	var places [256]uint64
	for i := range len(query) {
		places[query[i]] |= 1 << i
	}
	last := uint64(1) << (len(query) - 1)
	count := 0
	for _, w := range words {
		shorter, longer := min(len(w), len(query)), max(len(w), len(query))
		if longer-shorter > o.MaxDistance || !o.near(longer, shorter) || w == query {
			continue
		}
		plus, minus, d := ^uint64(0), uint64(0), len(query)
		for i := range len(w) {
			same := places[w[i]]
			diagonal := (((same & plus) + plus) ^ plus) | same | minus
			rises, falls := minus|^(diagonal|plus), diagonal&plus
			if rises&last != 0 {
				d++
			}
			if falls&last != 0 {
				d--
			}
			rises = rises<<1 | 1
			plus, minus = falls<<1|^(diagonal|rises), rises&diagonal
		}
		if d <= o.MaxDistance && o.units(d, longer) > 0 {
			count++
		}
	}
	return count
}

// BenchmarkEditDistanceDense builds matrices of 100,000 terms of which very
// many are near each other, so that they cannot all be looked at.
func BenchmarkEditDistanceDense(b *testing.B) {
	for name, words := range denseVocabularies(100_000) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustEdit(b, DefaultSpellingOptions(), words...)
			}
		})
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
