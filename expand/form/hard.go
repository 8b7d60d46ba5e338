package form

// boost returns the factor of a term that brings v, for the engine's idf.
func (x *Exact) boost(v, idf float64) float64 {
	if x.Scripted {
		return v / x.QueryNorm
	}
	return v / (x.QueryNorm * x.Factor * idf)
}

// exact writes the measure of a clause.
func (w *clauseWriter) exact() {
	c := w.c
	n := 0
	for i := range c.Fields {
		if c.Fields[i].Exact != nil {
			n++
		}
	}
	w.beginFields(n)
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Exact == nil {
			continue
		}
		// A single field needs no count of its own where the original decides
		// what is found; of several, one may match and another must not score.
		count := c.Counted() && (n > 1 || !c.SameMatches)
		w.comma()
		if count {
			w.raw(`{"bool":{"filter":[`)
			w.words(i, i+1)
			w.raw(`],"should":[`)
		}
		f.measure(w.buffer, c.Parsed.Boost*f.Boost)
		if count {
			w.raw(`]}}`)
		}
	}
	w.endFields(n)
}

// measure writes the measure of one field, times boost.
func (f *Field) measure(w *buffer, boost float64) {
	x := f.Exact
	w.raw(`{"function_score":{"query":{"bool":{"should":[`)
	for i := range f.Terms.Origins {
		o := &f.Terms.Origins[i]
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
}
