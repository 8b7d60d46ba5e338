package softcosine

import (
	"context"
	"slices"
)

// minimumDegree returns an order of the terms of a symmetric S for a Cholesky
// factor with few entries: again and again it takes a term with the fewest
// neighbors left, which then become neighbors of each other. As many neighbors
// as the term has, as many entries has its column of the factor. It stops when
// these are sure to pass the limits, or after a tenth of their products, and
// the rest follows by number. Finding the best order is NP-hard.
//
// What is left is a quotient graph, which never grows (George and Liu: The
// Evolution of the Minimum Degree Ordering Algorithm, 1989): a term that was
// taken is a clique, which stands for all edges between the terms that it
// touches. Degrees are the upper bounds of Amestoy, Davis and Duff (An
// Approximate Minimum Degree Ordering Algorithm, 1996).
func minimumDegree(ctx context.Context, s *Similarities, limits Limits) (order []int32, err error) {
	n := s.Len()
	q := &quotientGraph{nodes: make([]node, n), queue: make([][]int32, n), order: make([]int32, 0, n)}
	for i := n - 1; i >= 0; i-- {
		cols, _ := s.Row(i)
		q.nodes[i] = node{terms: slices.Clone(cols), degree: len(cols)}
		q.offer(int32(i)) //nolint:gosec // n is an int32
	}
	for entries := 0; len(q.order) < n && q.work <= limits.Products/10; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := q.pop()
		entries += q.take(p)
		if touched := len(q.nodes[p].terms); entries+touched*(touched+1)/2 > limits.Entries {
			break // any order of these makes all pairs of them entries
		}
	}
	for i := range q.nodes {
		if v := &q.nodes[i]; !v.taken {
			q.order = append(q.order, int32(i))
		}
	}
	return q.order, nil
}

// A node is a term that is left, and once it was taken perhaps a clique, until
// another replaces it.
type node struct {
	terms   []int32 // of a term: neighbors, without those of its cliques; of a clique: all that it touches
	cliques []int32 // of a term: those that touch it
	degree  int     // of a term: a bound on the terms that taking it would touch
	taken   bool
	clique  bool
	outside int // of a clique, in one step: its terms that the step does not touch
	step    int // of a clique: that which outside is of; of a term: the last one that touched it
}

// A quotientGraph is what is left of the graph of S.
type quotientGraph struct {
	nodes []node
	queue [][]int32 // terms by a degree that they have or had
	least int       // no term is queued below
	order []int32   // the terms that were taken
	step  int       // how many were taken as the next
	work  int       // neighbors that were looked at: one takes as long as ten products
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
		if v := &q.nodes[i]; !v.taken && v.degree == q.least {
			return i
		}
	}
}

// take makes a clique of the term p, and returns the entries of its column of
// the factor and of those terms that were taken with it.
func (q *quotientGraph) take(p int32) (entries int) {
	q.step++
	touched := q.touch(p)
	entries = len(touched) + 1
	q.order = append(q.order, p)
	if len(touched) == 1 { // no edge is new, and the lists of a hub are not walked for each term that hangs from it
		q.nodes[p] = node{taken: true}
		q.nodes[touched[0]].degree--
		q.offer(touched[0])
		return entries
	}
	for _, i := range touched {
		q.countOutside(i)
	}
	left := touched[:0]
	for _, i := range touched {
		if q.reduce(p, &q.nodes[i]) > 0 {
			left = append(left, i)
			continue
		}
		q.order = append(q.order, i) // it touches no more than p does, so it may come next
		q.nodes[i] = node{taken: true}
	}
	taken := len(touched) - len(left)
	entries += taken*len(left) + taken*(taken+1)/2
	q.nodes[p] = node{taken: true, clique: true, terms: left}
	rest := len(q.nodes) - len(q.order)
	for _, i := range left {
		v := &q.nodes[i]
		v.degree = min(v.degree+len(left), rest) - 1
		q.offer(i)
	}
	return entries
}

// touch returns the terms next to p, marked by the step, and takes away the
// cliques that p replaces.
func (q *quotientGraph) touch(p int32) (touched []int32) {
	pivot := &q.nodes[p]
	pivot.step = q.step // it does not touch itself
	add := func(terms []int32) {
		for _, i := range terms {
			if v := &q.nodes[i]; !v.taken && v.step != q.step {
				v.step = q.step
				touched = append(touched, i)
			}
		}
	}
	add(pivot.terms)
	for _, c := range pivot.cliques {
		add(q.nodes[c].terms)
		q.nodes[c] = node{taken: true}
	}
	return touched
}

// countOutside takes the touched term i from what is outside in its cliques.
func (q *quotientGraph) countOutside(i int32) {
	v := &q.nodes[i]
	v.cliques = slices.DeleteFunc(v.cliques, func(c int32) bool { return !q.nodes[c].clique })
	for _, at := range v.cliques {
		c := &q.nodes[at]
		if c.step != q.step {
			c.terms = slices.DeleteFunc(c.terms, func(j int32) bool { return q.nodes[j].taken })
			c.step, c.outside = q.step, len(c.terms)
			q.work += len(c.terms)
		}
		c.outside--
	}
}

// reduce replaces edges of v by the clique p that has them. It makes v's degree
// a bound on the terms that v touches and p does not, and returns the one that
// counts the terms of each clique separately.
func (q *quotientGraph) reduce(p int32, v *node) (outside int) {
	q.work += len(v.terms) + len(v.cliques)
	v.terms = slices.DeleteFunc(v.terms, func(j int32) bool {
		other := &q.nodes[j]
		return other.taken || other.step == q.step
	})
	outside = len(v.terms)
	v.cliques = slices.DeleteFunc(v.cliques, func(c int32) bool {
		beyond := q.nodes[c].outside
		outside += beyond
		return beyond == 0 // p touches all that it touches
	})
	v.cliques = append(v.cliques, p)
	v.degree = min(v.degree, outside)
	return outside
}
