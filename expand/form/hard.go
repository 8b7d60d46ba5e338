package form

// exact writes the measure of field i, with a count of its words if count is
// set.
func (w *clauseWriter) exact(i int, count bool) {
	f := &w.c.Fields[i]
	x, boost := f.Exact, w.c.Parsed.Boost*f.Boost
	w.comma()
	if count {
		w.put(`{"bool":{"filter":[`)
		w.words(i, i+1)
		w.put(`],"should":[`)
	}
	w.put(`{"function_score":{"query":{"bool":{"should":[`)
	for k := range f.Terms.Origins {
		o := &f.Terms.Origins[k]
		w.term(x.Field, o.Term, boost*x.boost(o.V, o.IDF))
	}
	for k := range f.Added {
		a := &f.Added[k]
		w.namedTerm(x.Field, a.Term, boost*x.boost(a.V, f.idf(a.DocFreq)), w.name(f.Name, a.Term))
	}
	w.put(`]}},"field_value_factor":{"field":`, text(x.Norm), `,"modifier":"reciprocal","missing":`, x.Missing, `},"boost_mode":"multiply"}}`)
	if count {
		w.put(`]}}`)
	}
}
