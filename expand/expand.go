package expand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/akin-search/akin/simmatrix"
)

// A Stage names the part of the work that failed.
type Stage string

// The stages: reading the search, and those that ask somebody else.
const (
	StageScan       Stage = "scan"
	StageAccess     Stage = "access"
	StageFields     Stage = "fields"
	StageAnalyze    Stage = "analyze"
	StageRows       Stage = "rows"
	StageStatistics Stage = "statistics"
	StageLinear     Stage = "linear"
	StageWeights    Stage = "weights"
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
	weights  WeightSource // nil without
	linear   LinearFields // nil without
	pits     *pits
	limits   *limits
	scratch  *sync.Pool
}

// New returns an Expander that asks cluster for terms and statistics and
// matrices for neighbor rows.
func New(cluster Cluster, matrices Matrices, options Options) *Expander {
	return &Expander{
		cluster:  cluster,
		matrices: matrices,
		options:  options,
		pits:     newPITs(),
		limits:   new(limits),
		scratch:  &sync.Pool{New: func() any { return new(scratch) }},
	}
}

// With returns an Expander with other options that shares with e what both
// learn of the cluster.
func (e *Expander) With(options Options) *Expander {
	other := *e
	other.options = options
	return &other
}

// WithMatrices returns an Expander with other matrices that shares with e what
// both learn of the cluster.
func (e *Expander) WithMatrices(matrices Matrices) *Expander {
	other := *e
	other.matrices = matrices
	return &other
}

// WithExact returns an Expander that can rank by the modes hard and soft, and
// shares with e what both learn of the cluster. Without weights there is no
// [ModeHard], and [ModeSoft] takes the document frequencies in the rows of S.
func (e *Expander) WithExact(weights WeightSource, linear LinearFields) *Expander {
	other := *e
	other.weights, other.linear = weights, linear
	return &other
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
	ctx context.Context //nolint:containedctx // lives as long as one call of Expand
	req *Request
	// indices are those that the search goes to; pitShards is how many of their
	// shards its point in time holds, 0 without one.
	indices   Indices
	pitShards int
	params    parameters
	body      []byte
	// together is how many searches came in one request, this one counted.
	together int
	// rescore says that the best hits are ordered anew by the whole query.
	rescore bool
	// first is the first page of the search's point in time, nil where it has
	// none.
	first *firstPage
	// rerank says how the hits are ordered anew, nil where they are not, and
	// edits what is changed of the body for that, in its order.
	rerank *Rerank
	edits  []edit
	// findsOrdered says that the query is the one that finds what is ordered
	// anew, be it for a page that is not.
	findsOrdered bool
	// discloses says how the answer would show the added terms.
	discloses Disclosure
}

// Expand rewrites one search. What is not to be rewritten comes back with
// Rewritten false and the reason. An error is a [*StageError]; it means that
// something did not work, and the original has to go on as well.
//
// Warm, it makes no call that leaves the process. Cold, the calls of all
// clauses go out side by side, so that at most three follow one another:
// analysis, rows, statistics. [ModeHard] asks about linear fields beside the
// first two, and for weights beside the last.
func (e *Expander) Expand(ctx context.Context, req *Request) (*Result, error) {
	switch req.Endpoint {
	case EndpointMultiSearch, EndpointRankEval:
		return e.expandSeveral(ctx, req)
	default:
		return e.expandOne(ctx, req, 1)
	}
}

// expandOne expands a request that is one search, of so many that came at
// once.
func (e *Expander) expandOne(ctx context.Context, req *Request, together int) (*Result, error) {
	s, _ := e.scratch.Get().(*scratch)
	j := &job{scratch: s, Expander: e, ctx: ctx, req: req, together: together}
	defer j.release()
	if reason := j.read(); reason != "" {
		return &Result{Reason: reason, Clauses: j.notes()}, nil
	}
	for _, step := range []func() (Reason, error){j.allowed, j.collectPage, j.hidden} {
		switch reason, err := step(); {
		case err != nil:
			return nil, err
		case reason != "":
			return &Result{Reason: reason, Clauses: j.notes()}, nil
		}
	}
	j.planRerank()
	res := j.result()
	if !res.Rewritten && res.Reason == "" {
		res.Reason = j.reason()
	}
	return res, nil
}

// allowed returns the reason to leave the search alone where the client may not
// search its indices, or "".
func (j *job) allowed() (Reason, error) {
	if j.req.Allowed == nil {
		return "", nil
	}
	switch err := j.req.Allowed(j.ctx, j.indices); {
	case errors.Is(err, ErrNotAuthorized):
		return ReasonNotAuthorized, nil
	case errors.Is(err, ErrUnknown):
		return ReasonUnknownToCluster, nil
	case err != nil:
		return "", &StageError{StageAccess, err}
	}
	return "", nil
}

// notes tells of the queries that are left alone for their kind.
func (j *job) notes() []Clause {
	var out []Clause
	for _, c := range j.scanner.scan.clauses {
		if c.note {
			out = append(out, Clause{Path: c.path, Reason: c.reason})
		}
	}
	return out
}

// reason returns why nothing is added: the reason of the first clause that has
// one.
func (j *job) reason() Reason {
	for _, c := range j.scanner.scan.clauses {
		if c.note {
			continue
		}
		if c.reason != "" {
			return c.reason
		}
		for _, t := range c.targets {
			if t.reason != "" {
				return t.reason
			}
		}
	}
	return ReasonNoNeighbors
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
	if reason := j.takeBody(); reason != "" {
		return reason
	}
	j.indices = Indices{Expression: j.req.Index, Options: j.params.indices()}
	j.scanner.phrases, j.scanner.rescores = j.options.Phrases, j.options.RescoreQueries
	switch err := j.scanner.run(j.body); {
	case errors.Is(err, errTooDeep):
		return ReasonTooDeep
	case err != nil:
		return ReasonNotJSON
	}
	scan := &j.scanner.scan
	j.params.apply(scan)
	switch {
	case scan.hasPIT && !j.usePIT():
		return ReasonPIT
	case j.disclosed()&j.options.HideFrom != 0:
		return ReasonHidden
	case scan.minScore && !j.options.NormalizeScores:
		return ReasonMinScore
	case !slices.ContainsFunc(scan.clauses, func(c clause) bool { return !c.note }):
		return ReasonNoClause
	case scan.fields() > maxTargets:
		return ReasonTooManyClauses
	case scan.crowded(len(j.body)):
		return ReasonTooManyHighlights
	}
	for i := range scan.clauses {
		scan.clauses[i].same = scan.clauses[i].same || scan.terminates
	}
	scan.unscored = (j.req.Endpoint == EndpointCount || scan.noHits && !scan.scoredAggregations) && !scan.minScore
	if j.options.Matching == MatchingSame && (scan.unscored || scan.sorted && !scan.trackScores) {
		return ReasonNoScores
	}
	return ""
}

// takeBody sets the body that the request has or its parameters stand for.
func (j *job) takeBody() Reason {
	p := &j.params
	has := len(bytes.TrimSpace(j.req.Body)) > 0
	switch {
	case p.q != "" && p.suggestField != "":
		return ReasonSuggestText
	case p.q != "" && (has || p.source != ""):
		return ReasonQAndBody
	case p.q != "":
		j.body = p.body()
	case p.source != "":
		body, ok := p.jsonBody()
		if has || !ok {
			return ReasonSourceParameter
		}
		j.body = body
	case !has:
		return ReasonNoClause
	default:
		j.body = j.req.Body
	}
	return ""
}
