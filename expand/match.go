package expand

// matchGroups writes a query that finds documents with as many words of the
// text as the clause asks for, each by itself or by a neighbor: in one of the
// fields, or for a termwise clause in any of them.
func (w *writer) matchGroups(c *clause) {
	if c.termwise {
		w.groups(c, c.targets)
		return
	}
	for i := range c.targets {
		if c.targets[i].analysis != nil {
			w.groups(c, c.targets[i:i+1])
		}
	}
}

// groups writes the groups of fields that have the same terms.
func (w *writer) groups(c *clause, fields []target) {
	a := fields[0].analysis
	w.comma()
	w.raw(`{"bool":{"should":[`)
	for k := range a.Terms {
		if k > 0 && a.Positions[k] == a.Positions[k-1] {
			continue // written with the first term of the position
		}
		w.comma()
		w.raw(`{"bool":{"should":[`)
		for m := k; m < len(a.Terms) && a.Positions[m] == a.Positions[k]; m++ {
			for i := range fields {
				w.either(&fields[i], i, &fields[0], a.Terms[m])
			}
		}
		w.raw(`]}}`)
	}
	w.raw(`]`)
	w.minimum(c, groupCount(&fields[0]))
	w.raw(`}}`)
}

// either writes a term and the terms added for it in field i; lead has the
// selection.
func (w *writer) either(t *target, i int, lead *target, term string) {
	w.comma()
	w.term(t.field, term, 1)
	if lead.exact != nil {
		w.related(t, lead, lead.sel.originOf(term))
		return
	}
	added := w.added(lead)
	for k := range added {
		if c := &added[k]; c.in(i) && lead.sel.origins[c.origin].term == term {
			w.comma()
			w.term(t.field, c.term, 1)
		}
	}
}

// groupCount returns how many words the engine counts for
// minimum_should_match: the positions of the text, repeated words included.
func groupCount(t *target) int {
	n := 0
	for k := range t.analysis.Positions {
		if k == 0 || t.analysis.Positions[k] != t.analysis.Positions[k-1] {
			n++
		}
	}
	return n
}

// minimum writes how many of n groups have to match. The engine ignores
// minimum_should_match where the text is one word, and where the operator is
// "and".
func (w *writer) minimum(c *clause, n int) {
	switch {
	case n < 2:
	case c.every:
		w.raw(`,"minimum_should_match":"100%"`)
	case len(c.minimum) > 0:
		w.raw(`,"minimum_should_match":`)
		w.out = append(w.out, c.minimum...)
	}
}
