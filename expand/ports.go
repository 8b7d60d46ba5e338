package expand

import (
	"context"
	"errors"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/simmatrix"
)

// What [Request.Allowed] returns where the client is not to be answered by
// an expanded search.
var (
	// ErrNotAuthorized says that the client may not search the indices.
	ErrNotAuthorized = errors.New("the client may not search these indices")
	// ErrUnknown says that the cluster does not know the indices. It will tell
	// the client.
	ErrUnknown = errors.New("not known to the cluster")
)

// A Cluster answers what expansion asks of the search cluster;
// [*esclient.Cached] is one. Warm, it answers from memory; a call ends with
// ctx at the latest.
type Cluster interface {
	// Analyze returns the index terms of a text in a field, by the analyzer named
	// or, where that is "", by the field's own.
	Analyze(ctx context.Context, indices esclient.Indices, field, analyzer, text string) (*esclient.Analysis, error)
	// Statistics fills docFreqs[k] with the number of documents that hold
	// terms[k] in the field, over all shards that answer. The two slices have
	// the same length.
	Statistics(ctx context.Context, indices esclient.Indices, field string, terms []string, docFreqs []int64) (esclient.Statistics, error)
	// Fields returns the full names, in order, of the fields that a query with
	// the pattern for a field name searches: the mapped fields that match it
	// and that a query for a text can go to, be they text or not.
	Fields(ctx context.Context, indices esclient.Indices, pattern string) ([]string, error)
}

// clusterReason returns the reason that an error of the cluster is for
// leaving something alone, "" for a failure.
func clusterReason(err error) reason.Reason {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, mapping.ErrNotText), errors.Is(err, esclient.ErrRemote):
		return reason.NotText
	case errors.Is(err, mapping.ErrMixed):
		return reason.Mixed
	case errors.Is(err, esclient.ErrNoLinear):
		return reason.NoLinear
	case errors.Is(err, esclient.ErrNoNorms):
		return reason.NoNorms
	case esclient.IsUnknown(err):
		return reason.UnknownToCluster
	}
	return ""
}

// unless returns err unless it is the reason given.
func unless(why reason.Reason, err error) error {
	if why != "" {
		return nil
	}
	return err
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

// Matrices gives out the active versions.
type Matrices interface {
	// Pin returns the versions active now. It does no I/O.
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
	Weights(ctx context.Context, indices esclient.Indices, field string) (Weights, error)
}

// LinearFields knows what the indices hold for [ModeHard].
type LinearFields interface {
	// Linear says where the exact scores of a field come from, given the
	// [Weights.ID] of its weights.
	Linear(ctx context.Context, indices esclient.Indices, field, weights string) (esclient.Linear, error)
}
