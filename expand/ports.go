package expand

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/internal/tracing"
	"github.com/akin-search/akin/simmatrix"
)

// Errors of [Request.Allowed].
var (
	ErrNotAuthorized = errors.New("the client may not search these indices")
	ErrUnknown       = errors.New("not known to the cluster") // which will say so to the client
)

// A Cluster answers what expansion asks of the search cluster;
// [*esclient.Cached] is one. Warm, it answers from memory; a call ends with
// ctx at the latest.
type Cluster interface {
	// Analyze returns the index terms of a text in a field, by the analyzer named
	// or, where that is "", by the field's own.
	Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error)
	// Statistics fills docFreqs[k] with the number of documents that have
	// terms[k] in the field, over all shards that answer.
	Statistics(ctx context.Context, indices esclient.Indices, field string, terms []string, docFreqs []int64) (esclient.FieldStatistics, error)
	// Fields returns the full names, in order, of the mapped fields that a query
	// with the pattern for a field name searches, be they text or not.
	Fields(ctx context.Context, indices esclient.Indices, pattern string) ([]string, error)
	// ReadsQuery reports whether a search pipeline may read the query.
	ReadsQuery(ctx context.Context, pipeline string) (bool, error)
}

// reasonOf returns the reason that an error of the cluster or of
// [Request.Allowed] is for leaving something alone, or the error where it is a
// failure.
func reasonOf(err error) (reason.Reason, error) {
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, mapping.ErrNotText), errors.Is(err, esclient.ErrRemote):
		return reason.NotText, nil
	case errors.Is(err, mapping.ErrMixed):
		return reason.Mixed, nil
	case errors.Is(err, esclient.ErrNoLinear):
		return reason.NoLinear, nil
	case errors.Is(err, esclient.ErrNoNorms):
		return reason.NoNorms, nil
	case errors.Is(err, esclient.ErrNoVectors):
		return reason.NoVectors, nil
	case errors.Is(err, ErrNotAuthorized):
		return reason.NotAuthorized, nil
	case errors.Is(err, ErrUnknown), esclient.IsUnknown(err):
		return reason.UnknownToCluster, nil
	}
	return "", err
}

// Rows are the neighbor rows of one version of one matrix.
type Rows interface {
	// Version names the matrix and its version, for explanations.
	Version() string
	// Docs is the number of documents that the document frequencies in the rows
	// refer to; 0 is unknown.
	Docs() int64
	// Power is p, above 0, where similarities are cosines to the power of p.
	Power() float64
	// Mixed reports whether a language model is mixed into the matrix.
	Mixed() bool
	// Rows sets rows[k] to the row of terms[k], the zero Row where the matrix
	// has none, in one round trip.
	Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error
	// Nearest returns the known word that is nearest to an unknown one in spelling, or
	// the two that it is made of, and how similar they are; none where no word is
	// near. It is quick and asks nobody.
	Nearest(word string) (known []string, similarity float32)
}

// Matrices gives out the active versions.
type Matrices interface {
	// Pin returns the versions active now, without I/O.
	Pin() Pinned
}

// A Pinned set has one version of every matrix, however often the active
// version changes meanwhile.
type Pinned interface {
	// For returns what is bound to a field of the indices. Warm, it answers from
	// memory; it asks the cluster what an index expression stands for, where that
	// decides, and its errors are those of a [Cluster].
	For(ctx context.Context, indices esclient.Indices, field string) (Bound, error)
}

// Bound is what is bound to a field of an index expression.
type Bound struct {
	Rows     Rows     // nil where no matrix is bound or it has no version yet
	Named    bool     // the field is bound by its full name, without a wildcard
	Resolved []string // what the expression stands for, nil where nobody has looked
}

// Weights are term weights W that were frozen at one moment: w = idf of a
// term's document frequency then, where one that is not known counts as 1.
type Weights interface {
	// ID names the weights by their content.
	ID() string
	// Docs and Rows are those of [Rows], with document frequencies and no more.
	Docs() int64
	Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error
}

// A WeightSource gives out the active weights, and knows what the indices have
// for [ModeHard].
type WeightSource interface {
	// Pin returns the weights active now, without I/O.
	Pin() PinnedWeights
	// Linear says where the exact scores of a field come from, given the
	// [Weights.ID] of its weights.
	Linear(ctx context.Context, indices esclient.Indices, field, weights string) (esclient.Linear, error)
}

// A PinnedWeights set has one version of all weights.
type PinnedWeights interface {
	// Weights returns what is bound to a field of the indices, nil where nothing is
	// bound or there. It may ask the cluster, as [Pinned.For] does.
	Weights(ctx context.Context, indices esclient.Indices, field string) (Weights, error)
}

// Pins are the versions of matrices and weights, and the models of vectors,
// that all searches of a request use. The zero value is none.
type Pins struct {
	Matrices Pinned
	Weights  PinnedWeights // nil where there are none, or the mode needs none
	Vectors  VectorSource  // as Weights
}

// A VectorSource knows the models of the vectors that documents have.
type VectorSource interface {
	// Model returns the model of the vectors that the documents of the indices have
	// of a field, and whether some have those of another. The error wraps
	// [esclient.ErrNoVectors] where there is none, or is one of a [Cluster].
	Model(ctx context.Context, indices esclient.Indices, field string) (m *vectors.Model, mixed bool, err error)
}

// A pinnedVectors answers each question as it did first, in one request.
type pinnedVectors struct {
	VectorSource

	mu    sync.Mutex
	known map[vectorQuestion]func() vectorAnswer
}

type vectorQuestion struct {
	indices esclient.Indices
	field   string
}

type vectorAnswer struct {
	model *vectors.Model
	mixed bool
	err   error
}

// Model implements [VectorSource].
func (p *pinnedVectors) Model(ctx context.Context, indices esclient.Indices, field string) (*vectors.Model, bool, error) {
	q := vectorQuestion{indices, field}
	p.mu.Lock()
	answer := p.known[q]
	if answer == nil {
		answer = sync.OnceValue(func() (a vectorAnswer) {
			a.model, a.mixed, a.err = p.VectorSource.Model(ctx, indices, field)
			return a
		})
		p.known[q] = answer
	}
	p.mu.Unlock()
	a := answer()
	return a.model, a.mixed, a.err
}

// sources are what expansion asks.
type sources struct {
	cluster  Cluster
	matrices Matrices
	weights  WeightSource // nil without
	vectors  VectorSource // nil without
	limits   *Limits
}

// pin returns the versions that are active now, those that a mode needs.
func (s *sources) pin(mode Mode) Pins {
	p := Pins{Matrices: s.matrices.Pin()}
	if s.weights != nil && (mode == ModeHard || mode == ModeSoft) {
		p.Weights = s.weights.Pin()
	}
	if s.vectors != nil && mode == ModeVectors {
		p.Vectors = &pinnedVectors{VectorSource: s.vectors, known: map[vectorQuestion]func() vectorAnswer{}}
	}
	return p
}

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
