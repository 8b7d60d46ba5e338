package expand

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// collect asks for all that the rewriting needs and selects the terms.
func (j *job) collect() error {
	if err := j.ctx.Err(); err != nil { // before what is known is weighed and written
		return &StageError{StageScan, err}
	}
	if err := j.resolve(); err != nil {
		return &StageError{StageFields, err}
	}
	targets, err := j.targets()
	if err != nil {
		return &StageError{StageFields, err}
	}
	if targets, err = j.findTexts(targets); err != nil {
		return err
	}
	if hard, err := j.hard(targets); hard || err != nil {
		return err
	}
	leads := leading(targets)
	for _, t := range leads {
		keep := j.options.MaxAddedTerms * candidatesPerTerm
		t.sel.propose(t.analysis.Weighting, t.rows.Docs(), j.options.MaxDocShare, keep)
		if len(t.sel.candidates) == 0 {
			t.close(ReasonNoNeighbors)
		}
	}
	targets = open(targets)
	if err := j.statistics(targets); err != nil {
		return &StageError{StageStatistics, err}
	}
	j.share(leading(open(targets)))
	return nil
}

// texts sets the targets' terms and the rows of these, and returns the targets
// that stay open.
func (j *job) texts(targets []clauseTarget) ([]clauseTarget, error) {
	if err := j.analyze(targets); err != nil {
		return nil, &StageError{StageAnalyze, err}
	}
	j.weigh()
	targets = open(targets)
	if err := j.fetchRows(leading(targets)); err != nil {
		return nil, &StageError{StageRows, err}
	}
	return targets, nil
}

// clauseTarget is a target with the clause that it belongs to.
type clauseTarget struct {
	clause *clause
	*target
}

// close leaves the target alone, and with it a clause that cannot do without
// one of its fields.
func (t clauseTarget) close(reason Reason) {
	t.reason = reason
	if t.clause.termwise {
		t.clause.reason = reason
	}
}

// follows reports whether the target uses the selection of the clause's first.
func (t clauseTarget) follows() bool { return t.clause.termwise && t.target != &t.clause.targets[0] }

// open returns the targets that no reason has closed.
func open(targets []clauseTarget) []clauseTarget {
	return slices.DeleteFunc(targets, func(t clauseTarget) bool { return t.reason != "" || t.clause.reason != "" })
}

// leading returns the targets that have a selection of their own.
func leading(targets []clauseTarget) []clauseTarget {
	if !slices.ContainsFunc(targets, clauseTarget.follows) {
		return targets
	}
	return slices.DeleteFunc(slices.Clone(targets), clauseTarget.follows)
}

// resolve gives every clause its fields by their full names: the default ones
// where it names none, and those that its patterns match.
func (j *job) resolve() error {
	scan := &j.scanner.scan
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.reason != "" {
			continue
		}
		if len(c.targets) == 0 {
			c.plain = false
			for _, field := range j.options.DefaultFields {
				c.targets = append(c.targets, target{field: field, boost: 1})
			}
		}
		if err := j.matchFields(c); err != nil {
			return err
		}
		if len(c.targets) == 0 {
			c.reason = ReasonFields
		}
	}
	if scan.fields() <= maxTargets {
		return nil
	}
	for i := range scan.clauses {
		if c := &scan.clauses[i]; c.reason == "" {
			c.reason = ReasonTooManyClauses
		}
	}
	return nil
}

// matchFields replaces the patterns among the fields of c by the fields that
// match them. As in the engines, the boosts of a field that is named more than
// once are multiplied.
func (j *job) matchFields(c *clause) error {
	if !c.patterns || !slices.ContainsFunc(c.targets, func(t target) bool { return strings.Contains(t.field, "*") }) {
		return nil
	}
	var resolved []target
	for _, t := range c.targets {
		names, err := j.names(t.field)
		if c.reason = reasonOf(err); c.reason != "" {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			at := slices.IndexFunc(resolved, func(r target) bool { return r.field == name })
			if at < 0 {
				resolved = append(resolved, target{field: name, boost: t.boost})
			} else {
				resolved[at].boost *= t.boost
			}
		}
		if len(resolved) > maxTargets {
			c.reason = ReasonTooManyClauses
			return nil
		}
	}
	c.targets = resolved
	return nil
}

// names returns the names of the fields that a name or a pattern stands for.
func (j *job) names(pattern string) ([]string, error) {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}, nil
	}
	return j.cluster.Fields(j.ctx, j.indices, pattern)
}

// targets returns the fields that may be expanded, with their matrices pinned,
// and gives the others their reason.
func (j *job) targets() ([]clauseTarget, error) {
	scan := &j.scanner.scan
	var out []clauseTarget
	pinned := j.matrices.Pin()
	for i := range scan.clauses {
		c := &scan.clauses[i]
		for k := range c.targets {
			t := clauseTarget{c, &c.targets[k]}
			if c.reason != "" {
				break
			}
			reason, err := j.closed(t.target, pinned)
			if err != nil {
				return nil, err
			}
			if reason != "" {
				t.close(reason)
				continue
			}
			j.lend(t.target)
			out = append(out, t)
		}
	}
	return out, nil
}

// lend gives the target the memory of a selection made before.
func (j *job) lend(t *target) {
	if n := len(j.spare); n > 0 {
		t.sel, j.spare = j.spare[n-1], j.spare[:n-1]
		// A field that is left alone before it is analyzed has no terms.
		t.sel.origins, t.sel.candidates, t.sel.entries = t.sel.origins[:0], t.sel.candidates[:0], t.sel.entries[:0]
	}
}

// closed pins the target's rows, or returns the reason to leave it alone.
func (j *job) closed(t *target, pinned Pinned) (Reason, error) {
	if rm := j.scanner.scan.runtimeMappings; !rm.isZero() && bytes.Contains(rm.of(j.body), []byte(`"`+t.field+`"`)) {
		return ReasonRuntimeField, nil
	}
	bound, err := pinned.For(j.ctx, j.indices, t.field)
	if err != nil {
		return reasonOr(err)
	}
	if t.rows, t.named = bound.Rows, bound.Named; t.rows == nil {
		t.resolved = bound.Resolved[:min(len(bound.Resolved), maxExplainedIndices)]
		return ReasonNoMatrix, nil
	}
	t.matrix = t.rows.Version()
	if j.weights != nil && j.options.Mode != ModeBM25 {
		if t.weights, err = j.weights.Weights(j.ctx, j.indices, t.field); err != nil {
			return reasonOr(err)
		}
	}
	return "", nil
}

// maxExplainedIndices is how many of the indices that no matrix is bound to are
// named.
const maxExplainedIndices = 10

// reasonOr returns the reason that an error of the cluster is for leaving
// something alone, or the error.
func reasonOr(err error) (Reason, error) {
	if reason := reasonOf(err); reason != "" {
		return reason, nil
	}
	return "", err
}

const (
	// maxTargets bounds the fields, over all clauses, of a search that is
	// expanded. More could hardly get a term each, and asking about them would
	// cost more than the budget.
	maxTargets = 64
	// sideBySide bounds the questions that one search asks at a time. OpenSearch
	// queues 16 analyses on one thread and refuses the next.
	sideBySide = 8
	// maxText is the length in bytes of the longest text that is analyzed: 64 for
	// each of the 1,024 terms that MaxQueryTerms can be. Longer ones hold more.
	maxText = 64 << 10
)

// each calls f for every target, several side by side, because f may wait for
// the cluster. It returns the first error.
func each(targets []clauseTarget, f func(t clauseTarget) error) error {
	return inParallel(len(targets), sideBySide, func(i int) error { return f(targets[i]) })
}

func (j *job) analyze(targets []clauseTarget) error {
	return each(targets, func(t clauseTarget) error {
		if len(t.clause.text) > maxText {
			t.reason = ReasonTooManyTerms
			return nil
		}
		a, err := j.cluster.Analyze(j.ctx, Text{
			Indices: j.indices, Field: t.field, Analyzer: t.clause.analyzer, Text: t.clause.text,
		})
		if err == nil && t.clause.prefix {
			a = a.withoutLast()
		}
		switch {
		case err != nil:
			if t.reason = reasonOf(err); t.reason == "" {
				return err
			}
		case a.NotWords != "" && !t.named:
			t.reason = ReasonNotWords
		case len(a.Terms) == 0:
			t.reason = ReasonNoTerms
		case len(a.Terms) > j.options.MaxQueryTerms:
			t.reason = ReasonTooManyTerms
		default:
			t.analysis = a
			t.sel.start(a)
		}
		return nil
	})
}

// reasonOf returns the reason that an error of the cluster is for leaving
// something alone, "" for a failure.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, ErrNotText):
		return ReasonNotText
	case errors.Is(err, ErrMixed):
		return ReasonMixed
	case errors.Is(err, ErrUnknown):
		return ReasonUnknownToCluster
	}
	return ""
}

// withoutLast returns a without the terms at its last position.
func (a *Analysis) withoutLast() *Analysis {
	n := len(a.Terms)
	for n > 0 && a.Positions[n-1] == a.Positions[len(a.Positions)-1] {
		n--
	}
	trimmed := *a
	trimmed.Terms, trimmed.Positions = a.Terms[:n], a.Positions[:n]
	return &trimmed
}

// weigh settles what the analyses of all its fields mean for each clause.
func (j *job) weigh() {
	scan := &j.scanner.scan
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.single() {
			c.every, c.minimum = false, nil // the engines do not count one word
		}
		for k := range c.targets {
			t := &c.targets[k]
			switch {
			case c.reason != "":
			case t.reason != "":
				clauseTarget{c, t}.close(t.reason)
			case c.termwise && !alike(t.analysis, c.targets[0].analysis):
				c.reason = ReasonFieldsDiffer
			case t.analysis.Graph:
				// A term that spans several positions stands beside words that
				// the engine looks for as a phrase: one of them alone finds
				// nothing, and so must not a word that is related to it.
				c.plain, c.same = false, true
			}
		}
	}
}

// alike reports whether the engine looks for the terms in both fields together.
// Fields whose analyzers have other names it searches apart, though they give
// the same terms (OpenSearch 2).
func alike(a, b *Analysis) bool { return a.Analyzer == b.Analyzer && slices.Equal(a.Terms, b.Terms) }

// single reports whether the text is at most one word in every field.
func (c *clause) single() bool {
	return !slices.ContainsFunc(c.targets, func(t target) bool { return t.analysis == nil || groupCount(&t) > 1 })
}

// fetchRows sets the origins' rows: one round trip for each version, and there
// is one where all fields use one matrix.
func (j *job) fetchRows(targets []clauseTarget) error {
	for done := 0; done < len(targets); {
		rows := targets[done].rows
		first := done
		j.terms = j.terms[:0]
		for done < len(targets) && targets[done].rows == rows {
			j.terms = targets[done].sel.terms(j.terms)
			done++
		}
		j.rows = sized(j.rows, len(j.terms))
		if err := rows.Rows(j.ctx, j.terms, j.rows); err != nil {
			return fmt.Errorf("%s: %w", rows.Version(), err)
		}
		k := 0
		for _, t := range targets[first:done] {
			for i := range t.sel.origins {
				t.sel.origins[i].row = j.rows[k]
				k++
			}
		}
	}
	return nil
}

// sized returns s with length n, all zero.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// statistics fetches the live document frequencies and settles the order of
// the candidates by them.
func (j *job) statistics(targets []clauseTarget) error {
	// Goroutines work on memory of their own; a single target reuses ours.
	single := len(targets) == 1
	err := each(targets, func(t clauseTarget) (err error) {
		var terms []string
		var docFreqs []int64
		if single {
			terms, docFreqs = j.terms[:0], j.docFreqs
		}
		terms = t.clause.selection(t.target).terms(terms)
		docFreqs = sized(docFreqs, len(terms))
		if single {
			j.terms, j.docFreqs = terms, docFreqs
		}
		t.docFreqs = docFreqs
		t.stats, err = j.cluster.Statistics(j.ctx, j.indices, t.field, terms, docFreqs)
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range leading(targets) {
		share, keep := j.options.MaxDocShare, j.options.MaxAddedTerms
		if t.clause.termwise {
			t.clause.settleTermwise(share, keep)
		} else {
			t.sel.settle(t.analysis.Weighting, t.stats.DocCount, t.docFreqs, share, keep)
		}
		if len(t.sel.candidates) == 0 {
			t.close(ReasonNoNeighbors)
		}
	}
	return nil
}

// selection returns the selection that a target of c uses.
func (c *clause) selection(t *target) *selection {
	if c.termwise {
		return &c.targets[0].sel
	}
	return &t.sel
}

// share divides the request's added terms between the targets: all get the
// same, and what one has no use for goes to the others.
func (j *job) share(targets []clauseTarget) {
	left := j.options.MaxAddedTerms
	waiting := append([]clauseTarget(nil), targets...)
	for len(waiting) > 0 {
		quota := left / len(waiting)
		rest := waiting[:0]
		for _, t := range waiting {
			if n := len(t.sel.candidates); n <= quota {
				left -= n
			} else {
				rest = append(rest, t)
			}
		}
		if len(rest) < len(waiting) {
			waiting = rest
			continue
		}
		for i, t := range rest { // the first ones take what does not divide
			n := quota
			if i < left%len(rest) {
				n++
			}
			t.sel.candidates = t.sel.candidates[:n]
			if n == 0 {
				t.reason = ReasonTermLimit
			}
		}
		return
	}
}
