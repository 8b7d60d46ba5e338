// Package expand rewrites searches: it finds the clauses of a search body
// that look for text in a field, asks for the neighbors of their terms in
// the similarity matrix S, and writes the neighbors in as clauses with
// fractional boosts, so that the engine ranks by x' = W⁻¹(Wx)ᵀS.
//
// A search goes one way, from values to values, and [Expander.Expand] reads
// in that order:
//
//	parse   body and parameters → clauses          package dsl
//	        with nested ones for segments          package form
//	ask     clauses → analyses, rows, statistics   [Cluster], [Matrices]
//	select  → the terms to add                     package terms
//	plan    → the form of each clause, its phase
//	write   plan → body                            package form
package expand

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/simmatrix"
)

// A Stage names the part of the work that failed.
type Stage string

// The stages that ask somebody else. Their names are those of spans, too.
const (
	StageAccess     Stage = "authorization"
	StageFields     Stage = "fields"
	StageAnalyze    Stage = "analyze"
	StageRows       Stage = "rows"
	StageStatistics Stage = "statistics"
	StageLinear     Stage = "linear"
	StageWeights    Stage = "weights"
	StageVectors    Stage = "vectors"
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

// failed marks an error with its stage; nil stays nil.
func failed(s Stage, err error) error {
	if err == nil {
		return nil
	}
	return &StageError{s, err}
}

// run runs a stage as a part of the trace, if there is one.
func run(ctx context.Context, s Stage, f func(context.Context) error) error {
	ctx, span := tracing.Start(ctx, string(s))
	defer span.End()
	return failed(s, f(ctx))
}

// An Expander rewrites searches. It is safe for concurrent use.
type Expander struct {
	cluster  Cluster
	matrices Matrices
	options  Profile
	weights  WeightSource // nil without
	vectors  VectorSource // nil without
	pits     *cache.Cache[pitKey]
	limits   *limits
	memory   *sync.Pool
}

// New returns an Expander that asks cluster for terms and statistics and
// matrices for neighbor rows.
func New(cluster Cluster, matrices Matrices, options Profile) *Expander {
	return &Expander{
		cluster: cluster, matrices: matrices, options: options, pits: newPITs(), limits: new(limits),
		memory: &sync.Pool{New: func() any { return new(memory) }},
	}
}

// With returns an Expander with other options that shares with e what both
// learn of the cluster.
func (e *Expander) With(options Profile) *Expander {
	other := *e
	other.options = options
	return &other
}

// WithMatrices is [Expander.With] for other matrices.
func (e *Expander) WithMatrices(matrices Matrices) *Expander {
	other := *e
	other.matrices = matrices
	return &other
}

// WithWeights is [Expander.With] for what the modes hard and soft need. Without
// there is no [ModeHard], and [ModeSoft] takes the document frequencies in the
// rows of S.
func (e *Expander) WithWeights(weights WeightSource) *Expander {
	other := *e
	other.weights = weights
	return &other
}

// WithVectors is [Expander.With] for what the mode vectors needs. Without there
// is no [ModeVectors].
func (e *Expander) WithVectors(vectors VectorSource) *Expander {
	other := *e
	other.vectors = vectors
	return &other
}

// Expand rewrites one search. What is not to be rewritten comes back with
// Rewritten false and the reason. An error is a [*StageError]: the original has
// to go on then.
//
// Warm, it makes no call that leaves the process. Cold, the calls of all
// clauses go out at the same time, so that at most three follow one another:
// analysis, rows, statistics. [ModeHard] asks about linear fields with the
// first two, and for weights with the last, [ModeVectors] about the documents'
// vectors with the first two.
func (e *Expander) Expand(ctx context.Context, req *Request) (res *Result, err error) {
	pins := req.Pins
	if pins.Matrices == nil {
		pins = e.pin()
	}
	switch req.Endpoint {
	case EndpointMultiSearch, EndpointRankEval:
		res, err = e.expandSeveral(ctx, req, pins)
	default:
		res, err = e.expandOne(ctx, req, pins, 1)
	}
	if err == nil && len(res.FirstPasses) > 0 {
		res.Pins = pins
	}
	return res, err
}

// expandOne expands one search, of so many that came in one request.
func (e *Expander) expandOne(ctx context.Context, req *Request, pins Pins, together int) (*Result, error) {
	m, _ := e.memory.Get().(*memory)
	defer func() {
		m.release()
		e.memory.Put(m)
	}()
	_, span := tracing.Start(ctx, "parse")
	s, why := e.parse(req, m)
	span.SetAttributes(attribute.String("akin.reason", string(why)))
	span.End()
	a := &asker{e: e, s: s, m: m, pins: pins, together: together}
	var err error
	if why == "" {
		why, err = s.allowed(ctx)
	}
	var notNested []Explanation
	if why == "" && err == nil {
		notNested, err = e.nest(ctx, s, m)
	}
	if why == "" && err == nil {
		why, err = a.askPage(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case why == "" && s.discloses != 0 && filtered(a.clauses):
		why = reason.Hidden
	}
	if why != "" {
		return &Result{Reason: why, Clauses: s.notes()}, nil
	}
	a.adjust()
	_, span = tracing.Start(ctx, "write")
	p := newPlanner(a)
	plan, res := p.write(a.clauses)
	res.Clauses = append(res.Clauses, notNested...)
	span.End()
	if !a.later {
		a.addFirstPass(plan, res)
	}
	if !res.Rewritten {
		res.Reason = whyNothing(plan)
	}
	return res, nil
}

// whyNothing returns the reason of the first clause that has one.
func whyNothing(plan *form.Plan) reason.Reason {
	for i := range plan.Clauses {
		c := &plan.Clauses[i]
		if !c.Note && c.Reason != "" {
			return c.Reason
		}
		for k := range c.Fields {
			if why := c.Fields[k].Reason; why != "" {
				return why
			}
		}
	}
	return reason.NoNeighbors
}

// memory is what one expansion leaves to the next.
type memory struct {
	parser     dsl.Parser
	clauses    []form.Clause
	targets    []target
	plan       []form.ClausePlan
	selections []*terms.Selection
	lent       int // of the selections
	weighing
}

// weighing is memory for the terms of one question.
type weighing struct {
	terms    []string
	rows     []simmatrix.Row
	docFreqs []int64
}

func (m *memory) selection() *terms.Selection {
	if m.lent == len(m.selections) {
		m.selections = append(m.selections, new(terms.Selection))
	}
	m.lent++
	return m.selections[m.lent-1]
}

func (m *memory) release() {
	const keep = 16
	if len(m.selections) > keep {
		clear(m.selections[keep:])
		m.selections = m.selections[:keep]
	}
	for _, sel := range m.selections {
		sel.Context = nil
	}
	m.lent = 0
	clear(m.clauses)
	clear(m.targets)
	clear(m.plan)
	clear(m.terms[:cap(m.terms)])
	clear(m.rows[:cap(m.rows)])
	m.parser.Release()
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
