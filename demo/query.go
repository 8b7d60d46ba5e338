package demo

import (
	"fmt"
	"slices"
	"strings"
)

// A query is one node of a parsed query, bound to one index.
type query interface {
	// explain returns the score of a document times boost and how it comes
	// about, nil where the document does not match.
	explain(at place, boost float32) *explanation
	// terms calls yield for each field and term that the query looks for.
	terms(yield func(field, term string))
}

// A place is a document that is scored.
type place struct {
	ix    *index
	doc   int
	words bool // the explanation of a term is wanted in words, not its value only
}

// A hit is one document that matches.
type hit struct {
	doc   int
	score float32
}

// hitsOf returns the documents that match q, ascending by number.
func hitsOf(q query, ix *index) []hit {
	var out []hit
	for _, doc := range ix.live() {
		if e := q.explain(place{ix, doc, false}, 1); e != nil {
			out = append(out, hit{doc, e.Value})
		}
	}
	return out
}

// weighted multiplies the scores of a query.
type weighted struct {
	query
	factor float32
}

func (q weighted) explain(at place, boost float32) *explanation {
	return q.query.explain(at, boost*q.factor)
}

// boosted returns q with its scores multiplied by boost.
func boosted(q query, boost float32) query {
	if boost == 1 {
		return q
	}
	return weighted{q, boost}
}

// termQuery scores the documents that hold a term by BM25.
type termQuery struct{ field, term string }

func (q termQuery) explain(at place, boost float32) *explanation {
	e := at.ix.docs[at.doc].fields[q.field]
	if e == nil || e.freqs[q.term] == 0 {
		return nil
	}
	f := at.ix.fields[q.field]
	s := newBM25(f, f.docFreq[q.term], boost)
	if !at.words {
		return &explanation{Value: s.score(e.freqs[q.term], e.length)}
	}
	why := s.explain(e.freqs[q.term], e.length)
	return explained(why.Value, fmt.Sprintf("weight(%s:%s in %d) [PerFieldSimilarity], result of:", q.field, q.term, at.doc), why)
}

func (q termQuery) terms(yield func(field, term string)) { yield(q.field, q.term) }

// constantQuery gives every document that it matches the score 1.
type constantQuery struct {
	matches     func(at place) bool
	description string
	inner       query // whose terms to highlight, or nil
}

func (q constantQuery) explain(at place, boost float32) *explanation {
	switch {
	case !q.matches(at):
		return nil
	case boost == 1:
		return explained(1, q.description)
	default:
		return explained(boost, q.description+"^"+floatText(boost))
	}
}

func (q constantQuery) terms(yield func(field, term string)) {
	if q.inner != nil {
		q.inner.terms(yield)
	}
}

func matchAll() query { return constantQuery{func(place) bool { return true }, "*:*", nil} }

func matchNone() query {
	return constantQuery{func(place) bool { return false }, "MatchNoDocsQuery", nil}
}

// constantScore gives the documents of q the score 1.
func constantScore(q query) query {
	return constantQuery{func(at place) bool { return q.explain(at, 1) != nil }, "ConstantScore", q}
}

// numberQuery matches the documents with a value in [low, high].
func numberQuery(field string, low, high float64) query {
	matches := func(at place) bool {
		e := at.ix.docs[at.doc].fields[field]
		return e != nil && slices.ContainsFunc(e.numbers, func(v float64) bool { return low <= v && v <= high })
	}
	return constantQuery{matches, fmt.Sprintf("%s:[%v TO %v]", field, low, high), nil}
}

// existsQuery matches the documents with a value in the field, or in any field
// of the object of that name.
func existsQuery(field string) query {
	matches := func(at place) bool {
		for name := range at.ix.docs[at.doc].fields {
			if name == field || strings.HasPrefix(name, field+".") {
				return true
			}
		}
		return false
	}
	return constantQuery{matches, "ConstantScore(FieldExistsQuery [field=" + field + "])", nil}
}

// idsQuery matches documents by their ids.
func idsQuery(ids []string) query {
	matches := func(at place) bool { return slices.Contains(ids, at.ix.docs[at.doc].id) }
	return constantQuery{matches, "_id:(" + strings.Join(ids, " ") + ")", nil}
}

// scriptQuery replaces the scores of a query.
type scriptQuery struct {
	inner  query
	script script
}

func (q scriptQuery) explain(at place, boost float32) *explanation {
	inner := q.inner.explain(at, 1)
	if inner == nil {
		return nil
	}
	e := explained(q.script.run(inner.Value), `script score function, computed with script:"`+q.script.source+`"`,
		explained(inner.Value, "_score: ", inner))
	if boost == 1 {
		return e
	}
	return explained(e.Value*boost, "Boosted score, product of:", explained(boost, "boost"), e)
}

func (q scriptQuery) terms(yield func(field, term string)) { q.inner.terms(yield) }

// functionQuery combines the scores of a query with constant weights.
type functionQuery struct {
	inner     query
	functions []weightFunction
	scoreMode string // how the weights combine with each other
	boostMode string // how they combine with the score
}

// A weightFunction applies to the documents of its filter.
type weightFunction struct {
	filter query // nil is every document
	weight float32
}

// combine applies the weights that a document gets, 1 where it gets none.
func (q functionQuery) combine(score float32, weights []float32) float32 {
	if len(weights) == 0 {
		weights = []float32{1}
	}
	factor := weights[0] // all that score_mode first wants
	for _, w := range weights[1:] {
		switch q.scoreMode {
		case "multiply":
			factor *= w
		case "sum":
			factor += w
		case "max":
			factor = max(factor, w)
		case "min":
			factor = min(factor, w)
		}
	}
	if q.scoreMode == "avg" {
		factor = 1 // the average of constants of 1, each counted by its weight
	}
	switch q.boostMode {
	case "replace":
		return factor
	case "sum":
		return score + factor
	case "avg":
		return (score + factor) / 2
	case "max":
		return max(score, factor)
	case "min":
		return min(score, factor)
	default:
		return score * factor
	}
}

func (q functionQuery) explain(at place, boost float32) *explanation {
	inner := q.inner.explain(at, boost)
	if inner == nil || len(q.functions) == 0 {
		return inner
	}
	var weights []float32
	details := []*explanation{inner}
	for _, f := range q.functions {
		if f.filter == nil || f.filter.explain(at, 1) != nil {
			weights = append(weights, f.weight)
			details = append(details, explained(f.weight, "weight"))
		}
	}
	description := "function score, score mode [" + q.scoreMode + "], boost mode [" + q.boostMode + "], of:"
	return explained(q.combine(inner.Value, weights), description, details...)
}

func (q functionQuery) terms(yield func(field, term string)) { q.inner.terms(yield) }

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

// score returns the score of a document: the upper bits of its number and the
// seed, mixed as by SplitMix64.
func (q randomQuery) score(doc int) float32 {
	h := q.seed*0x9e3779b97f4a7c15 + uint64(doc) //nolint:gosec // it is not negative
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	return float32(h>>(64-randomBits)) / (1 << randomBits)
}

func (q randomQuery) explain(at place, boost float32) *explanation {
	s := q.score(at.doc)
	if s < q.least || q.inner.explain(at, 1) == nil {
		return nil
	}
	return explained(s*boost, "random score, of the seed and the document")
}

func (q randomQuery) terms(yield func(field, term string)) { q.inner.terms(yield) }

// boolQuery sums the scores of its clauses.
type boolQuery struct {
	must, should, filter, mustNot []query
	minShould                     int // how many of should have to match
}

// simplified returns a plain clause for a query that is nothing but one.
func (q boolQuery) simplified() query {
	scored := len(q.must) + len(q.should)
	if scored == 0 && len(q.filter) == 0 && len(q.mustNot) == 0 {
		return matchAll()
	}
	if scored == 1 && len(q.filter) == 0 && len(q.mustNot) == 0 && q.minShould <= len(q.should) {
		return slices.Concat(q.must, q.should)[0]
	}
	return q
}

func (q boolQuery) explain(at place, boost float32) *explanation {
	var details []*explanation
	sum, optionals := 0.0, 0 // Lucene sums in float64
	for _, sub := range q.must {
		e := sub.explain(at, boost)
		if e == nil {
			return nil
		}
		details, sum = append(details, e), sum+float64(e.Value)
	}
	for _, sub := range q.should {
		if e := sub.explain(at, boost); e != nil {
			details, sum = append(details, e), sum+float64(e.Value)
			optionals++
		}
	}
	for _, sub := range q.filter {
		e := sub.explain(at, 1)
		if e == nil {
			return nil
		}
		details = append(details, explained(0, "match on required clause, product of:", explained(0, "# clause"), e))
	}
	excludes := func(sub query) bool { return sub.explain(at, 1) != nil }
	if optionals < q.minShould || slices.ContainsFunc(q.mustNot, excludes) {
		return nil
	}
	return explained(float32(sum), "sum of:", details...)
}

func (q boolQuery) terms(yield func(field, term string)) {
	for _, sub := range slices.Concat(q.must, q.should, q.filter) {
		sub.terms(yield)
	}
}

// disMaxQuery takes the best score of its clauses, and adds tie times the
// others.
type disMaxQuery struct {
	clauses []query
	tie     float32
}

func (q disMaxQuery) combine(scores []float32) float32 {
	best, others := 0, 0.0
	for i, s := range scores {
		if s > scores[best] {
			best = i
		}
	}
	for i, s := range scores {
		if i != best {
			others += float64(s)
		}
	}
	return float32(float64(scores[best]) + others*float64(q.tie))
}

func (q disMaxQuery) explain(at place, boost float32) *explanation {
	var details []*explanation
	var scores []float32
	for _, sub := range q.clauses {
		if e := sub.explain(at, boost); e != nil {
			details, scores = append(details, e), append(scores, e.Value)
		}
	}
	if details == nil {
		return nil
	}
	description := "max plus " + floatText(q.tie) + " times others of:"
	switch q.tie {
	case 0:
		description = "max of:"
	case 1:
		description = "sum of:"
	}
	return explained(q.combine(scores), description, details...)
}

func (q disMaxQuery) terms(yield func(field, term string)) {
	for _, sub := range q.clauses {
		sub.terms(yield)
	}
}
