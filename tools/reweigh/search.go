package reweigh

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// An Opinion is what users or judges said of a document for a search.
type Opinion struct {
	Gain  float64 // how useful it is, 0 for not at all
	Count int     // how many clicks or judgments say so
}

// A Search is what was searched for, and what is known of its documents.
type Search struct {
	Terms     []string // the index terms of its text, in any order
	Documents map[string]Opinion
}

// poolSize is how many documents a search is learned from, with all of which
// there is an opinion: those that it ranks first.
const poolSize = 100

// keepCandidates is how many neighbors of a search are looked at: four times
// as many as are added, so that a factor can bring them in.
const keepCandidates = 120

// A search is one as it is learned from.
type search struct {
	origins    []origin
	candidates []candidate
	pool       []graded
	ranked     []graded // the part of the pool whose order is learned from
	ideal      float64  // the DCG of its best order
	count      int      // clicks or judgments on useful documents
}

// A candidate is a neighbor of the origins, see package terms. What gives
// most of v is the entry of one origin.
type candidate struct {
	added

	most float64
}

// A graded document has a gain and what it comes from.
type graded struct {
	doc   int32
	gain  float64
	count int
	share float64 // of the useful documents of a pool less that of the others
}

// prepare returns a search as it is learned from, nil where nothing can be
// learned from it.
func (l *learner) prepare(s Search, scorer *scorer) *search {
	p := &search{origins: l.origins(s.Terms)}
	all := sums{}
	for k, o := range p.origins {
		for n := range l.matrix.Row(l.terms[o.term]).All() {
			if j, ok := l.ids[n.Term]; ok && l.addable(p, j) {
				all.add(j, k, o.x*o.w*math.Sqrt(l.idf[j])*float64(n.Similarity))
			}
		}
	}
	p.candidates = l.best(all.candidates, keepCandidates)
	gains := make([]float64, 0, len(s.Documents))
	for _, id := range slices.Sorted(maps.Keys(s.Documents)) { // so that sums are always the same
		opinion := s.Documents[id]
		if doc, ok := l.numbers[id]; ok {
			p.pool = append(p.pool, graded{doc: doc, gain: opinion.Gain, count: opinion.Count})
			gains = append(gains, opinion.Gain)
		}
		if opinion.Gain > 0 {
			p.count += opinion.Count
		}
	}
	slices.SortFunc(gains, func(a, b float64) int { return cmp.Compare(b, a) })
	if p.ideal = dcg(gains); p.ideal == 0 {
		return nil
	}
	known := len(p.pool)
	for _, d := range scorer.first(p.origins, l.choose(p, &model{}), poolSize) {
		if !slices.ContainsFunc(p.pool[:known], func(g graded) bool { return g.doc == d.doc }) {
			p.pool = append(p.pool, d)
		}
	}
	shares(p.pool)
	if p.ranked = p.pool; l.options.OnlyKnown {
		p.ranked = p.pool[:known]
	}
	slices.SortFunc(p.ranked, func(a, b graded) int { return int(a.doc - b.doc) }) // as documents with equal scores are
	return p
}

// origins returns the terms of a search that the collection has.
func (l *learner) origins(terms []string) (origins []origin) {
	for _, term := range terms {
		id, ok := l.ids[term]
		if k := slices.IndexFunc(origins, func(o origin) bool { return o.term == id }); !ok {
			continue
		} else if k >= 0 {
			origins[k].x++
		} else {
			origins = append(origins, origin{term: id, x: 1, idf: l.idf[id], w: math.Sqrt(l.idf[id])})
		}
	}
	return origins
}

// shares sets what documents count as in [cell.share]. One with a gain below 1
// is in part useful and in part not.
func shares(docs []graded) {
	useful, others := 0.0, 0.0
	for _, d := range docs {
		useful += d.gain
		others += d.useless()
	}
	for k := range docs {
		d := &docs[k]
		d.share = d.gain/useful - d.useless()/max(others, 1)
	}
}

// useless is the part of a document that is of no use.
func (d *graded) useless() float64 { return max(1-d.gain, 0) }

// addable reports whether a term may be added to a search.
func (l *learner) addable(p *search, term int32) bool {
	return float64(len(l.found[term])) <= math.Ceil(l.options.MaxShare*float64(len(l.docs))) &&
		!slices.ContainsFunc(p.origins, func(o origin) bool { return o.term == term })
}

// sums collects candidates.
type sums struct {
	places     map[int32]int
	candidates []candidate
}

// add adds to v of a term what an origin gives.
func (s *sums) add(term int32, from int, v float64) {
	k, ok := s.places[term]
	if !ok {
		if s.places == nil {
			s.places = map[int32]int{}
		}
		k, s.places[term] = len(s.candidates), len(s.candidates)
		s.candidates = append(s.candidates, candidate{added: added{term: term}})
	}
	c := &s.candidates[k]
	if c.v += v; v > c.most {
		c.most, c.origin = v, from
	}
}

// best returns the n candidates with the largest v above 0, in their order.
func (l *learner) best(all []candidate, n int) []candidate {
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.v <= 0 })
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.v, a.v), cmp.Compare(l.terms[a.term], l.terms[b.term]))
	})
	return all[:min(n, len(all))]
}

// choose returns the terms that the model adds to a search.
func (l *learner) choose(p *search, m *model) []added {
	all := sums{places: make(map[int32]int, len(p.candidates)), candidates: make([]candidate, 0, len(p.candidates))}
	for _, c := range p.candidates {
		f := m.factor(c.term)
		all.places[c.term] = len(all.candidates)
		all.candidates = append(all.candidates, candidate{added{c.term, c.origin, f * c.v}, f * c.most})
	}
	for k, o := range p.origins {
		for _, n := range m.pairs[o.term] {
			if s := n.similarity(m.scale); s > 0 && l.addable(p, n.term) {
				all.add(n.term, k, o.x*o.w*math.Sqrt(l.idf[n.term])*s)
			}
		}
	}
	best := l.best(all.candidates, l.options.Added)
	chosen := make([]added, len(best))
	for k, c := range best {
		chosen[k] = c.added
	}
	return chosen
}

// depth is how many documents nDCG looks at.
const depth = 10

// ndcg returns the nDCG@10 of the documents that are ranked, by the model.
func (l *learner) ndcg(p *search, m *model, s *scorer) float64 {
	scores, _ := s.scores(p.origins, l.choose(p, m), p.ranked)
	gains := make([]float64, 0, depth)
	for _, k := range descending(scores)[:min(depth, len(scores))] {
		gains = append(gains, p.ranked[k].gain)
	}
	return dcg(gains) / p.ideal
}

func dcg(gains []float64) (sum float64) {
	for i, gain := range gains[:min(depth, len(gains))] {
		sum += gain / math.Log2(float64(i)+2)
	}
	return sum
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

// A model is what has been learned.
type model struct {
	factors []float64        // less 1, by term; nil for 1
	pairs   map[int32][]pair // by their first term
	scale   float64          // of the similarities of pairs
	counts  []int            // by term, what its factor was learned from
}

// factor returns the factor of the entries in a term's column, in [0, 2].
func (m *model) factor(term int32) float64 {
	if m.factors == nil {
		return 1
	}
	return min(max(1+m.factors[term], 0), 2)
}
