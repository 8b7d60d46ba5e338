package expand

import (
	"cmp"
	"slices"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
)

// An Adjustment multiplies what an added term counts for, for somebody who
// tries what it does.
type Adjustment struct {
	Term   string  `json:"term"`
	Factor float64 `json:"factor"` // at least 0, which leaves the term out
}

// adjust does so with the terms that have been selected.
func (a *asker) adjust() {
	if len(a.s.req.Adjusted) == 0 {
		return
	}
	factor := func(term string) float64 {
		for _, t := range a.s.req.Adjusted {
			if t.Term == term {
				return t.Factor
			}
		}
		return 1
	}
	for c, f := range form.Fields(a.clauses) {
		had := len(f.Added) + len(f.Feedback)
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
		if had > 0 && len(f.Added)+len(f.Feedback) == 0 && f.Reason == "" && !c.Exact {
			(&target{clause: c, Field: f}).leave(reason.NoNeighbors)
		}
	}
}
