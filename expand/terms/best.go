package terms

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strings"
)

// A table finds candidates by term, at half the cost of a map.
type table struct {
	slots []int // 0 is free, k+1 is candidate k
	seed  maphash.Seed
}

func (t *table) reset(n int) {
	size := 1
	for size < 2*n {
		size *= 2
	}
	if cap(t.slots) >= size {
		t.slots = t.slots[:size]
		clear(t.slots)
		return
	}
	t.slots, t.seed = make([]int, size), maphash.MakeSeed()
}

// slot returns the slot of term, which is free if candidates lacks it.
func (t *table) slot(term string, candidates []Candidate) *int {
	mask := uint64(max(len(t.slots)-1, 0))
	for at := maphash.String(t.seed, term) & mask; ; at = (at + 1) & mask {
		if k := t.slots[at]; k == 0 || candidates[k-1].Term == term {
			return &t.slots[at]
		}
	}
}

// KeepBest keeps the n candidates with the largest V > 0, by descending V, ties
// by term; replacements of unknown words come first.
func (sel *Selection) KeepBest(n int) {
	ranks := sel.ranks[:0]
	for k := range sel.Candidates {
		v := sel.Candidates[k].V
		if v > 0 && sel.Candidates[k].Near {
			v = math.Inf(1)
		}
		if v > 0 {
			ranks = append(ranks, rank{v, k})
		}
	}
	sel.ranks = ranks
	if n < len(ranks) {
		sel.partition(ranks, n)
		ranks = ranks[:n]
	}
	slices.SortFunc(ranks, sel.compare)
	kept := sel.kept[:0]
	for _, r := range ranks {
		kept = append(kept, sel.Candidates[r.candidate])
	}
	sel.Candidates, sel.kept = kept, sel.Candidates
}

// keepEach is KeepBest, with [Selection.PerWord] for at most each of an
// origin's candidates: first the best of each origin, then the second best,
// and so on.
func (sel *Selection) keepEach(n, each int) {
	if sel.PerWord == 0 {
		sel.KeepBest(n)
		return
	}
	sel.KeepBest(len(sel.Candidates))
	seen := make([]int, len(sel.Origins))
	for k := range sel.Candidates {
		c := &sel.Candidates[k]
		c.better = seen[c.Origin]
		seen[c.Origin]++
	}
	slices.SortStableFunc(sel.Candidates, func(a, b Candidate) int { return cmp.Compare(a.better, b.better) })
	sel.Candidates = slices.DeleteFunc(sel.Candidates[:min(n, len(sel.Candidates))], func(c Candidate) bool { return c.better >= each })
	sel.KeepBest(n) // by descending V again
}

// A rank is a candidate's place in the order, small enough to sort.
type rank struct {
	v         float64
	candidate int
}

func (sel *Selection) compare(a, b rank) int {
	switch {
	case a.v > b.v:
		return -1
	case a.v < b.v:
		return 1
	}
	return strings.Compare(sel.Candidates[a.candidate].Term, sel.Candidates[b.candidate].Term)
}

// partition moves the n first of r to the front (quickselect; the order is
// total, so the set is unique).
func (sel *Selection) partition(r []rank, n int) {
	for lo, hi := 0, len(r)-1; lo < hi; {
		pivot := r[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for sel.compare(r[i], pivot) < 0 {
				i++
			}
			for sel.compare(r[j], pivot) > 0 {
				j--
			}
			if i <= j {
				r[i], r[j] = r[j], r[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return
		}
	}
}

// Share divides total fairly among users that can use sizes: all get the same,
// and what one does not need goes to the others. Those who can use more than
// quota get quota, and the first rest of them one more. It sorts sizes.
func Share(sizes []int, total int) (quota, rest int) {
	slices.Sort(sizes)
	quota = total
	for i, n := range sizes {
		waiting := len(sizes) - i
		if quota = total / waiting; n > quota {
			return quota, total % waiting
		}
		total -= n
	}
	return quota, 0
}
