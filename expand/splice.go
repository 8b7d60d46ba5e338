package expand

import (
	"cmp"
	"slices"
)

// decide chooses the form of a clause.
func (j *job) decide(c *clause) (Form, Reason) {
	if j.findsOrdered || j.options.Scoring == FormLinear {
		return FormLinear, ""
	}
	for i := range c.targets {
		t := &c.targets[i]
		if !c.plain || c.termwise || t.analysis == nil || !t.analysis.single() {
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
		default:
			if bar := j.shardBar(t.analysis); bar != "" {
				return FormGrouped, bar
			}
		}
	}
	return FormSaturated, ""
}

// shardBar returns why the statistics of all shards are not those that each of
// them scores by, "" where they are or can be made to be.
func (j *job) shardBar(a *Analysis) Reason {
	switch {
	case a.Shards <= 1:
	case a.Routed || j.params.routed() || j.pitShards > 0 && j.pitShards < a.Shards:
		return ReasonRouting
	case j.scoresByShard():
		return ReasonSearchType
	}
	return ""
}

// scoresByShard reports whether each shard scores by statistics of its own: an
// explanation is that of the one shard that holds the document.
func (j *job) scoresByShard() bool {
	fixed := j.params.searchType
	return fixed != "" && fixed != dfs || j.req.Endpoint == EndpointExplain
}

// plan decides for every clause whether and how its terms are written, and for
// the search in which phase.
func (j *job) plan() {
	scan := &j.scanner.scan
	saturated := false
	for i := range scan.clauses {
		c := &scan.clauses[i]
		c.form, c.formReason, c.rescored = FormAuto, "", false
		switch {
		case !c.changed():
			continue
		case scan.unscored && j.same(c):
			c.leave(ReasonNoScores) // only the order could change
			continue
		case c.exact:
			c.form = FormHard
			continue
		}
		c.form, c.formReason = j.decide(c)
		if c.formReason == ReasonRouting || c.formReason == ReasonSearchType {
			j.findLess(c)
		}
		if j.findsOrdered {
			c.findCandidates()
		}
		j.flatten(c)
		saturated = saturated || c.form == FormSaturated
	}
	j.rescore = false
	if saturated && j.options.Phase != PhaseQuery {
		j.planPhase()
	}
	if !scan.unscored {
		return
	}
	for i := range scan.clauses {
		if c := &scan.clauses[i]; c.form != FormAuto && !c.exact {
			c.form, c.formReason = FormLinear, ""
		}
	}
}

// same reports whether c has to match what its original matches.
func (j *job) same(c *clause) bool { return c.same || j.options.Matching == MatchingSame }

// result writes the rewritten body.
func (j *job) result() *Result {
	w := j.writer()
	j.chooseFound()
	for {
		j.plan()
		if !j.changes() && j.rerank == nil {
			return &Result{Clauses: j.explain(&w)} // each says why
		}
		j.write(&w)
		over := j.over(&w)
		if over <= 0 || !j.changes() {
			break
		}
		j.fewer(over)
	}
	if scan := &j.scanner.scan; scan.unscored && !w.unscored {
		if j.onlyMatch(&w); !j.changes() {
			return &Result{Clauses: j.explain(&w)}
		}
	}
	return &Result{
		Rewritten: true,
		RawQuery:  j.params.rewritten(j.req.RawQuery, j.needsDFS()),
		Body:      w.out,
		Reranks:   j.reranks(),
		Clauses:   j.explain(&w),
		Leaves:    j.leaves(&w),
	}
}

func (j *job) writer() writer {
	return writer{
		strength: j.options.Strength, matching: j.options.Matching, normalize: j.options.NormalizeScores,
		// See [job.onlyMatch].
		unscored: j.scanner.scan.unscored && !j.exactly(),
		found:    j.findsOrdered, rerank: j.rerank != nil,
	}
}

// exactly reports whether clauses are written in FormHard: then all are.
func (j *job) exactly() bool {
	return slices.ContainsFunc(j.scanner.scan.clauses, func(c clause) bool { return c.exact })
}

// changes reports whether any clause is rewritten.
func (j *job) changes() bool {
	scan := &j.scanner.scan
	for i := range scan.clauses {
		if scan.clauses[i].changed() {
			return true
		}
	}
	return false
}

// fewer takes added terms back, or leaves clauses alone, of a search that has
// over clauses too many.
func (j *job) fewer(over int) {
	// A term may stand there more than once, so that fewer may do.
	half := (over + 1) / 2
	if !j.exactly() {
		j.cut(half)
		return
	}
	scan := &j.scanner.scan
	if slices.ContainsFunc(scan.clauses, func(c clause) bool { return c.groups() }) {
		over = half
	}
	if j.cutExactly(over) {
		return
	}
	for i := range scan.clauses {
		scan.clauses[i].leave(ReasonTermLimit)
	}
}

// added returns how many terms are added to the search.
func (j *job) added() int {
	n := 0
	for i := range j.scanner.scan.clauses {
		n += j.scanner.scan.clauses[i].added()
	}
	return n
}

// About what one added term takes in the saturated form, and in the others.
const (
	bytesSaturated = 270
	bytesPerTerm   = 70
)

// room estimates the length of the rewritten body.
func (j *job) room() int {
	scan := &j.scanner.scan
	n := len(j.body) + 4*scan.query.len()
	for _, e := range j.edits {
		n += len(e.text)
	}
	for i := range scan.highlights {
		n += scan.highlights[i].len()
	}
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.form == FormSaturated {
			n += c.added() * bytesSaturated
		}
		if c.form != FormSaturated || j.rescore {
			n += c.added() * bytesPerTerm
		}
	}
	return n
}

// write writes the body with every clause in its form, what is highlighted,
// and the rescore.
func (j *job) write(w *writer) {
	scan := &j.scanner.scan
	if w.out == nil {
		w.out = make([]byte, 0, j.room())
	}
	w.out, w.leaves = w.out[:0], 0
	at, rescoring := 0, 0
	if j.rescore {
		w.candidates = true
		j.copy(w, 0, scan.query.end)
		at, w.candidates = scan.query.end, false
		// The engines count the clauses of the query and of the rescore apart.
		rescoring, w.leaves = w.leaves, 0
		j.writeRescore(w)
	}
	j.copy(w, at, len(j.body))
	w.leaves = max(w.leaves, rescoring)
}

// copy copies the bytes of the body from start to end, with every clause and
// every highlight in them as it is written. None stands across one of these
// places.
func (j *job) copy(w *writer, start, end int) {
	scan := &j.scanner.scan
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if !c.changed() || !(span{start, end}).holds(c.at) {
			continue
		}
		j.copyMarked(w, start, c.at.start)
		w.clause(c, c.at.of(j.body))
		start = c.at.end
	}
	j.copyMarked(w, start, end)
}

// needsDFS reports whether the search has to gather the statistics of all
// shards first.
func (j *job) needsDFS() bool {
	if j.req.Endpoint == EndpointValidate || j.req.Endpoint == EndpointExplain {
		return false // they know no search_type
	}
	for i := range j.scanner.scan.clauses {
		c := &j.scanner.scan.clauses[i]
		if c.shards() > 1 && (c.form == FormSaturated || c.form == FormHard && c.scoresByIDF() && !j.scanner.scan.unscored) {
			return true
		}
	}
	return false
}

// scoresByIDF reports whether the engine multiplies by idf in one of the linear
// fields.
func (c *clause) scoresByIDF() bool {
	return slices.ContainsFunc(c.targets, func(t target) bool { return t.exact != nil && !t.exact.linear.Scripted })
}

func (s span) len() int { return s.end - s.start }

func (s span) holds(other span) bool { return s.start <= other.start && other.end <= s.end }

// added returns how many terms are added to the clause.
func (c *clause) added() int {
	n := 0
	if c.reason != "" {
		return n
	}
	for i := range c.targets {
		if c.targets[i].reason == "" {
			n += len(c.targets[i].sel.candidates)
		}
	}
	return n
}

// changed reports whether something is written in place of the clause.
func (c *clause) changed() bool { return c.exact || c.added() > 0 }

// leave leaves the clause alone, although there are terms to add.
func (c *clause) leave(reason Reason) {
	c.exact = false
	for i := range c.targets {
		if t := &c.targets[i]; t.reason == "" {
			t.reason = reason
		}
	}
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

// explain tells of every target what is done with it.
func (j *job) explain(w *writer) []Clause {
	scan := &j.scanner.scan
	out := make([]Clause, 0, scan.fields())
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.reason != "" {
			out = append(out, Clause{Path: c.path, Reason: c.reason})
			continue
		}
		for k := range c.targets {
			out = append(out, w.explain(c, &c.targets[k]))
		}
	}
	return out
}

func (w *writer) explain(c *clause, t *target) Clause {
	e := Clause{Path: c.path, Field: t.field, Matrix: t.matrix, Indices: t.resolved}
	if t.analysis != nil {
		e.Terms = t.analysis.Terms
	}
	if t.reason == "" && c.form == FormAuto { // it shares what the first has
		t.reason = c.targets[0].reason
	}
	if e.Reason = t.reason; e.Reason != "" {
		t.sel.candidates = t.sel.candidates[:0]
		if w.rerank && t.analysis != nil && compared(t.reason) {
			e.Phase = phaseRerank
		}
		return e
	}
	e.Form, e.Phase, e.Reason = c.form.String(), c.phase().String(), cmp.Or(c.modeReason, c.formReason)
	if t.truncated || t.exact != nil && t.exact.truncated {
		e.Reason = ReasonTruncated
	}
	if w.rerank {
		e.Phase = phaseRerank
	}
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

// phase returns the phase that the form of a written clause is computed in.
func (c *clause) phase() Phase {
	if c.rescored {
		return PhaseRescore
	}
	return PhaseQuery
}
