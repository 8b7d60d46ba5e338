package form

import (
	"math"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/reason"
)

// fuzzyExpansions is how many terms engines expand a fuzzy term to by default.
const fuzzyExpansions = 50

// count returns an upper estimate of the original's clauses as the engine
// counts them.
func (c *Clause) count() int {
	if c.Note {
		return 0 // counted when the body was read
	}
	n := 0
	for i := range c.Fields {
		n += c.countField(i)
	}
	if c.Fuzzy {
		n *= fuzzyExpansions
	}
	return n
}

// countField estimates the clauses of field i, without fuzziness.
func (c *Clause) countField(i int) (n int) {
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

// Flat returns the given form, or the first simpler one in which the clause is
// not nested too deep. It returns Auto if there is none.
func (c *Clause) Flat(s Scoring) Scoring {
	for s != Auto && c.TooDeep(s) {
		s--
	}
	return s
}

// TooDeep reports whether the clause would be nested too deep in a form.
func (c *Clause) TooDeep(s Scoring) bool { return c.Parsed.Depth+c.levels(s) > maxLevels }

// levels returns the depth of a form, including the innermost query.
func (c *Clause) levels(s Scoring) int {
	own := c.ownLevels(s)
	if !c.HasBeside() {
		return own
	}
	measure := 4 // bool, function_score, bool, term
	if len(c.Fields) > 1 {
		measure++ // dis_max
	}
	if c.hasFeedback() {
		measure++ // bool
	}
	return max(own+1, measure)
}

// ownLevels are those without the soft cosine beside the clause.
func (c *Clause) ownLevels(s Scoring) int {
	outside := 0
	if c.hasFeedback() {
		if !c.Writes() {
			return 2 // bool, term
		}
		outside = 1 // bool
	}
	n := outside + [...]int{
		Linear:    2, // bool, term
		Grouped:   4, // bool, two dis_max, term
		Saturated: 5, // bool, script_score, bool, script_score, term
		Hard:      4, // bool, function_score, bool, term
		Vectors:   4, // bool, dis_max, bool, term
	}[s]
	if c.HasAlternatives() && s != Hard && s != Vectors {
		if n++; s == Linear { // bool, dis_max, bool, dis_max, term
			n += 2
		}
	}
	several, counted := len(c.Fields) > 1, c.Counted() && !c.SameMatches
	switch {
	case s == Vectors:
	case s == Hard:
		if several {
			n++ // dis_max
		}
		if counted || several && c.Counted() {
			n++ // bool, with either the groups or the function_score in it
		}
	case s == Linear && counted:
		n += 3 // two bool, one of them around the filter
	case several:
		n += 2 // dis_max and bool
	case counted:
		n++ // bool
	}
	return n
}
