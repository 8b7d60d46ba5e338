package expand

import (
	"cmp"
	"slices"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// adjusted multiplies the values of added terms by the factors in by, if any,
// and drops terms whose value becomes 0. It changes a copy of the clauses.
func adjusted(clauses []form.Clause, by []Adjustment) []form.Clause {
	if len(by) == 0 {
		return clauses
	}
	factor := func(term string) float64 {
		for _, t := range by {
			if t.Term == term {
				return t.Factor
			}
		}
		return 1
	}
	clauses = form.Copied(clauses)
	for c, f := range form.Fields(clauses) {
		had := len(f.Added) + len(f.Feedback) + len(f.Alternatives)
		f.Alternatives = slices.Clone(f.Alternatives)
		for k := range f.Alternatives {
			f.Alternatives[k].Similarity = min(f.Alternatives[k].Similarity*factor(simmatrix.Spelled(f.Alternatives[k].Term)), 1)
		}
		f.Alternatives = slices.DeleteFunc(f.Alternatives, func(a terms.Alternative) bool { return a.Similarity == 0 })
		f.Added, f.Feedback = slices.Clone(f.Added), slices.Clone(f.Feedback)
		for k := range f.Added {
			f.Added[k].V *= factor(f.Added[k].Term)
		}
		for k := range f.Feedback {
			f.Feedback[k].Boost *= factor(f.Feedback[k].Term)
		}
		f.Added = slices.DeleteFunc(f.Added, func(t terms.Candidate) bool { return t.V == 0 })
		f.Feedback = slices.DeleteFunc(f.Feedback, func(t terms.FeedbackTerm) bool { return t.Boost == 0 })
		slices.SortStableFunc(f.Added, func(a, b terms.Candidate) int { return cmp.Compare(b.V, a.V) })
		if had > 0 && len(f.Added)+len(f.Feedback)+len(f.Alternatives) == 0 && f.Reason == "" && !c.Exact && f.Beside == nil {
			c.LeaveField(f, reason.NoNeighbors)
		}
	}
	return clauses
}
