package soft

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A reach is the column of a term of texts in S, as far as the rows of the
// hits' terms have been looked into. Without it each search would look for its
// few terms in the rows of all terms of its hits: in thousands of rows.
type reach struct {
	bytes atomic.Int64

	mu     sync.Mutex
	seen   termSet // the terms whose rows were looked into
	column []near  // only grows
}

// A near is a term j with s_ij or s_ji.
type near struct {
	term int32
	sim  float32
}

const nearBytes = 12 // some room is empty

// extend adds what was found of the column in the rows of terms, and returns
// the column.
func (r *reach) extend(terms []int32, found []near) (column []near, grew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range found {
		if !r.seen.has(n.term) {
			r.column = append(r.column, n)
		}
	}
	for _, term := range terms {
		grew = r.seen.add(term) || grew
	}
	r.bytes.Store(int64(8*len(r.seen) + nearBytes*len(r.column)))
	return r.column, grew
}

// A termSet has a bit for the number of each term in it.
type termSet []uint64

func (s *termSet) add(term int32) (added bool) {
	at, bit := int(term/64), uint64(1)<<(term%64)
	if at >= len(*s) {
		*s = append(*s, make(termSet, at+1-len(*s))...)
	}
	added = (*s)[at]&bit == 0
	(*s)[at] |= bit
	return added
}

func (s *termSet) has(term int32) bool {
	at := int(term / 64)
	return at < len(*s) && (*s)[at]&(1<<(term%64)) != 0
}

// addMissing adds the terms of all that are not in seen.
func (s *termSet) addMissing(all, seen termSet) {
	*s = append(*s, make(termSet, max(len(all)-len(*s), 0))...)
	for i, word := range all {
		if i < len(seen) {
			word &^= seen[i]
		}
		(*s)[i] |= word
	}
}

// terms returns the terms, ascending.
func (s *termSet) terms() (terms []int32) {
	for i, word := range *s {
		for ; word != 0; word &= word - 1 {
			terms = append(terms, int32(i*64+bits.TrailingZeros64(word))) //nolint:gosec // it was one
		}
	}
	return terms
}
