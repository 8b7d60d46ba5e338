package demo

import "slices"

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
