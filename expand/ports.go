package expand

import (
	"context"
	"errors"

	"github.com/akin-search/akin/simmatrix"
)

// Errors of a [Cluster] that mean "leave this clause alone", not "something
// is broken". Every other error is a failure.
var (
	// ErrNotText says that the field is not mapped as text in every index of
	// the request that maps it, or is mapped in none.
	ErrNotText = errors.New("not a text field")
	// ErrMixed says that the indices of the request treat the field
	// differently: other analyzers or other similarities.
	ErrMixed = errors.New("the indices analyze or score the field differently")
	// ErrUnknown says that the cluster does not know what the request names, an
	// index or an analyzer. It will tell the client.
	ErrUnknown = errors.New("not known to the cluster")
	// ErrNotAuthorized is what [Request.Allowed] returns for a client that may
	// not search the indices.
	ErrNotAuthorized = errors.New("the client may not search these indices")
)

// A Weighting is the engine's way of scoring a term in a field; it decides W.
type Weighting uint8

// The weightings. With w the diagonal of W and idf the engine's own.
const (
	// WeightBM25 is any similarity that multiplies idf in once: w = √idf.
	WeightBM25 Weighting = iota
	// WeightIDF is a similarity with idf twice: w = idf.
	WeightIDF
	// WeightOne is the boolean similarity or a constant score: w = 1.
	WeightOne
)

// An Analysis is what the cluster makes of a text in a field. It is shared by
// all who asked for it and must not be modified.
type Analysis struct {
	// Terms are the index terms in the order of the text.
	Terms []string
	// Positions are the terms' positions, one for each of Terms, ascending.
	// Terms that share a position stand for one word of the text.
	Positions []int
	// Graph says that a term spans several positions, as a synonym of several
	// words does.
	Graph bool
	// Analyzer is the name of the analyzer that made the terms. The engines look
	// for a term in fields together only where their analyzers have one name.
	Analyzer string
	// Weighting is the way the engine scores the field.
	Weighting Weighting
	// Shards is the number of primary shards that answer, at least 1.
	Shards int
	// Routed says that an alias of the expression sends searches to some of the
	// shards only, or may do so.
	Routed bool
	// Filtered says that an alias of the expression has a filter, so that the
	// client may see some of the documents only.
	Filtered bool
	// NotWords names what in the field's analyzers makes other terms than words,
	// such as an n-gram filter; "" is nothing.
	NotWords string
}

// Indices say which indices a search goes to.
type Indices struct {
	// Expression is the index expression, unescaped; "" is all indices.
	Expression string
	// Options say how the cluster resolves it: those of the parameters
	// ignore_unavailable, allow_no_indices, expand_wildcards and
	// ignore_throttled that the request has, as a query string in the order of
	// their names; "" is the cluster's defaults.
	Options string
}

// A Text is a text that a clause searches for.
type Text struct {
	// Indices are those of the search.
	Indices Indices
	// Field is the full name of the field.
	Field string
	// Analyzer names the analyzer the clause asks for; "" is the field's own
	// search analyzer.
	Analyzer string
	// Text is the text itself.
	Text string
}

// Statistics are what the cluster knows of a field for scoring.
type Statistics struct {
	// DocCount is N, the number of documents that have the field.
	DocCount int64
	// Scale is the constant that the engine's BM25 multiplies idf·tf/(tf+K)
	// by: k1+1 in Elasticsearch and OpenSearch 1 and 2, 1 in OpenSearch 3.
	// 0 says that the field is not scored by BM25 or that the scale could not
	// be learnt; then the saturated form is not to be used.
	Scale float64
	// Scripts reports whether the cluster runs inline scripts in queries.
	Scripts bool
}

// A Cluster answers what expansion asks of the search cluster. Warm, it
// answers from memory; a call ends with ctx at the latest.
type Cluster interface {
	// Analyze returns the index terms of t. It returns an error that wraps
	// [ErrNotText] or [ErrMixed] where the field is not one to expand.
	Analyze(ctx context.Context, t Text) (*Analysis, error)
	// Statistics fills docFreqs[k] with the number of documents that hold
	// terms[k] in the field, over all shards that answer. The two slices have
	// the same length.
	Statistics(ctx context.Context, indices Indices, field string, terms []string, docFreqs []int64) (Statistics, error)
	// Fields returns the full names, in order, of the fields that a query with
	// the pattern for a field name searches: the mapped fields that match it
	// and that a query for a text can go to, be they text or not.
	Fields(ctx context.Context, indices Indices, pattern string) ([]string, error)
}

// Rows are the neighbor rows of one version of one matrix.
type Rows interface {
	// Version names the matrix and its version, for explanations.
	Version() string
	// Docs is the number of documents that the matrix was built from, to
	// which the document frequencies in its rows refer; 0 is unknown.
	Docs() int64
	// Rows sets rows[k] to the row of terms[k], the zero Row where the matrix
	// has none, in one round trip. The two slices have the same length.
	Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error
}

// A Pinned set holds one version of every matrix, however often the active
// version changes meanwhile.
type Pinned interface {
	// For returns what is bound to a field of the indices. Warm, it answers from
	// memory; it asks the cluster what an index expression stands for, where that
	// decides, and its errors are those of a [Cluster].
	For(ctx context.Context, indices Indices, field string) (Bound, error)
}

// Bound is what is bound to a field of an index expression.
type Bound struct {
	// Rows are nil where no matrix is bound or the bound one has no version yet.
	Rows Rows
	// Named says that the field is bound by its full name, without a wildcard.
	Named bool
	// Resolved are the indices that the expression stands for, nil where nobody
	// has looked.
	Resolved []string
}

// Weights are term weights W that were frozen at one moment: w = idf of a
// term's document frequency then.
type Weights interface {
	// ID names the weights by their content.
	ID() string
	// Docs is the number of documents that the frequencies refer to.
	Docs() int64
	// Rows sets rows[k] to a row that has the document frequency of terms[k], the
	// zero Row where it is not known, which counts as 1. What else is in the rows
	// means nothing. The two slices have the same length.
	Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error
}

// A WeightSource gives out the weights that are bound to fields.
type WeightSource interface {
	// Weights returns the weights for a field of the indices, in the version that
	// is active now, nil where none are bound or there. It may ask the cluster, as
	// [Pinned.For] does.
	Weights(ctx context.Context, indices Indices, field string) (Weights, error)
}

// A Linear tells where in the cluster the exact scores of a field come from.
type Linear struct {
	// Field is the field whose score for a term is linear in tf: the one asked
	// for or a multi-field of it with the same analyzers.
	Field string
	// Scripted says that the score is boost·tf. Else it is boost·Factor·idf·tf,
	// idf being that of the shard or, with dfs, of all shards.
	Scripted bool
	// Factor is c, positive; see Scripted.
	Factor float64
	// Norm is the name of the doc value that holds ‖Wy‖.
	Norm string
	// Missing stands for ‖Wy‖ where a document has none; it is positive.
	Missing float64
}

// Errors of [LinearFields] that mean "not in this mode".
var (
	// ErrNoLinear says that no field scores linearly in all indices of the
	// request.
	ErrNoLinear = errors.New("no field with a linear similarity")
	// ErrNoNorms says that the documents have no norms by these weights.
	ErrNoNorms = errors.New("no norms of the documents")
)

// LinearFields knows what the indices hold for [ModeHard].
type LinearFields interface {
	// Linear tells of a field, given the [Weights.ID] of its weights. Its error
	// wraps [ErrNoLinear] or [ErrNoNorms], or one of those of [Cluster].
	Linear(ctx context.Context, indices Indices, field, weights string) (Linear, error)
}

// Matrices gives out the active versions.
type Matrices interface {
	// Pin returns the versions active now. It does no I/O.
	Pin() Pinned
}
