package reweigh

import (
	"context"
	"maps"
	"math"
	"slices"
)

// significant is the smallest log-likelihood ratio of a new pair: a larger one
// is chance once in twenty times (chi-squared, one degree of freedom). Held-out
// searches decide whether the pairs help.
const significant = 3.84

// propose returns new pairs of a term i of searches and a term j of documents,
// by i: the useful documents of searches with i contain j significantly more
// often than the others of the pool. The similarity is a scale times
//
//	Σ_q (p_q − r_q) / (n + 1)
//
// where p_q is the share of the useful documents of search q that contain j,
// r_q that of the others, and n the number of searches with i. So a pair with
// evidence from one search gets half of its share.
func (l *learner) propose(ctx context.Context, train []*search) (map[int32][]pair, error) {
	with := map[int32][]*search{}
	for _, p := range train {
		for _, o := range p.origins {
			with[o.term] = append(with[o.term], p)
		}
	}
	terms := slices.Sorted(maps.Keys(with))
	found := make([][]pair, len(terms))
	err := l.each(ctx, len(terms), nil, func(k int, s *scorer) { found[k] = l.newNeighbors(terms[k], with[terms[k]], s) })
	pairs := map[int32][]pair{}
	for k, i := range terms {
		pairs[i] = found[k]
	}
	return pairs, err
}

// A cell counts documents of the pools: those that contain j, or all.
type cell struct {
	pair

	useful, others float64
}

func (c *cell) add(d *graded) {
	c.share += d.share
	c.useful += 1 - d.useless()
	c.others += d.useless()
	c.count += d.count
}

// newNeighbors returns the pairs of term i. with are the searches that contain
// i.
func (l *learner) newNeighbors(i int32, with []*search, s *scorer) []pair {
	var cells []cell
	var all cell
	for _, p := range with {
		for k := range p.pool {
			d := &p.pool[k]
			all.add(d)
			for _, t := range l.docs[d.doc] {
				if !l.hasRow[t.at] || !l.addable(p, t.at) {
					continue
				}
				if s.places[t.at] == 0 {
					cells = append(cells, cell{pair: pair{term: t.at}})
					s.places[t.at] = number(len(cells))
				}
				cells[s.places[t.at]-1].add(d)
			}
		}
	}
	for n := range l.matrix.Row(l.terms[i]).All() {
		if j, ok := l.ids[n.Term]; ok && s.places[j] > 0 {
			cells[s.places[j]-1].share = 0 // it is already a neighbor
		}
	}
	var pairs []pair
	for k := range cells {
		c := &cells[k]
		s.places[c.term] = 0
		if c.share > 0 && c.ratio(&all) >= significant {
			c.share /= float64(len(with) + 1)
			pairs = append(pairs, c.pair)
		}
	}
	return pairs
}

// ratio returns Dunning's log-likelihood ratio of the table of documents with
// and without j, useful and others (Accurate Methods for the Statistics of
// Surprise and Coincidence, 1993), with its four cells k:
//
//	−2 ln λ = 2 Σ k ln(k·n / (row·column))
func (c *cell) ratio(all *cell) (sum float64) {
	n, row := all.useful+all.others, c.useful+c.others
	for _, v := range [][3]float64{
		{c.useful, row, all.useful},
		{c.others, row, all.others},
		{all.useful - c.useful, n - row, all.useful},
		{all.others - c.others, n - row, all.others},
	} {
		if v[0] > 0 {
			sum += 2 * v[0] * math.Log(v[0]*n/(v[1]*v[2]))
		}
	}
	return sum
}
