package form

import (
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/reason"
)

// fuzzyExpansions is how many terms engines expand a fuzzy term to by default.
const fuzzyExpansions = 50

// leaves returns an upper estimate of the original's clauses as the engine
// counts them.
func (c *Clause) leaves() int {
	if c.Parsed.Role == dsl.Note {
		return 0 // counted when the body was read
	}
	n := 0
	for i := range c.Fields {
		n += c.leavesOf(i)
	}
	if c.Parsed.Fuzzy {
		n *= fuzzyExpansions
	}
	return n
}

// leavesOf estimates the clauses of field i, without fuzziness.
func (c *Clause) leavesOf(i int) (n int) {
	if a := c.Fields[i].Analysis; a != nil {
		n = len(a.Terms)
	} else { // one per word, or per character if there are no blanks
		text := c.Parsed.Text
		n = max(len(strings.Fields(text)), len(text)/3) + 1
	}
	if c.Parsed.Prefix {
		n++
	}
	return n
}

// Cut drops added terms of clauses, where over of count written clauses are too
// many. Feedback terms go first, then repeatedly the weakest
// term of the field that has the most; of equal fields the last one.
// Alternatives go only where there are no other terms.
func Cut(clauses []Clause, over, count int) {
	n, added := (over+1)/2, 0 // a term may be written twice, so half as many may do
	for _, f := range Fields(clauses) {
		added += len(f.Feedback)
	}
	for i := range clauses {
		added += clauses[i].Added()
	}
	if added == 0 {
		CutAlternatives(clauses, over, count)
		return
	}
	for _, f := range Fields(clauses) {
		cut := min(n, len(f.Feedback))
		f.Feedback = f.Feedback[:len(f.Feedback)-cut]
		n -= cut
		if cut > 0 {
			f.leaveEmpty(reason.TermLimit)
		}
	}
	for range n {
		f := fullest(clauses, func(f *Field) int { return len(f.Added) })
		if f == nil {
			break
		}
		f.Added = f.Added[:len(f.Added)-1]
		f.leaveEmpty(reason.TermLimit)
	}
}

// fullest returns the field that has the most of something, the last one of
// equals, or nil.
func fullest(clauses []Clause, count func(f *Field) int) (out *Field) {
	most := 1
	for c, f := range Fields(clauses) {
		if n := count(f); c.Reason == "" && f.Reason == "" && n >= most {
			out, most = f, n
		}
	}
	return out
}

// leaveEmpty sets the reason of a field to which nothing is added any longer.
func (f *Field) leaveEmpty(why reason.Reason) {
	if f.Reason == "" && len(f.Added)+len(f.Alternatives)+len(f.Feedback) == 0 {
		f.Reason = why
	}
}

// CutAlternatives drops alternatives of clauses, where over of count written
// clauses are too many: as large a share. One may take dozens of clauses.
func CutAlternatives(clauses []Clause, over, count int) {
	all := 0
	for _, f := range Fields(clauses) {
		all += len(f.Alternatives)
	}
	for range all*over/count + 1 {
		f := fullest(clauses, func(f *Field) int { return len(f.Alternatives) })
		if f == nil {
			break
		}
		last := len(f.Alternatives) - 1
		f.Truncated = true
		f.Cut = append(slices.Clip(f.Cut), f.Alternatives[last])
		f.Alternatives = f.Alternatives[:last]
		f.leaveEmpty(reason.TermLimit)
	}
}

// CutExact drops the n added terms of the form hard that contribute least to
// the scores, or all. It reports whether there were any.
func CutExact(clauses []Clause, n int) bool {
	for k := range n {
		var weakest *Field // its last added term contributes least
		least := math.Inf(1)
		for c, f := range Fields(clauses) {
			last := len(f.Added) - 1
			if f.Exact == nil || last < 0 {
				continue
			}
			if v := c.Parsed.Boost * f.Boost * f.Added[last].V / f.Exact.QueryNorm; v <= least {
				weakest, least = f, v
			}
		}
		if weakest == nil {
			return k > 0
		}
		weakest.Added, weakest.Truncated = weakest.Added[:len(weakest.Added)-1], true
	}
	return n > 0
}

// maxLevels is how deep queries may be nested, including the innermost.
// Elasticsearch 7.12 to 8.0 reject more than 20, later ones more than 30, or
// what indices.query.bool.max_nested_depth says. OpenSearch 3 rejects more than
// 20 queries of the kind nested (index.query.max_nested_depth). Earlier
// versions of both accept any depth.
const maxLevels = 20
