package form

import (
	"slices"

	"github.com/akin-search/akin/expand/terms"
)

// AddedName begins the name of every added clause. Field and term follow, as in
// "akin:title:automobile". So a name belongs to one query of a search, because
// engines keep one query for a name.
const AddedName = "akin:"

// name returns the name of an added term's clause, "" for none.
func (w *clauseWriter) name(field, term string) string {
	if !w.named {
		return ""
	}
	return AddedName + field + ":" + term
}

func (w *clauseWriter) added(field, term string, boost float64) {
	w.namedTerm(field, term, boost, w.name(field, term))
}

// namedSet writes a query that finds and scores the same as [buffer.termSet],
// but names each term.
func (w *clauseWriter) namedSet(field string, i int, added []terms.Candidate, boost float64) {
	w.comma()
	w.put(`{"constant_score":{"filter":{"bool":{"should":[`)
	for k := range added {
		if added[k].In(i) {
			w.added(field, added[k].Term, 1)
		}
	}
	w.put(`]}}`)
	w.boost(boost)
	w.put(`}}`)
}

// onlyRescored reports whether the clause has terms that score in the rescore
// and are not in the query.
func (w *clauseWriter) onlyRescored() bool {
	return w.c.hasFeedback() || slices.ContainsFunc(w.divided, func(d division) bool { return len(d.left) > 0 })
}

// nameRescored writes the terms that only the rescore scores after the clause,
// with names. There they find nothing and score nothing. Not all engines report
// names in a rescore.
func (w *clauseWriter) nameRescored() {
	w.put(`],"should":[{"constant_score":{"filter":{"bool":{"should":[`)
	for i := range w.c.Fields {
		f := &w.c.Fields[i]
		for k := range w.divided[i].left {
			w.added(f.Name, w.divided[i].left[k].Term, 1)
		}
		for k := range f.Feedback {
			w.added(f.Name, f.Feedback[k].Term, 1)
		}
	}
	w.put(`]}},"boost":0}}]}}`)
}
