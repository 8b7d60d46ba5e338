package expand

// decide chooses the form of a clause.
func (j *job) decide(c *clause) (Form, Reason) {
	if j.options.Scoring == FormLinear {
		return FormLinear, ""
	}
	for i := range c.targets {
		t := &c.targets[i]
		if !c.plain || t.analysis == nil || !t.analysis.single() {
			return FormLinear, ReasonNotPlain
		}
	}
	if j.options.Scoring == FormGrouped {
		return FormGrouped, ""
	}
	for i := range c.targets {
		t := &c.targets[i]
		switch {
		case len(t.sel.candidates) == 0:
		case t.stats.Scale == 0 || t.analysis.Weighting != WeightBM25:
			return FormGrouped, ReasonScale
		case !t.stats.Scripts:
			return FormGrouped, ReasonNoScripts
		case t.analysis.Shards > 1 && j.params.searchType != "" && j.params.searchType != dfs:
			return FormGrouped, ReasonSearchType
		}
	}
	return FormSaturated, ""
}

// result writes the rewritten body.
func (j *job) result() *Result {
	scan := &j.scanner.scan
	clauses := j.explain()
	written := false
	w := writer{strength: j.options.Strength, matching: j.options.Matching}
	at := 0
	copyTo := func(end int) {
		w.out = append(w.out, j.body[at:end]...)
		at = end
	}
	highlight := func() { // the original goes in where the highlighter looks
		if scan.highlight > 0 && at <= scan.highlight {
			copyTo(scan.highlight)
			w.raw(`"highlight_query":`)
			w.out = append(w.out, scan.query.of(j.body)...)
			if !scan.highlightEmpty {
				w.raw(",")
			}
		}
	}
	added, needDFS := 0, false
	for i := range scan.clauses {
		added += scan.clauses[i].added()
	}
	if added == 0 {
		return &Result{Clauses: clauses} // each says why
	}
	w.out = make([]byte, 0, len(j.body)+added*bytesPerTerm+4*scan.query.len())
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.added() == 0 {
			continue
		}
		if !written && scan.highlight < scan.query.start {
			highlight()
		}
		written = true
		copyTo(c.at.start)
		w.clause(c, c.at.of(j.body))
		at = c.at.end
		needDFS = needDFS || c.form == FormSaturated && c.shards() > 1
	}
	highlight()
	copyTo(len(j.body))
	return &Result{Rewritten: true, RawQuery: j.params.rewritten(j.req.RawQuery, needDFS), Body: w.out, Clauses: clauses}
}

// bytesPerTerm is about what one added term takes in the largest form.
const bytesPerTerm = 220

func (s span) len() int { return s.end - s.start }

// added returns how many terms are added to the clause.
func (c *clause) added() int {
	n := 0
	for i := range c.targets {
		if c.targets[i].reason == "" {
			n += len(c.targets[i].sel.candidates)
		}
	}
	return n
}

func (c *clause) shards() int {
	n := 0
	for i := range c.targets {
		if a := c.targets[i].analysis; a != nil {
			n = max(n, a.Shards)
		}
	}
	return n
}

// explain decides the forms and tells of every target what is done with it.
func (j *job) explain() []Clause {
	scan := &j.scanner.scan
	var out []Clause
	w := writer{strength: j.options.Strength}
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.reason != "" {
			out = append(out, Clause{Path: c.path, Reason: c.reason})
			continue
		}
		if c.added() > 0 {
			c.form, c.formReason = j.decide(c)
		}
		for k := range c.targets {
			out = append(out, w.explain(c, &c.targets[k]))
		}
	}
	return out
}

func (w *writer) explain(c *clause, t *target) Clause {
	e := Clause{Path: c.path, Field: t.field, Reason: t.reason}
	if t.rows != nil {
		e.Matrix = t.rows.Version()
	}
	if t.analysis != nil {
		e.Terms = t.analysis.Terms
	}
	if t.reason != "" {
		t.sel.candidates = t.sel.candidates[:0]
		return e
	}
	e.Form, e.Reason = c.form.String(), c.formReason
	e.Added = make([]Added, len(t.sel.candidates))
	for k := range t.sel.candidates {
		cand := &t.sel.candidates[k]
		e.Added[k] = Added{
			Term: cand.term, From: t.sel.origins[cand.origin].term,
			Similarity: cand.s, Weight: cand.v, Boost: w.boost(c.form, t, cand),
		}
	}
	return e
}
