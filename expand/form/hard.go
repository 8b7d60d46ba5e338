package form

// exact writes the measure of field i, and a count of its words if asked for.
func (w *clauseWriter) exact(i int, count bool) {
	f := &w.c.Fields[i]
	x, boost := f.Exact, w.c.Parsed.Boost*f.Boost
	w.comma()
	if count {
		w.raw(`{"bool":{"filter":[`)
		w.words(i, i+1)
		w.raw(`],"should":[`)
	}
	w.raw(`{"function_score":{"query":{"bool":{"should":[`)
	for k := range f.Terms.Origins {
		o := &f.Terms.Origins[k]
		w.term(x.Field, o.Term, boost*x.boost(o.V, o.IDF))
	}
	for k := range f.Added {
		w.term(x.Field, f.Added[k].Term, boost*x.boost(f.Added[k].V, f.idf(f.Added[k].DocFreq)))
	}
	w.raw(`]}},"field_value_factor":{"field":`)
	w.string(x.Norm)
	w.raw(`,"modifier":"reciprocal","missing":`)
	w.number(x.Missing)
	w.raw(`},"boost_mode":"multiply"}}`)
	if count {
		w.raw(`]}}`)
	}
}
