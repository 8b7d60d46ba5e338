package softcosine

import (
	"cmp"
	"container/heap"
	"slices"
)

// An Ordering returns the permutation P by which a symmetric S is factorized:
// the k-th term to be orthonormalized is order[k]. The sparsity of the factor
// depends on it. Finding the best order is NP-hard; these are heuristics. Ties
// go to the smaller term.
type Ordering func(s *Similarities) (order []int32)

// MinimumDegree is an [Ordering] that takes again and again the term that has
// the fewest neighbors left, which then become neighbors of each other. It
// gives the sparsest factors for the S of words. A tree takes O(n·log n).
// Elsewhere a term of d neighbors is looked at whenever one of them is taken,
// d² steps at worst.
//
// The graph of what is left is a quotient graph (George and Liu, The
// Evolution of the Minimum Degree Ordering Algorithm, 1989): eliminated
// terms are elements, which have all edges between the terms that they
// touch, so that it never grows. Terms that have the same neighbors are one
// supervariable and are eliminated together. Degrees are the upper bounds of
// Amestoy, Davis and Duff (An Approximate Minimum Degree Ordering Algorithm,
// 1996).
//
// Terms of at most one neighbor come first, by [quotientGraph.peel]: else the
// lists of a hub would be walked for each of them.
func MinimumDegree(s *Similarities) (order []int32) {
	q := newQuotientGraph(s)
	for len(q.order) < len(q.nodes) {
		q.eliminate(q.pop())
	}
	return q.order
}

func degree(s *Similarities, i int32) int {
	cols, _ := s.Row(int(i))
	return len(cols)
}

func inverse(order []int32) []int32 {
	places := make([]int32, len(order))
	for k, i := range order {
		places[i] = int32(k)
	}
	return places
}

// A node is first a supervariable and then, perhaps, an element.
type node struct {
	size     int     // number of terms, 0 for what was merged into another
	terms    []int32 // those terms
	degree   int     // of a supervariable: a bound on the terms that its elimination would touch
	nodes    []int32 // of a supervariable: adjacent ones, without those that an element has; of an element: those it touches
	elements []int32 // of a supervariable: the elements that touch it
	dead     bool    // eliminated or merged; of an element: part of another
	element  bool
	outside  int // of an element, for one elimination: its terms that are not touched by it
	stamp    int // the last elimination that outside is of, or that touched the supervariable
}

// A quotientGraph is what is left of the graph of S while terms are eliminated.
type quotientGraph struct {
	nodes []node
	queue degreeQueue
	order []int32 // the terms that have been eliminated
	stamp int     // number of the elimination
	steps int     // entries of lists that were looked at: what the time is in proportion to
}

// newQuotientGraph leaves out the terms of at most one neighbor.
func newQuotientGraph(s *Similarities) *quotientGraph {
	q := &quotientGraph{nodes: make([]node, s.Len()), order: make([]int32, 0, s.Len())}
	q.peel(s)
	q.queue = make(degreeQueue, 0, s.Len()-len(q.order))
	for i := range q.nodes {
		v := &q.nodes[i]
		if v.dead {
			continue
		}
		cols, _ := s.Row(i)
		v.nodes = make([]int32, 0, v.degree)
		for _, j := range cols {
			if !q.nodes[j].dead {
				v.nodes = append(v.nodes, j)
			}
		}
		q.steps += len(cols)
		v.size, v.terms = 1, []int32{int32(i)}
		q.queue = append(q.queue, candidate{v.degree, int32(i)})
	}
	heap.Init(&q.queue)
	return q
}

// peel sets the degrees of all terms and eliminates those of at most one
// neighbor, and so on with what is left, in O(nnz + n·log n).
func (q *quotientGraph) peel(s *Similarities) {
	for i := range q.nodes {
		q.nodes[i].degree = degree(s, int32(i))
		q.offer(int32(i))
	}
	for len(q.queue) > 0 {
		i := heap.Pop(&q.queue).(candidate).id
		v := &q.nodes[i]
		q.steps++
		if v.dead { // It was here with degree 1, too.
			continue
		}
		v.dead = true
		q.order = append(q.order, i)
		if v.degree == 0 {
			continue
		}
		cols, _ := s.Row(int(i))
		q.steps += len(cols)
		for _, j := range cols {
			if w := &q.nodes[j]; !w.dead {
				w.degree--
				q.offer(j)
			}
		}
	}
}

// offer queues a term for peel if it has at most one neighbor.
func (q *quotientGraph) offer(i int32) {
	if d := q.nodes[i].degree; d <= 1 {
		heap.Push(&q.queue, candidate{d, i})
	}
}

// pop returns the supervariable of the least degree, the smallest such.
func (q *quotientGraph) pop() int32 {
	for {
		next := heap.Pop(&q.queue).(candidate)
		if v := &q.nodes[next.id]; !v.dead && v.degree == next.degree {
			return next.id
		}
	}
}

func (q *quotientGraph) eliminate(p int32) {
	q.stamp++
	touched := q.touch(p)
	q.order = append(q.order, q.nodes[p].terms...)
	q.nodes[p] = node{dead: true, element: true, nodes: touched}
	for _, i := range touched {
		q.countOutside(i)
	}
	weight := 0
	alike := map[uint64][]int32{}
	for _, i := range touched {
		v := &q.nodes[i]
		if outside := q.reduce(p, v); outside == 0 { // it touches what p touches and no more, so it may come next
			q.order = append(q.order, v.terms...)
			*v = node{dead: true}
			continue
		}
		weight += v.size
		key := v.hash()
		alike[key] = append(alike[key], i)
	}
	for _, i := range touched {
		v := &q.nodes[i]
		if v.dead {
			continue
		}
		for _, j := range alike[v.hash()] { // those of larger numbers that have the same edges are united with v
			w := &q.nodes[j]
			if j > i && !w.dead && slices.Equal(v.nodes, w.nodes) && slices.Equal(v.elements, w.elements) {
				v.terms, v.size = append(v.terms, w.terms...), v.size+w.size
				*w = node{dead: true}
			}
		}
	}
	touched = slices.DeleteFunc(touched, func(i int32) bool { return q.nodes[i].dead })
	q.nodes[p].nodes = touched
	left := len(q.nodes) - len(q.order)
	for _, i := range touched {
		v := &q.nodes[i]
		v.degree = min(v.degree+weight, left) - v.size
		heap.Push(&q.queue, candidate{v.degree, i})
	}
}

// touch returns the supervariables adjacent to p, stamped and ascending, and
// takes away the elements that p's replaces.
func (q *quotientGraph) touch(p int32) []int32 {
	pivot := &q.nodes[p]
	pivot.stamp = q.stamp // it does not touch itself
	var touched []int32
	add := func(ids []int32) {
		q.steps += len(ids)
		for _, i := range ids {
			if v := &q.nodes[i]; !v.dead && v.stamp != q.stamp {
				v.stamp = q.stamp
				touched = append(touched, i)
			}
		}
	}
	add(pivot.nodes)
	for _, e := range pivot.elements {
		add(q.nodes[e].nodes)
		q.nodes[e] = node{dead: true}
	}
	slices.Sort(touched)
	return touched
}

// countOutside counts the terms of i as touched, for its elements.
func (q *quotientGraph) countOutside(i int32) {
	v := &q.nodes[i]
	q.steps += len(v.elements)
	v.elements = slices.DeleteFunc(v.elements, func(e int32) bool { return !q.nodes[e].element })
	for _, e := range v.elements {
		element := &q.nodes[e]
		if element.stamp != q.stamp {
			element.stamp, element.outside = q.stamp, 0
			q.steps += len(element.nodes)
			element.nodes = slices.DeleteFunc(element.nodes, func(j int32) bool { return q.nodes[j].dead })
			for _, j := range element.nodes {
				element.outside += q.nodes[j].size
			}
		}
		element.outside -= v.size
	}
}

// reduce replaces by the element p the edges of v that it has. It makes v's
// degree a bound on the terms that v touches and p does not, and returns the
// one that counts the terms of each element separately.
func (q *quotientGraph) reduce(p int32, v *node) (outside int) {
	q.steps += len(v.nodes) + len(v.elements)
	v.nodes = slices.DeleteFunc(v.nodes, func(j int32) bool {
		other := &q.nodes[j]
		if other.dead || other.stamp == q.stamp {
			return true
		}
		outside += other.size
		return false
	})
	v.elements = slices.DeleteFunc(v.elements, func(e int32) bool {
		beyond := q.nodes[e].outside
		outside += beyond
		return beyond == 0 // p touches all that it touches
	})
	v.elements = append(v.elements, p)
	slices.Sort(v.nodes)
	slices.Sort(v.elements)
	v.degree = min(v.degree, outside)
	return outside
}

// hash returns the same for supervariables of the same edges.
func (v *node) hash() uint64 {
	var sum uint64
	for _, i := range v.nodes {
		sum += uint64(i) //nolint:gosec // not negative
	}
	for _, e := range v.elements {
		sum += uint64(e) << 32 //nolint:gosec // not negative
	}
	return sum
}

// A candidate is a supervariable with its degree at one time.
type candidate struct {
	degree int
	id     int32
}

// A degreeQueue is a heap of candidates, some of them out of date.
type degreeQueue []candidate

func (h *degreeQueue) Len() int { return len(*h) }

func (h *degreeQueue) Less(a, b int) bool {
	x, y := (*h)[a], (*h)[b]
	return cmp.Or(cmp.Compare(x.degree, y.degree), cmp.Compare(x.id, y.id)) < 0
}

func (h *degreeQueue) Swap(a, b int) { (*h)[a], (*h)[b] = (*h)[b], (*h)[a] }
func (h *degreeQueue) Push(x any)    { *h = append(*h, x.(candidate)) }

func (h *degreeQueue) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
