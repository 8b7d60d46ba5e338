package learn

import (
	"hash/maphash"
	"math/bits"
)

// What many documents share word for word, such as a license, a signature or
// the terms of a shop, says no more about its words than one document does.
const (
	passageTerms = 8  // a shared passage has at least as many terms
	manyTimes    = 10 // and occurs more often
)

type passage [passageTerms]int32

// withoutCopies returns a sequence, in its memory, without the copies of
// passages that occur more than manyTimes: the first of each stays, and a gap
// is left of the others.
func withoutCopies(sequence []int32) []int32 {
	// Passages are counted by hash first, so that only few need a count of their
	// own.
	seed, byHash := maphash.MakeSeed(), make([]uint8, 1<<bits.Len(uint(len(sequence))))
	count := func(p passage) *uint8 { return &byHash[maphash.Comparable(seed, p)%uint64(len(byHash))] }
	eachPassage(sequence, func(_ int, p passage) {
		if n := count(p); *n <= manyTimes {
			*n++
		}
	})
	times := map[passage]int{}
	eachPassage(sequence, func(_ int, p passage) {
		if *count(p) > manyTimes {
			times[p]++
		}
	})
	seen := map[passage]bool{}
	copies := make([]bool, len(sequence))
	eachPassage(sequence, func(from int, p passage) {
		if times[p] <= manyTimes {
			return
		}
		for k := range passageTerms {
			copies[from+k] = copies[from+k] || seen[p]
		}
		seen[p] = true
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

// eachPassage calls f for each passage, with its place in the sequence.
func eachPassage(sequence []int32, f func(from int, p passage)) {
	terms := 0
	for end, id := range sequence {
		terms++
		if id < 0 {
			terms = 0
		}
		if terms >= passageTerms {
			from := end + 1 - passageTerms
			f(from, passage(sequence[from:]))
		}
	}
}
