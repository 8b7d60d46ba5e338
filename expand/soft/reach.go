package soft

import (
	"math/bits"
	"slices"
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

// lacking returns the terms whose rows are needed, ascending: those of the
// text, of hits whose Wy is not known, and of hits whose rows nobody has looked
// into for the terms of the text.
func (c *column) lacking() []int32 {
	var all, needed termSet
	for _, term := range c.query {
		needed.add(term)
	}
	c.weighted = make([]*weighted, len(c.vectors))
	for k, v := range c.vectors {
		if known := v.weighted.Load(); known != nil && known.space == c.space {
			c.weighted[k] = known
		}
		for _, term := range v.terms {
			if all.add(term); c.weighted[k] == nil {
				needed.add(term)
			}
		}
	}
	for _, r := range c.reaches {
		r.mu.Lock()
		needed.addMissing(all, r.seen)
		r.mu.Unlock()
	}
	return needed.terms()
}

// extend looks for the terms of the text in the rows, and sets their columns.
func (c *column) extend(m *store) {
	var text termSet // a small thing to look into for each neighbor
	for _, term := range c.query {
		text.add(term)
	}
	found := make([][]near, len(c.query))
	for k, r := range c.rows {
		for n, term := range r.terms {
			if text.has(term) {
				i := slices.Index(c.query, term)
				found[i] = append(found[i], near{c.terms[k], r.sims[n]})
			}
		}
	}
	c.columns = make([][]near, len(c.query))
	for i, r := range c.reaches {
		var grew bool
		if c.columns[i], grew = r.extend(c.terms, found[i]); grew {
			m.reaches.Put(rowKey{c.space, c.query[i]}, r, nil, 0) // it weighs more
		}
	}
}
