package form

import (
	"slices"

	"github.com/akin-search/akin/expand/query"
)

// AddedName begins the name of every added clause. Field and term follow, as in
// "akin:title:automobile". So a name belongs to one query of a search, because
// engines keep one query for a name.
const AddedName = "akin:"

// name returns the name of an added term's clause, "" for none.
func (w *builder) name(field, term string) string {
	if !w.named {
		return ""
	}
	return AddedName + field + ":" + term
}

func (w *builder) added(field, term string, boost float64) *query.Query {
	return w.Term(field, term, boost, w.name(field, term))
}

// onlyRescored reports whether the clause has terms that score in the rescore
// and are not in the query.
func (w *builder) onlyRescored() bool {
	return w.c.hasFeedback() || slices.ContainsFunc(w.divided, func(d division) bool { return len(d.left) > 0 })
}

// nameRescored adds the terms that only the rescore scores to the clause, with
// names. There they find nothing and score nothing. Not all engines report
// names in a rescore.
func (w *builder) nameRescored(clause *query.Query) *query.Query {
	named := w.Bool()
	for i := range w.c.Fields {
		f := &w.c.Fields[i]
		for k := range w.divided[i].left {
			named.Should(w.added(f.Name, w.divided[i].left[k].Term, 1))
		}
		for k := range f.Feedback {
			named.Should(w.added(f.Name, f.Feedback[k].Term, 1))
		}
	}
	return w.Bool().Must(clause).Should(w.Constant(named, 0))
}
