package demo

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A query is one node of a parsed query, bound to one index.
type query interface {
	// hits returns the documents that match, ascending by number, each with
	// its score times boost. The slice belongs to the caller.
	hits(ix *index, boost float32) []hit
	// explain returns how the score of doc comes about, nil where doc does
	// not match.
	explain(ix *index, doc int, boost float32) *explanation
	// terms calls yield for each field and term that the query looks for.
	terms(yield func(field, term string))
}

// A hit is one document that matches.
type hit struct {
	doc   int
	score float32
}

// weighted multiplies the scores of a query.
type weighted struct {
	query
	factor float32
}

func (q weighted) hits(ix *index, boost float32) []hit { return q.query.hits(ix, boost*q.factor) }

func (q weighted) explain(ix *index, doc int, boost float32) *explanation {
	return q.query.explain(ix, doc, boost*q.factor)
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

func (q termQuery) hits(ix *index, boost float32) []hit {
	f := ix.fields[q.field]
	if f == nil {
		return nil
	}
	list := f.postings[q.term]
	s := newBM25(f, len(list), boost)
	out := make([]hit, len(list))
	for i, p := range list {
		out[i] = hit{p.doc, s.score(p)}
	}
	return out
}

func (q termQuery) explain(ix *index, doc int, boost float32) *explanation {
	f := ix.fields[q.field]
	if f == nil {
		return nil
	}
	list := f.postings[q.term]
	i, ok := find(list, doc)
	if !ok {
		return nil
	}
	s := newBM25(f, len(list), boost)
	e := s.explain(list[i])
	return explained(e.Value, fmt.Sprintf("weight(%s:%s in %d) [PerFieldSimilarity], result of:", q.field, q.term, doc), e)
}

func (q termQuery) terms(yield func(field, term string)) { yield(q.field, q.term) }

// constantQuery gives every document that it matches the score 1.
type constantQuery struct {
	matches     func(ix *index) []int // ascending
	description string
	inner       query // whose terms to highlight, or nil
}

func (q constantQuery) hits(ix *index, boost float32) []hit {
	docs := q.matches(ix)
	out := make([]hit, len(docs))
	for i, doc := range docs {
		out[i] = hit{doc, boost}
	}
	return out
}

func (q constantQuery) explain(ix *index, doc int, boost float32) *explanation {
	if _, ok := slices.BinarySearch(q.matches(ix), doc); !ok {
		return nil
	}
	if boost == 1 {
		return explained(1, q.description)
	}
	return explained(boost, q.description+"^"+floatText(boost))
}

func (q constantQuery) terms(yield func(field, term string)) {
	if q.inner != nil {
		q.inner.terms(yield)
	}
}

func matchAll() query { return constantQuery{(*index).live, "*:*", nil} }

func matchNone() query {
	return constantQuery{func(*index) []int { return nil }, "MatchNoDocsQuery", nil}
}

// constantScore gives the documents of q the score 1.
func constantScore(q query) query {
	matches := func(ix *index) []int {
		hits := q.hits(ix, 1)
		docs := make([]int, len(hits))
		for i, h := range hits {
			docs[i] = h.doc
		}
		return docs
	}
	return constantQuery{matches, "ConstantScore", q}
}

// numberQuery matches the documents with a value in [low, high].
func numberQuery(field string, low, high float64) query {
	matches := func(ix *index) []int {
		f := ix.fields[field]
		if f == nil {
			return nil
		}
		var docs []int
		for doc, values := range f.numbers {
			if slices.ContainsFunc(values, func(v float64) bool { return low <= v && v <= high }) {
				docs = append(docs, doc)
			}
		}
		slices.Sort(docs)
		return docs
	}
	return constantQuery{matches, fmt.Sprintf("%s:[%v TO %v]", field, low, high), nil}
}

// existsQuery matches the documents with a value in the field, or in any field
// of the object of that name.
func existsQuery(field string) query {
	matches := func(ix *index) []int {
		var docs []int
		for name, f := range ix.fields {
			if name == field || strings.HasPrefix(name, field+".") {
				docs = append(docs, f.docs...)
			}
		}
		slices.Sort(docs)
		return slices.Compact(docs)
	}
	return constantQuery{matches, "ConstantScore(FieldExistsQuery [field=" + field + "])", nil}
}

// idsQuery matches documents by their ids.
func idsQuery(ids []string) query {
	matches := func(ix *index) []int {
		var docs []int
		for _, id := range ids {
			if doc, ok := ix.byID[id]; ok {
				docs = append(docs, doc)
			}
		}
		slices.Sort(docs)
		return slices.Compact(docs)
	}
	return constantQuery{matches, "_id:(" + strings.Join(ids, " ") + ")", nil}
}

// scriptQuery replaces the scores of a query.
type scriptQuery struct {
	inner  query
	script script
}

func (q scriptQuery) hits(ix *index, boost float32) []hit {
	out := q.inner.hits(ix, 1)
	for i := range out {
		out[i].score = q.script.run(out[i].score) * boost
	}
	return out
}

func (q scriptQuery) explain(ix *index, doc int, boost float32) *explanation {
	inner := q.inner.explain(ix, doc, 1)
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

func (q functionQuery) hits(ix *index, boost float32) []hit {
	out := q.inner.hits(ix, boost)
	weights := make([][]float32, len(out))
	for _, f := range q.functions {
		var filter []hit
		if f.filter != nil {
			filter = f.filter.hits(ix, 1)
		}
		for i := range out {
			_, in := slices.BinarySearchFunc(filter, out[i].doc, func(h hit, doc int) int { return h.doc - doc })
			if f.filter == nil || in {
				weights[i] = append(weights[i], f.weight)
			}
		}
	}
	for i := range out {
		out[i].score = q.combine(out[i].score, weights[i])
	}
	return out
}

// combine applies the weights that a document gets, 1 where it gets none.
func (q functionQuery) combine(score float32, weights []float32) float32 {
	if len(weights) == 0 {
		if len(q.functions) == 0 {
			return score
		}
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

func (q functionQuery) explain(ix *index, doc int, boost float32) *explanation {
	inner := q.inner.explain(ix, doc, boost)
	if inner == nil {
		return nil
	}
	var weights []float32
	details := []*explanation{inner}
	for _, f := range q.functions {
		if f.filter == nil || f.filter.explain(ix, doc, 1) != nil {
			weights = append(weights, f.weight)
			details = append(details, explained(f.weight, "weight"))
		}
	}
	if len(q.functions) == 0 {
		return inner
	}
	description := fmt.Sprintf("function score, score mode [%s], boost mode [%s], of:", q.scoreMode, q.boostMode)
	return explained(q.combine(inner.Value, weights), description, details...)
}

func (q functionQuery) terms(yield func(field, term string)) { q.inner.terms(yield) }

// next returns the nearest float64 above (up) or below v, for the open ends of
// ranges.
func next(v float64, up bool) float64 {
	if up {
		return math.Nextafter(v, math.Inf(1))
	}
	return math.Nextafter(v, math.Inf(-1))
}
