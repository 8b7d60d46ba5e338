package softcosine

import "slices"

// ReverseCuthillMcKee is an [Ordering] that keeps entries near the diagonal: it
// walks breadth first from a term at the rim, neighbors of fewer neighbors
// first, and turns the walk round (Cuthill and McKee, 1969; George, 1971). It
// is for terms that form a line, in a sense, more than a ball, or where some
// have tens of thousands of neighbors that have others.
func ReverseCuthillMcKee(s *Similarities) []int32 {
	w := &walk{s: s, level: make([]int32, s.Len()), degrees: make([]int, s.Len())}
	for i := range w.level {
		w.level[i] = unseen
		w.degrees[i] = degree(s, int32(i))
	}
	order := make([]int32, 0, s.Len())
	for i := range w.level {
		if w.level[i] == unseen {
			order = append(order, w.from(w.rim(int32(i)))...)
		}
	}
	slices.Reverse(order)
	return order
}

// unseen is the level of terms that a walk has not come to.
const unseen = -1

// A walk goes breadth first over the terms.
type walk struct {
	s       *Similarities
	level   []int32 // steps from the start of the last walk that came here
	degrees []int
	queue   []int32
}

// from walks from a term and returns the terms in the order of the walk, valid
// until the next: each is followed by its new neighbors, by degree and number.
func (w *walk) from(start int32) []int32 {
	w.queue = append(w.queue[:0], start)
	w.level[start] = 0
	for head := 0; head < len(w.queue); head++ {
		i, first := w.queue[head], len(w.queue)
		cols, _ := w.s.Row(int(i))
		for _, j := range cols {
			if w.level[j] == unseen {
				w.level[j] = w.level[i] + 1
				w.queue = append(w.queue, j)
			}
		}
		slices.SortStableFunc(w.queue[first:], func(a, b int32) int { return w.degrees[a] - w.degrees[b] })
	}
	return w.queue
}

// rim returns a term of i's component, unseen so far, that is about as far from
// others as any: it walks to the last level, goes on from the term of least
// degree there, and stops when that leads no farther (George and Liu, 1979).
func (w *walk) rim(i int32) int32 {
	farthest := int32(unseen)
	for {
		queue := w.from(i)
		depth := w.level[queue[len(queue)-1]]
		next := i
		if depth > farthest {
			next = queue[len(queue)-1]
			for k := len(queue) - 1; k >= 0 && w.level[queue[k]] == depth; k-- {
				if j := queue[k]; w.degrees[j] < w.degrees[next] || (w.degrees[j] == w.degrees[next] && j < next) {
					next = j
				}
			}
		}
		for _, j := range queue {
			w.level[j] = unseen
		}
		if depth <= farthest || depth == 0 {
			return i
		}
		i, farthest = next, depth
	}
}
