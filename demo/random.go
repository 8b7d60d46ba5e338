package demo

// randomBits is how fine the scores of a randomQuery are.
const randomBits = 24

// A randomQuery gives the documents of a query scores in [0, 1) that look
// random, and finds those with at least the least score: a random share of
// them. The scores depend on the seed and on the order in which documents were
// written.
type randomQuery struct {
	inner query
	seed  uint64
	least float32
}

// randomScore reads a function_score query with random_score, which may stand
// for the score of its query and do nothing else.
func (p *parser) randomScore(a *args, random any, q functionQuery) (query, error) {
	r := randomQuery{inner: q.inner, least: float32(a.number("min_score", 0))}
	if q.boostMode != "replace" {
		return nil, unsupported("random_score without the boost_mode [replace]")
	}
	inner, err := newArgs("random_score", random)
	if err != nil {
		return nil, err
	}
	r.seed = uint64(inner.integer("seed", 0)) //nolint:gosec // it is not negative
	if field := inner.str("field", "_seq_no"); field != "_seq_no" {
		return nil, unsupported("random_score by the field [%s]", field)
	}
	if err := inner.done(); err != nil {
		return nil, err
	}
	return p.finish(a, r, nil)
}

// score returns the score of a document: the upper bits of its number and the
// seed, mixed as by SplitMix64.
func (q randomQuery) score(doc int) float32 {
	h := q.seed*0x9e3779b97f4a7c15 + uint64(doc) //nolint:gosec // it is not negative
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	return float32(h>>(64-randomBits)) / (1 << randomBits)
}

func (q randomQuery) hits(ix *index, boost float32) []hit {
	var out []hit
	for _, h := range q.inner.hits(ix, 1) {
		if s := q.score(h.doc); s >= q.least {
			out = append(out, hit{h.doc, s * boost})
		}
	}
	return out
}

func (q randomQuery) explain(ix *index, doc int, boost float32) *explanation {
	s := q.score(doc)
	if s < q.least || q.inner.explain(ix, doc, 1) == nil {
		return nil
	}
	return explained(s*boost, "random score, of the seed and the document")
}

func (q randomQuery) terms(yield func(field, term string)) { q.inner.terms(yield) }
