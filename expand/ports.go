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
	ErrUnknown       = errors.New("not known to the cluster") // the cluster reports this to the client itself
)

// A Cluster answers questions about the search cluster, such as
// [*esclient.Cached]. With warm caches it answers from memory. Calls end with
// ctx.
type Cluster interface {
	// Analyze returns the index terms of a text in a field. An analyzer of ""
	// stands for the field's own.
	Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error)
	// Statistics sets docFreqs[k] to the number of documents that contain terms[k]
	// in the field, over all shards that answer.
	Statistics(ctx context.Context, indices esclient.Indices, field string, terms []string, docFreqs []int64) (esclient.FieldStatistics, error)
	// DocumentTerms returns the most telling terms of stored documents in a field.
	DocumentTerms(ctx context.Context, indices esclient.Indices, field string, docs []esclient.StoredDocument, filter esclient.TermFilter) (*esclient.DocumentTerms, error)
	// Fields returns the sorted full names of the mapped fields, text or not, that
	// a query with the given field name pattern searches.
	Fields(ctx context.Context, indices esclient.Indices, pattern string) ([]string, error)
	// ReadsQuery reports whether a search pipeline may read the query.
	ReadsQuery(ctx context.Context, pipeline string) (bool, error)
}

// reasonOf returns the reason that an error of the cluster or of
// [Request.Allowed] stands for, or the error itself if it is a failure.
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
	// Version names the matrix and its version, for explanations. Checksum
	// identifies its content.
	Version() string
	Checksum() string
	// Docs is the number of documents that the document frequencies in the rows
	// refer to; 0 if unknown.
	Docs() int64
	// Power is p > 0 if similarities are cosines to the power of p.
	Power() float64
	// Model names what the matrix has word vectors of, such as a language model; ""
	// if it has none.
	Model() string
	// Expressions returns what reports whether the matrix may have a row of an
	// expression, without a call, or nil if it has no expression at all.
	Expressions() func(expression string) bool
	// Rows sets rows[k] to the row of terms[k], or to the zero Row if the matrix
	// has none, in one round trip.
	Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error
	// Nearest returns the known word with the spelling nearest to an unknown one,
	// or the two known words that it is composed of, and their similarity. It
	// returns none if no word is near. It is fast and makes no call.
	Nearest(word string) (known []string, similarity float32)
}

// Matrices gives access to the active versions.
type Matrices interface {
	// Pin returns the currently active versions, without I/O.
	Pin() Pinned
}

// A Pinned set has one version of every matrix. It does not change when other
// versions become active.
type Pinned interface {
	// For returns what is bound to a field of the indices. It asks the cluster
	// what the index expression stands for if that matters; with warm caches it
	// answers from memory. Its errors are those of a [Cluster].
	For(ctx context.Context, indices esclient.Indices, field string) (Bound, error)
}

// Bound is the matrix bound to a field of an index expression.
type Bound struct {
	Rows     Rows     // nil if no matrix is bound or it has no version yet
	Named    bool     // the field is bound by its full name, without a wildcard
	Resolved []string // the indices that the expression stands for, nil if unknown
}

// Weights are term weights W, frozen at one moment: w is the idf of a term's
// document frequency at that moment, or of 1 if that is unknown.
type Weights interface {
	// ID identifies the weights by their content.
	ID() string
	// Docs and Rows are as in [Rows], but rows have only document frequencies.
	Docs() int64
	Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error
}

// A WeightSource gives access to the active weights, and knows the fields that
// [ModeHard] and [ModeSoftCosine] need.
type WeightSource interface {
	// Pin returns the currently active weights, without I/O.
	Pin() PinnedWeights
	// Linear returns the source of the exact scores of a field. weights is the
	// [Weights.ID] of its weights, matrix the checksum of S for soft norms, "" for
	// ‖Wy‖.
	Linear(ctx context.Context, indices esclient.Indices, field, weights, matrix string) (esclient.Linear, error)
}

// A PinnedWeights set has one version of all weights.
type PinnedWeights interface {
	// Weights returns the weights bound to a field of the indices, or nil if none
	// are bound or available. It may ask the cluster, as [Pinned.For] does.
	Weights(ctx context.Context, indices esclient.Indices, field string) (Weights, error)
}

// pins are the versions of matrices and weights, and the vector models, that
// all searches of a request use.
type pins struct {
	Matrices Pinned
	Weights  PinnedWeights // nil if there are none or the mode needs none
	Vectors  VectorSource  // like Weights
}

// A VectorSource knows the models of the documents' vectors.
type VectorSource interface {
	// Model returns the model of a field's vectors in the documents of the
	// indices. mixed reports whether some documents have vectors of another model.
	// The error wraps [esclient.ErrNoVectors] if there is no model, or is one of a
	// [Cluster].
	Model(ctx context.Context, indices esclient.Indices, field string) (m *vectors.Model, mixed bool, err error)
}

// A pinnedVectors gives the same answer to a question throughout a request.
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

// A DocumentVectors knows what the vectors of documents are made of.
type DocumentVectors interface {
	// Knows reports whether vectors are made of a field, and the model answers. It
	// is fast and makes no call.
	Knows(field string) bool
}

// sources are the sources of information for an expansion.
type sources struct {
	cluster  Cluster
	matrices Matrices
	weights  WeightSource // may be nil
	vectors  VectorSource // may be nil
	hits     HitMemory    // may be nil
	// documents are the vectors of [ByEmbeddings], which does not work without; may
	// be nil.
	documents DocumentVectors
	limits    *Limits
}

// pin returns the currently active versions that a mode needs.
func (s *sources) pin(mode Mode) pins {
	p := pins{Matrices: s.matrices.Pin()}
	if s.weights != nil && (mode == ModeHard || mode.orders() || mode == ModeSoftCosine) {
		p.Weights = s.weights.Pin()
	}
	if s.vectors != nil && mode == ModeVectors {
		p.Vectors = &pinnedVectors{VectorSource: s.vectors, known: map[vectorQuestion]func() vectorAnswer{}}
	}
	return p
}

// A Stage names the part of an expansion that failed.
type Stage string

// The stages that call other services. Their spans have the same names.
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

// A StageError is a failed expansion. The original request is sent then.
type StageError struct {
	Stage Stage
	Err   error
}

// Error says which stage failed and how.
func (e *StageError) Error() string { return fmt.Sprintf("%s: %v", e.Stage, e.Err) }

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// failed wraps an error with its stage; nil stays nil.
func failed(s Stage, err error) error {
	if err == nil {
		return nil
	}
	return &StageError{s, err}
}

// run runs a stage in a span of the trace, if any.
func run(ctx context.Context, s Stage, f func(context.Context) error) error {
	ctx, span := tracing.Start(ctx, string(s))
	defer span.End()
	return failed(s, f(ctx))
}
