package form

import (
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/simmatrix"
)

// exact writes the measure of field i, with a count of its words if count is
// set.
func (w *clauseWriter) exact(i int, count bool) {
	f := &w.c.Fields[i]
	w.comma()
	if count {
		w.put(`{"bool":{"filter":[`)
		w.words(i, i+1)
		w.put(`],"should":[`)
	}
	w.measure(f.Exact, f.Terms.Origins, f.Added, f.Stats.DocCount, w.c.Parsed.Boost*f.Boost, f.Name)
	if count {
		w.put(`]}}`)
	}
}

// measure writes a measure over the terms of a text and added ones, in a linear
// field of docs documents. Names of terms, if any, are of the field named.
func (w *clauseWriter) measure(x *Exact, origins terms.Text, added []terms.Candidate, docs int64, boost float64, named string) {
	w.put(`{"function_score":{"query":{"bool":{"should":[`)
	for k := range origins {
		w.term(x.Field, origins[k].Term, boost*x.boost(origins[k].V, origins[k].IDF))
	}
	for k := range added {
		a, name := &added[k], ""
		if named != "" {
			name = w.name(named, a.Term)
		}
		w.namedTerm(x.Field, a.Term, boost*x.boost(a.V, simmatrix.IDF(a.DocFreq, docs)), name)
	}
	w.put(`]}},"field_value_factor":{"field":`, text(x.Norm), `,"modifier":"reciprocal","missing":`, x.Missing, `},"boost_mode":"multiply"}}`)
}

// beginBeside begins the clause whose score the soft cosine is added to. It
// finds what the clause finds; without a count also what has only terms of the
// measure, among hits that are found already.
func (w *clauseWriter) beginBeside() {
	if w.requires() {
		w.put(`{"bool":{"must":[`)
	} else {
		w.put(`{"bool":{"should":[`)
	}
}

func (w *clauseWriter) requires() bool { return w.role != ordering || w.c.SameMatches || w.c.Counted() }

// endBeside writes the soft cosine of each field that has it.
func (w *clauseWriter) endBeside() {
	if w.requires() {
		w.put(`],"should":[`)
	}
	n := 0
	for i := range w.c.Fields {
		if w.c.Fields[i].Beside != nil {
			n++
		}
	}
	w.beginFields(n)
	for i := range w.c.Fields {
		f := &w.c.Fields[i]
		if b := f.Beside; b != nil {
			w.comma()
			w.measure(&b.Exact, b.Terms.Origins, b.Terms.Candidates, b.Docs, b.Most*w.c.Parsed.Boost*f.Boost, "")
		}
	}
	w.endFields(n)
	w.put(`]}}`)
}
