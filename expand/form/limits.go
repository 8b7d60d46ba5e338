package form

import (
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/reason"
)

// fuzzyExpansions is how many terms engines expand a fuzzy term to by default.
const fuzzyExpansions = 50

// leaves returns an upper estimate of the original's clauses as the engine
// counts them.
func (c *Clause) leaves() int {
	if c.Note {
		return 0 // counted when the body was read
	}
	n := 0
	for i := range c.Fields {
		n += c.leavesOf(i)
	}
	if c.Fuzzy {
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
	if c.Prefix {
		n++
	}
	return n
}

// Cut returns clauses with fewer added terms, where over of count written
// clauses are too many. Feedback terms go first, then repeatedly the weakest
// term of the field that has the most; of equal fields the last one.
// Alternatives go only where there are no other terms.
func Cut(clauses []Clause, over, count int) []Clause {
	n, terms := (over+1)/2, 0 // a term may be written twice, so half as many may do
	for _, f := range Fields(clauses) {
		terms += len(f.Feedback)
	}
	for i := range clauses {
		terms += clauses[i].Added()
	}
	if terms == 0 {
		return CutAlternatives(clauses, over, count)
	}
	clauses = Copied(clauses)
	for _, f := range Fields(clauses) {
		cut := min(n, len(f.Feedback))
		f.Feedback = f.Feedback[:len(f.Feedback)-cut]
		if n -= cut; cut > 0 && f.Reason == "" && len(f.Feedback)+len(f.Added)+len(f.Alternatives) == 0 {
			f.Reason = reason.TermLimit
		}
	}
	for range n {
		var fullest *Field
		most := 1
		for c, f := range Fields(clauses) {
			if c.Reason == "" && f.Reason == "" && len(f.Added) >= most {
				fullest, most = f, len(f.Added)
			}
		}
		if fullest == nil {
			break
		}
		if fullest.Added = fullest.Added[:most-1]; most == 1 && len(fullest.Alternatives) == 0 {
			fullest.Reason = reason.TermLimit
		}
	}
	return clauses
}

// CutAlternatives returns clauses with fewer alternatives, where over of count
// written clauses are too many: with as large a share less. One may take dozens
// of clauses.
func CutAlternatives(clauses []Clause, over, count int) []Clause {
	clauses = Copied(clauses)
	all := 0
	for _, f := range Fields(clauses) {
		all += len(f.Alternatives)
	}
	for range all*over/count + 1 {
		cutAlternative(clauses)
	}
	return clauses
}

// cutAlternative removes the last alternative of the field that has the most.
func cutAlternative(clauses []Clause) {
	var fullest *Field
	most := 1
	for c, f := range Fields(clauses) {
		if c.Reason == "" && f.Reason == "" && len(f.Alternatives) >= most {
			fullest, most = f, len(f.Alternatives)
		}
	}
	if fullest == nil {
		return
	}
	fullest.Truncated = true
	fullest.Cut = append(slices.Clip(fullest.Cut), fullest.Alternatives[most-1])
	if fullest.Alternatives = fullest.Alternatives[:most-1]; most == 1 && len(fullest.Added)+len(fullest.Feedback) == 0 {
		fullest.Reason = reason.TermLimit
	}
}

// CutExact returns clauses without the n added terms of the form hard that
// contribute least to the scores, or without all. It reports whether there were
// any.
func CutExact(clauses []Clause, n int) ([]Clause, bool) {
	clauses = Copied(clauses)
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
			return clauses, k > 0
		}
		weakest.Added, weakest.Truncated = weakest.Added[:len(weakest.Added)-1], true
	}
	return clauses, n > 0
}

// maxLevels is how deep queries may be nested, including the innermost.
// Elasticsearch 7.12 to 8.0 reject more than 20, later ones more than 30, or
// what indices.query.bool.max_nested_depth says. OpenSearch 3 rejects more than
// 20 queries of the kind nested (index.query.max_nested_depth). Earlier
// versions of both accept any depth.
const maxLevels = 20
