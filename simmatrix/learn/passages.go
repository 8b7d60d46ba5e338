package learn

import "math/bits"

// What many documents share word for word, such as a license, a signature or
// the terms of a shop, says no more about its words than one document does.
const (
	passageTerms = 8  // a shared passage has at least as many terms
	manyTimes    = 10 // and occurs more often
)

// withoutCopies returns a sequence, in its memory, without the copies of
// passages that occur more than manyTimes: the first of each stays, and a gap
// is left of the others.
func withoutCopies(sequence []int32) []int32 {
	// Only passages that share their place in a table with many are counted by
	// themselves.
	table := make([]uint8, 1<<bits.Len(uint(len(sequence))))
	eachPassage(sequence, func(_ int, hash uint64) {
		if count := &table[hash%uint64(len(table))]; *count <= manyTimes {
			*count++
		}
	})
	times := map[uint64]int{}
	eachPassage(sequence, func(_ int, hash uint64) {
		if table[hash%uint64(len(table))] > manyTimes {
			times[hash]++
		}
	})
	const seen = -1
	copies := make([]bool, len(sequence))
	eachPassage(sequence, func(from int, hash uint64) {
		switch n := times[hash]; {
		case n == seen:
			for k := range passageTerms {
				copies[from+k] = true
			}
		case n > manyTimes:
			times[hash] = seen
		}
	})
	kept := sequence[:0]
	for p, id := range sequence {
		switch {
		case !copies[p]:
			kept = append(kept, id)
		case kept[len(kept)-1] >= 0:
			kept = append(kept, endOfText)
		}
	}
	return kept
}

// eachPassage calls f for each passage of passageTerms terms.
func eachPassage(sequence []int32, f func(from int, hash uint64)) {
	terms := 0
	for p, id := range sequence {
		if terms++; id < 0 {
			terms = 0
		}
		if terms >= passageTerms {
			from := p + 1 - passageTerms
			hash := uint64(0)
			for _, term := range sequence[from : p+1] {
				hash = (hash ^ uint64(term)) * 0x9E3779B97F4A7C15 //nolint:gosec // not negative
				hash ^= hash >> 32
			}
			f(from, hash)
		}
	}
}
