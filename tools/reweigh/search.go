package reweigh

import (
	"cmp"
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// An Opinion is what users or judges said of a document for a search.
type Opinion struct {
	Gain  float64 // how useful it is, 0 for not at all
	Count int     // number of clicks or judgments
}

// A Search is a search with what is known of its documents.
type Search struct {
	Text      string
	Terms     []string // the index terms of the text, in any order
	Documents map[string]Opinion
}

// Options are the settings of searches, as configured, and of learning.
type Options struct {
	Strength float64 // of the saturated form
	Added    int     // how many terms are added to a search
	MaxShare float64 // the largest share of documents that may contain an added term
	// OnlyKnown says that nothing is known of a document without an opinion,
	// because it was not shown. Otherwise it counts as not useful, because judges
	// have looked for useful documents.
	OnlyKnown bool
	Unit      string // what [Opinion.Count] counts, in the singular, such as click
}

// poolSize is how many of the first documents of a search are used for
// learning, besides all documents with an opinion.
const poolSize = 100

// keepCandidates is how many neighbors of a search are kept: four times as many
// as are added, so that a factor can bring them in.
const keepCandidates = 120

// A search is prepared for learning.
type search struct {
	origins    []origin
	candidates []candidate
	pool       []graded
	ranked     []graded // the part of the pool whose order is used
	ideal      float64  // the DCG of the best order
	count      int      // clicks or judgments on useful documents
}

// A candidate is a neighbor of the origins, see package terms. most is the
// largest contribution of an origin to v.
type candidate struct {
	added

	most float64
}

type model struct {
	factors []float64        // factor − 1 by term; nil if all are 1
	pairs   map[int32][]pair // by first term
	scale   float64          // of the similarities of pairs
	counts  []int            // by term: the number of clicks or judgments behind its factor
}

// factor returns the factor of the entries in a term's column, in [0, 2].
func (m *model) factor(term int32) float64 {
	if m.factors == nil {
		return 1
	}
	return min(max(1+m.factors[term], 0), 2)
}

// A pair is a new entry of the matrix, in the row of another term.
type pair struct {
	term  int32
	share float64 // see propose
	count int     // clicks or judgments on documents with the term
}

func (p *pair) similarity(scale float64) float64 {
	if s := min(scale*p.share, 1); s >= 1.0/simmatrix.UnitsOfOne {
		return s
	}
	return 0
}

// A learner ranks searches like a proxy, and learns from the rankings.
type learner struct {
	*Collection

	matrix  *simmatrix.Matrix
	options Options
	hasRow  []bool // by term, whether the matrix has it
}

// each calls f for each of n searches, on all processors. stage counts them.
func (l *learner) each(ctx context.Context, n int, stage *simmatrix.Stage, f func(i int, s *scorer)) error {
	scorers := sync.Pool{New: func() any { return newScorer(l.Collection, l.options.Strength) }}
	return recovery.InParallel(n, runtime.GOMAXPROCS(0), func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, _ := scorers.Get().(*scorer)
		defer scorers.Put(s)
		f(i, s)
		stage.Add(1)
		return nil
	})
}

// prepare prepares a search for learning. It returns nil if nothing can be
// learned from it.
func (l *learner) prepare(s Search, scorer *scorer) *search {
	p := &search{origins: l.origins(s.Terms)}
	all := sums{places: map[int32]int{}}
	for k, o := range p.origins {
		for n := range l.matrix.Row(l.terms[o.term]).All() {
			if j, ok := l.ids[n.Term]; ok && l.addable(p, j) {
				all.add(j, k, o.x*o.w*math.Sqrt(l.idf[j])*float64(n.Similarity))
			}
		}
	}
	p.candidates = l.best(all.candidates, keepCandidates)
	gains := make([]float64, 0, len(s.Documents))
	for _, id := range slices.Sorted(maps.Keys(s.Documents)) { // sorted, so that sums are reproducible
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
	useful, others := 0.0, 0.0
	for _, d := range p.pool {
		useful += d.gain
		others += d.useless()
	}
	for k := range p.pool { // a document with a gain below 1 is partly useful and partly not
		d := &p.pool[k]
		d.share = d.gain/useful - d.useless()/max(others, 1)
	}
	p.ranked = p.pool
	if l.options.OnlyKnown {
		p.ranked = p.pool[:known]
	}
	slices.SortFunc(p.ranked, func(a, b graded) int { return int(a.doc - b.doc) }) // the order of documents with equal scores
	return p
}

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

func (l *learner) addable(p *search, term int32) bool {
	return float64(len(l.found[term])) <= math.Ceil(l.options.MaxShare*float64(len(l.docs))) &&
		!slices.ContainsFunc(p.origins, func(o origin) bool { return o.term == term })
}

type sums struct {
	places     map[int32]int
	candidates []candidate
}

// add adds an origin's contribution to v of a term.
func (s *sums) add(term int32, from int, v float64) {
	k, ok := s.places[term]
	if !ok {
		k, s.places[term] = len(s.candidates), len(s.candidates)
		s.candidates = append(s.candidates, candidate{added: added{term: term}})
	}
	c := &s.candidates[k]
	if c.v += v; v > c.most {
		c.most, c.origin = v, from
	}
}

func (l *learner) best(all []candidate, n int) []candidate {
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.v <= 0 })
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.v, a.v), cmp.Compare(l.terms[a.term], l.terms[b.term]))
	})
	return all[:min(n, len(all))]
}

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

// depth is the depth of nDCG.
const depth = 10

// ndcg returns the nDCG@10 of the ranked documents under the model.
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
