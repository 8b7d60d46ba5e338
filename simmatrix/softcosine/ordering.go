package softcosine

import "slices"

// An Ordering returns the permutation P by which a symmetric S is factorized:
// the k-th term to be orthonormalized is order[k]. The sparsity of the factor
// depends on it. Finding the best order is NP-hard; [MinimumDegree] is a
// heuristic.
type Ordering func(s *Similarities) (order []int32)

// MinimumDegree is an [Ordering] that takes again and again a term that has
// the fewest neighbors left, which then become neighbors of each other. A tree
// takes O(n). Elsewhere a term of d neighbors is looked at whenever one of them
// is taken, d² steps at worst.
//
// The graph of what is left is a quotient graph (George and Liu, The
// Evolution of the Minimum Degree Ordering Algorithm, 1989): eliminated
// terms are elements, which have all edges between the terms that they
// touch, so that it never grows. Degrees are the upper bounds of Amestoy,
// Davis and Duff (An Approximate Minimum Degree Ordering Algorithm, 1996).
func MinimumDegree(s *Similarities) (order []int32) {
	n := s.Len()
	q := &quotientGraph{nodes: make([]node, n), queue: make([][]int32, n), order: make([]int32, 0, n)}
	for i := n - 1; i >= 0; i-- {
		cols, _ := s.Row(i)
		q.nodes[i] = node{terms: slices.Clone(cols), degree: len(cols)}
		q.offer(int32(i)) //nolint:gosec // n is an int32
	}
	for len(q.order) < n {
		q.eliminate(q.pop())
	}
	return q.order
}

func inverse(order []int32) []int32 {
	places := make([]int32, len(order))
	for k, i := range order {
		places[i] = int32(k)
	}
	return places
}

// A node is first a term that is left and then, perhaps, an element.
type node struct {
	degree   int     // of a term: a bound on the terms that its elimination would touch
	terms    []int32 // of a term: adjacent ones, without those that an element has; of an element: those it touches
	elements []int32 // of a term: the elements that touch it
	dead     bool    // eliminated; of an element: part of another
	element  bool
	outside  int // of an element, for one elimination: its terms that are not touched by it
	stamp    int // the last elimination that outside is of, or that touched the term
}

// A quotientGraph is what is left of the graph of S while terms are eliminated.
type quotientGraph struct {
	nodes []node
	queue [][]int32 // terms by the degree that they had at some time
	least int       // no term is queued under less
	order []int32   // the terms that have been eliminated
	stamp int       // number of the elimination
}

// offer queues a term whose degree has changed.
func (q *quotientGraph) offer(i int32) {
	degree := q.nodes[i].degree
	q.queue[degree] = append(q.queue[degree], i)
	q.least = min(q.least, degree)
}

// pop returns a term of the least degree.
func (q *quotientGraph) pop() int32 {
	for {
		last := len(q.queue[q.least]) - 1
		if last < 0 {
			q.least++
			continue
		}
		i := q.queue[q.least][last]
		q.queue[q.least] = q.queue[q.least][:last]
		if v := &q.nodes[i]; !v.dead && v.degree == q.least {
			return i
		}
	}
}

func (q *quotientGraph) eliminate(p int32) {
	q.stamp++
	touched := q.touch(p)
	q.order = append(q.order, p)
	q.nodes[p] = node{dead: true}
	if len(touched) == 1 { // No edge is new. The lists of a hub are not walked for each term that hangs from it.
		q.nodes[touched[0]].degree--
		q.offer(touched[0])
		return
	}
	for _, i := range touched {
		q.countOutside(i)
	}
	touched = slices.DeleteFunc(touched, func(i int32) bool {
		v := &q.nodes[i]
		if outside := q.reduce(p, v); outside > 0 {
			return false
		}
		q.order = append(q.order, i) // it touches what p touches and no more, so it may come next
		*v = node{dead: true}
		return true
	})
	q.nodes[p] = node{dead: true, element: true, terms: touched}
	left := len(q.nodes) - len(q.order)
	for _, i := range touched {
		v := &q.nodes[i]
		v.degree = min(v.degree+len(touched), left) - 1
		q.offer(i)
	}
}

// touch returns the terms adjacent to p, stamped, and takes away the elements
// that p's replaces.
func (q *quotientGraph) touch(p int32) []int32 {
	pivot := &q.nodes[p]
	pivot.stamp = q.stamp // it does not touch itself
	var touched []int32
	add := func(ids []int32) {
		for _, i := range ids {
			if v := &q.nodes[i]; !v.dead && v.stamp != q.stamp {
				v.stamp = q.stamp
				touched = append(touched, i)
			}
		}
	}
	add(pivot.terms)
	for _, e := range pivot.elements {
		add(q.nodes[e].terms)
		q.nodes[e] = node{dead: true}
	}
	return touched
}

// countOutside counts the term i as touched, for its elements.
func (q *quotientGraph) countOutside(i int32) {
	v := &q.nodes[i]
	v.elements = slices.DeleteFunc(v.elements, func(e int32) bool { return !q.nodes[e].element })
	for _, e := range v.elements {
		element := &q.nodes[e]
		if element.stamp != q.stamp {
			element.terms = slices.DeleteFunc(element.terms, func(j int32) bool { return q.nodes[j].dead })
			element.stamp, element.outside = q.stamp, len(element.terms)
		}
		element.outside--
	}
}

// reduce replaces by the element p the edges of v that it has. It makes v's
// degree a bound on the terms that v touches and p does not, and returns the
// one that counts the terms of each element separately.
func (q *quotientGraph) reduce(p int32, v *node) (outside int) {
	v.terms = slices.DeleteFunc(v.terms, func(j int32) bool {
		other := &q.nodes[j]
		return other.dead || other.stamp == q.stamp
	})
	outside = len(v.terms)
	v.elements = slices.DeleteFunc(v.elements, func(e int32) bool {
		beyond := q.nodes[e].outside
		outside += beyond
		return beyond == 0 // p touches all that it touches
	})
	v.elements = append(v.elements, p)
	v.degree = min(v.degree, outside)
	return outside
}
