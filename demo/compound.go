package demo

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

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

// A vote is what one clause says of one document.
type vote struct {
	hit
	clause role
}

type role uint8

const (
	required role = iota // must and filter
	optional             // should
	excluded             // must_not
)

func (q boolQuery) hits(ix *index, boost float32) []hit {
	var votes []vote
	collect := func(queries []query, clause role, boost float32, scored bool) {
		for _, sub := range queries {
			for _, h := range sub.hits(ix, boost) {
				if !scored {
					h.score = 0
				}
				votes = append(votes, vote{h, clause})
			}
		}
	}
	collect(q.must, required, boost, true)
	collect(q.should, optional, boost, true)
	collect(q.filter, required, 1, false)
	collect(q.mustNot, excluded, 1, false)
	needed := len(q.must) + len(q.filter)
	if needed == 0 && q.minShould == 0 {
		// Only exclusions: everything else matches, with score 0.
		collect([]query{matchAll()}, required, 1, false)
		needed = 1
	}
	var out []hit
	for group := range byDoc(votes, func(v vote) int { return v.doc }) {
		if h, ok := q.decide(group, needed); ok {
			out = append(out, h)
		}
	}
	return out
}

// decide counts the votes on one document.
func (q boolQuery) decide(votes []vote, needed int) (hit, bool) {
	var counts [excluded + 1]int
	sum := 0.0 // Lucene sums in float64
	for _, v := range votes {
		counts[v.clause]++
		sum += float64(v.score)
	}
	ok := counts[excluded] == 0 && counts[required] == needed && counts[optional] >= q.minShould
	return hit{votes[0].doc, float32(sum)}, ok
}

// byDoc sorts entries by document, keeping the order of the entries of one
// document, and yields the entries of each document.
func byDoc[E any](entries []E, doc func(E) int) func(func([]E) bool) {
	slices.SortStableFunc(entries, func(a, b E) int { return cmp.Compare(doc(a), doc(b)) })
	return func(yield func([]E) bool) {
		for start := 0; start < len(entries); {
			end := start + 1
			for end < len(entries) && doc(entries[end]) == doc(entries[start]) {
				end++
			}
			if !yield(entries[start:end]) {
				return
			}
			start = end
		}
	}
}

func (q boolQuery) explain(ix *index, doc int, boost float32) *explanation {
	var details []*explanation
	sum, optionals := 0.0, 0
	for _, sub := range q.must {
		e := sub.explain(ix, doc, boost)
		if e == nil {
			return nil
		}
		details, sum = append(details, e), sum+float64(e.Value)
	}
	for _, sub := range q.should {
		if e := sub.explain(ix, doc, boost); e != nil {
			details, sum = append(details, e), sum+float64(e.Value)
			optionals++
		}
	}
	for _, sub := range q.filter {
		e := sub.explain(ix, doc, 1)
		if e == nil {
			return nil
		}
		details = append(details, explained(0, "match on required clause, product of:", explained(0, "# clause"), e))
	}
	excludes := func(sub query) bool { return sub.explain(ix, doc, 1) != nil }
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

func (q disMaxQuery) hits(ix *index, boost float32) []hit {
	lists := make([][]hit, len(q.clauses))
	for i, sub := range q.clauses {
		lists[i] = sub.hits(ix, boost)
	}
	all := slices.Concat(lists...)
	var out []hit
	var scores []float32
	for group := range byDoc(all, func(h hit) int { return h.doc }) {
		scores = scores[:0]
		for _, h := range group {
			scores = append(scores, h.score)
		}
		out = append(out, hit{group[0].doc, q.combine(scores)})
	}
	return out
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

func (q disMaxQuery) explain(ix *index, doc int, boost float32) *explanation {
	var details []*explanation
	var scores []float32
	for _, sub := range q.clauses {
		if e := sub.explain(ix, doc, boost); e != nil {
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

// minimumShouldMatch returns how many of n optional clauses the specification
// asks for: "3", "-1" (all but one), "75%", "-25%", or "2<75% 9<-3" (up to 2
// all, up to 9 three quarters, above all but three). Shares are rounded down.
// The result can exceed n; then nothing matches.
func minimumShouldMatch(spec string, n int) (int, error) {
	spec = strings.TrimSpace(spec)
	if !strings.Contains(spec, "<") {
		return simpleMinimum(spec, n)
	}
	result := n
	for part := range strings.FieldsSeq(spec) {
		above, rest, ok := strings.Cut(part, "<")
		limit, err := strconv.Atoi(above)
		if !ok || err != nil {
			return 0, badRequest("illegal_argument_exception", "minimum_should_match [%s] is malformed", spec)
		}
		if n <= limit {
			return result, nil
		}
		if result, err = simpleMinimum(rest, n); err != nil {
			return 0, err
		}
	}
	return result, nil
}

func simpleMinimum(spec string, n int) (int, error) {
	number, percent := strings.CutSuffix(spec, "%")
	value, err := strconv.Atoi(number)
	if err != nil || value > math.MaxInt16 || value < math.MinInt16 {
		return 0, badRequest("illegal_argument_exception", "minimum_should_match [%s] is malformed", spec)
	}
	butFor := value < 0
	if percent {
		value = n * value / 100 // truncates toward zero, so that -25% of 3 is none
	}
	if butFor {
		value += n
	}
	return max(value, 0), nil
}
