package expand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/simmatrix"
)

// A Stage names the part of the work that failed.
type Stage string

// The stages that ask somebody else.
const (
	StageAnalyze    Stage = "analyze"
	StageRows       Stage = "rows"
	StageStatistics Stage = "statistics"
)

// A StageError is a failure to expand. The original request has to go on.
type StageError struct {
	Stage Stage
	Err   error
}

// Error says which stage failed and how.
func (e *StageError) Error() string { return fmt.Sprintf("%s: %v", e.Stage, e.Err) }

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// An Expander rewrites searches. It is safe for concurrent use.
type Expander struct {
	cluster  Cluster
	matrices Matrices
	options  Options
	scratch  sync.Pool
}

// New returns an Expander that asks cluster for terms and statistics and
// matrices for neighbor rows.
func New(cluster Cluster, matrices Matrices, options Options) *Expander {
	return &Expander{
		cluster:  cluster,
		matrices: matrices,
		options:  options,
		scratch:  sync.Pool{New: func() any { return new(scratch) }},
	}
}

// scratch is the memory of one expansion, used again for the next.
type scratch struct {
	scanner  scanner
	terms    []string
	docFreqs []int64
	rows     []simmatrix.Row
	spare    []selection
}

// job is one expansion under way.
type job struct {
	*scratch
	*Expander
	ctx    context.Context //nolint:containedctx // lives as long as one call of Expand
	req    *Request
	params parameters
	body   []byte
}

// Expand rewrites one search. What is not to be rewritten comes back with
// Rewritten false and the reason. An error is a [*StageError]; it means that
// something did not work, and the original has to go on as well.
//
// Warm, it makes no call that leaves the process. Cold, the calls of all
// clauses go out side by side, so that at most three follow one another:
// analysis, rows, statistics.
func (e *Expander) Expand(ctx context.Context, req *Request) (*Result, error) {
	s, _ := e.scratch.Get().(*scratch)
	j := &job{scratch: s, Expander: e, ctx: ctx, req: req}
	defer j.release()
	if reason := j.read(); reason != "" {
		return &Result{Reason: reason}, nil
	}
	if err := j.collect(); err != nil {
		return nil, err
	}
	return j.result(), nil
}

// release gives the memory back, less what belongs to the request.
func (j *job) release() {
	s := j.scratch
	clauses := s.scanner.scan.clauses
	for i := range clauses {
		for k := range clauses[i].targets {
			if len(s.spare) < 16 {
				s.spare = append(s.spare, clauses[i].targets[k].sel)
			}
		}
	}
	clear(clauses)
	clear(s.terms[:cap(s.terms)])
	clear(s.rows[:cap(s.rows)])
	s.scanner.release()
	j.Expander.scratch.Put(s)
}

// read finds the clauses and returns the reason to leave the whole request
// alone, or "".
func (j *job) read() Reason {
	var reason Reason
	if j.params, reason = readParameters(j.req.RawQuery); reason != "" {
		return reason
	}
	j.body = j.req.Body
	if j.params.q != "" {
		if len(bytes.TrimSpace(j.body)) > 0 {
			return ReasonQAndBody
		}
		j.body = j.params.body()
	}
	if len(j.body) == 0 {
		return ReasonNoClause
	}
	switch err := j.scanner.run(j.body); {
	case errors.Is(err, errTooDeep):
		return ReasonTooDeep
	case err != nil:
		return ReasonNotJSON
	}
	scan := &j.scanner.scan
	switch {
	case scan.pit:
		return ReasonPIT
	case scan.minScore:
		return ReasonMinScore
	case len(scan.clauses) == 0:
		return ReasonNoClause
	case scan.fields() > maxTargets:
		return ReasonTooManyClauses
	case j.options.Matching == MatchingSame && (scan.sizeZero || j.params.sizeZero ||
		((scan.sorted || j.params.sorted) && !scan.trackScores && !j.params.trackScores)):
		return ReasonNoScores
	}
	return ""
}

// collect asks for all that the rewriting needs and selects the terms.
func (j *job) collect() error {
	targets := j.targets()
	if err := j.analyze(targets); err != nil {
		return &StageError{StageAnalyze, err}
	}
	targets = open(targets)
	if err := j.fetchRows(targets); err != nil {
		return &StageError{StageRows, err}
	}
	for _, t := range targets {
		keep := j.options.MaxAddedTerms * candidatesPerTerm
		t.sel.propose(t.analysis.Weighting, t.rows.Docs(), j.options.MaxDocShare, keep)
		if len(t.sel.candidates) == 0 {
			t.reason = ReasonNoNeighbors
		}
	}
	targets = open(targets)
	if err := j.statistics(targets); err != nil {
		return &StageError{StageStatistics, err}
	}
	j.share(targets)
	return nil
}

// clauseTarget is a target with the clause that it belongs to.
type clauseTarget struct {
	clause *clause
	*target
}

// open returns the targets that no reason has closed.
func open(targets []clauseTarget) []clauseTarget {
	kept := targets[:0]
	for _, t := range targets {
		if t.reason == "" {
			kept = append(kept, t)
		}
	}
	return kept
}

// targets returns the fields that may be expanded, with their matrices pinned,
// and gives the others their reason.
func (j *job) targets() []clauseTarget {
	scan := &j.scanner.scan
	var out []clauseTarget
	pinned := j.matrices.Pin()
	for i := range scan.clauses {
		c := &scan.clauses[i]
		if c.reason != "" {
			continue
		}
		if len(c.targets) == 0 { // a query string without a field
			c.plain = false
			for _, field := range j.options.DefaultFields {
				c.targets = append(c.targets, target{field: field, boost: 1})
			}
			if len(c.targets) == 0 {
				c.reason = ReasonFields
			}
		}
		for k := range c.targets {
			t := &c.targets[k]
			t.reason = j.closed(t, pinned)
			if t.reason == "" {
				j.lend(t)
				out = append(out, clauseTarget{c, t})
			}
		}
	}
	return out
}

// lend gives the target the memory of a selection made before.
func (j *job) lend(t *target) {
	if n := len(j.spare); n > 0 {
		t.sel, j.spare = j.spare[n-1], j.spare[:n-1]
	}
}

// closed pins the target's rows, or returns the reason to leave it alone.
func (j *job) closed(t *target, pinned Pinned) Reason {
	if rm := j.scanner.scan.runtimeMappings; !rm.isZero() && bytes.Contains(rm.of(j.body), []byte(`"`+t.field+`"`)) {
		return ReasonRuntimeField
	}
	if t.rows = pinned.For(j.req.Index, t.field); t.rows == nil {
		return ReasonNoMatrix
	}
	return ""
}

const (
	// maxTargets bounds the fields, over all clauses, of a search that is
	// expanded. More could hardly get a term each, and asking about them would
	// cost more than the budget.
	maxTargets = 64
	// sideBySide bounds the questions that one search asks at a time. OpenSearch
	// queues 16 analyses on one thread and refuses the next.
	sideBySide = 8
)

// each calls f for every target: one in this goroutine, several side by side,
// because f may wait for the cluster. It returns the first error.
func each(targets []clauseTarget, f func(t clauseTarget) error) error {
	if len(targets) == 1 {
		return f(targets[0])
	}
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for _, t := range targets {
		group.Go(func() error { return f(t) })
	}
	return group.Wait()
}

func (j *job) analyze(targets []clauseTarget) error {
	return each(targets, func(t clauseTarget) error {
		a, err := j.cluster.Analyze(j.ctx, Text{
			Index: j.req.Index, Field: t.field, Analyzer: t.clause.analyzer, Text: t.clause.text,
		})
		switch {
		case errors.Is(err, ErrNotText):
			t.reason = ReasonNotText
		case errors.Is(err, ErrMixed):
			t.reason = ReasonMixed
		case err != nil:
			return err
		case len(a.Terms) == 0:
			t.reason = ReasonNoTerms
		case len(a.Terms) > j.options.MaxQueryTerms:
			t.reason = ReasonTooManyTerms
		}
		if t.reason == "" {
			t.analysis = a
			t.sel.start(a)
		}
		return nil
	})
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
	return each(targets, func(t clauseTarget) (err error) {
		var terms []string
		var docFreqs []int64
		if single {
			terms, docFreqs = j.terms[:0], j.docFreqs
		}
		terms = t.sel.terms(terms)
		docFreqs = sized(docFreqs, len(terms))
		if single {
			j.terms, j.docFreqs = terms, docFreqs
		}
		t.stats, err = j.cluster.Statistics(j.ctx, j.req.Index, t.field, terms, docFreqs)
		if err != nil {
			return err
		}
		t.sel.settle(t.analysis.Weighting, t.stats.DocCount, docFreqs, j.options.MaxDocShare, j.options.MaxAddedTerms)
		if len(t.sel.candidates) == 0 {
			t.reason = ReasonNoNeighbors
		}
		return nil
	})
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
