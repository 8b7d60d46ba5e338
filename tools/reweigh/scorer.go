package reweigh

import (
	"cmp"
	"slices"
)

// An origin is a term of a search.
type origin struct {
	term   int32
	x      float64 // how often it is there
	idf, w float64 // w = √idf
}

// An added term counts as an occurrence of an origin, v as much; see package
// terms.
type added struct {
	term   int32
	origin int
	v      float64
}

// A graded document has a gain and what it comes from.
type graded struct {
	doc   int32
	gain  float64
	count int
	share float64 // of the useful documents of a pool less that of the others
}

// useless is the part of a document that is of no use.
func (d *graded) useless() float64 { return max(1-d.gain, 0) }

// A scorer scores documents in the saturated form. It is for one goroutine.
type scorer struct {
	*Collection

	strength float64
	places   []int32 // by term: 1 + its place in the search, 0 for none
	y        []float64
}

func newScorer(c *Collection, strength float64) *scorer {
	return &scorer{Collection: c, strength: strength, places: make([]int32, len(c.terms))}
}

// scores returns the score of each document, and y of each origin in it, one
// document after the other; they are valid until the next call:
//
//	Σ_i (k1+1) x_i idf_i y_i/(1+y_i)    y_i = tf_i/K + Σ_j β_ij tf_j/K    β_ij = strength·v_j/(x_i idf_i)
func (s *scorer) scores(origins []origin, more []added, docs []graded) (scores, y []float64) {
	for k, o := range origins {
		s.places[o.term] = number(k + 1)
	}
	for k, a := range more {
		s.places[a.term] = number(len(origins) + k + 1)
	}
	scores = make([]float64, len(docs))
	s.y = append(s.y[:0], make([]float64, len(docs)*len(origins))...)
	for d := range docs {
		y := s.y[d*len(origins) : (d+1)*len(origins)]
		for _, t := range s.docs[docs[d].doc] {
			switch place := int(s.places[t.at]) - 1; {
			case place < 0:
			case place < len(origins):
				y[place] += float64(t.freq)
			default:
				a := &more[place-len(origins)]
				o := &origins[a.origin]
				y[a.origin] += s.strength * a.v / (o.x * o.idf) * float64(t.freq)
			}
		}
		for k := range origins {
			scores[d] += (k1 + 1) * origins[k].x * origins[k].idf * y[k] / (1 + y[k])
		}
	}
	for _, o := range origins {
		s.places[o.term] = 0
	}
	for _, a := range more {
		s.places[a.term] = 0
	}
	return scores, s.y
}

// first returns the n documents that score best, best first, ties in the
// order in which they were added.
func (s *scorer) first(origins []origin, more []added, n int) []graded {
	seen := make([]bool, len(s.docs))
	var docs []graded
	find := func(term int32) {
		for _, f := range s.found[term] {
			if !seen[f.at] {
				seen[f.at] = true
				docs = append(docs, graded{doc: f.at})
			}
		}
	}
	for _, o := range origins {
		find(o.term)
	}
	for _, a := range more {
		find(a.term)
	}
	slices.SortFunc(docs, func(a, b graded) int { return int(a.doc - b.doc) })
	scores, _ := s.scores(origins, more, docs)
	best := make([]graded, 0, n)
	for _, k := range descending(scores)[:min(n, len(docs))] {
		best = append(best, docs[k])
	}
	return best
}

// descending returns the places of values, the largest first, ties in order.
func descending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	return order
}
