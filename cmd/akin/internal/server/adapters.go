package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

var (
	_ expand.Cluster  = cluster{}
	_ expand.Matrices = matrices{}
	_ expand.Pinned   = pinned{}
	_ expand.Rows     = (*rowstore.Rows)(nil)
	_ proxy.Expander  = (*expand.Expander)(nil)
)

// cluster answers expand from esclient.
type cluster struct{ cached *esclient.Cached }

func (c cluster) Analyze(ctx context.Context, t expand.Text) (*expand.Analysis, error) {
	a, err := c.cached.Analyze(ctx, esclient.Indices(t.Indices), t.Field, t.Analyzer, t.Text)
	if err != nil {
		return nil, alone(err)
	}
	return &expand.Analysis{
		Terms: a.Terms, Positions: a.Positions, Graph: a.Graph, Analyzer: a.Analyzer,
		Weighting: weighting(a.Similarity), Shards: a.Shards, Routed: a.Routed, Filtered: a.Filtered, NotWords: a.NotWords,
	}, nil
}

// alone makes those errors of esclient that are no failures known to expand.
func alone(err error) error {
	switch {
	case errors.Is(err, esclient.ErrNotText), errors.Is(err, esclient.ErrRemote):
		return fmt.Errorf("%w: %w", expand.ErrNotText, err)
	case errors.Is(err, esclient.ErrMixed):
		return fmt.Errorf("%w: %w", expand.ErrMixed, err)
	case unknown(err):
		return fmt.Errorf("%w: %w", expand.ErrUnknown, err)
	default:
		return err
	}
}

// unknown reports whether the cluster refused a call of akin's own for an index
// that is missing or closed, or for an analyzer that it does not have.
func unknown(err error) bool {
	var refused *esclient.Error
	return errors.As(err, &refused) && !barred(err) &&
		(refused.Status == http.StatusBadRequest || refused.Status == http.StatusNotFound)
}

// barred reports whether the cluster refused a call for its setting
// search.allow_expensive_queries, which bars queries of nested fields too:
// their document frequencies are counted by one. All engines say it in the
// same words.
func barred(err error) bool {
	const words = "queries cannot be executed when 'search.allow_expensive_queries' is set to false"
	var refused *esclient.Error
	return errors.As(err, &refused) && refused.Type == "exception" && strings.Contains(refused.Reason, words)
}

// unauthorized reports whether the cluster refused a call of akin's own for its
// credentials, and not for a block on an index, which is a 403, too.
func unauthorized(e *esclient.Error) bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.Type != "cluster_block_exception"
}

// weighting says how a field is scored: by a constant with the boolean
// similarity, with idf once by all others that the engines have built in.
func weighting(s esclient.Similarity) expand.Weighting {
	if s == esclient.Boolean {
		return expand.WeightOne
	}
	return expand.WeightBM25
}

func (c cluster) Statistics(
	ctx context.Context, indices expand.Indices, field string, terms []string, docFreqs []int64,
) (expand.Statistics, error) {
	s, err := c.cached.Statistics(ctx, esclient.Indices(indices), field, terms, docFreqs)
	return expand.Statistics(s), err
}

func (c cluster) Fields(ctx context.Context, indices expand.Indices, pattern string) ([]string, error) {
	names, err := c.cached.Fields(ctx, esclient.Indices(indices), pattern)
	if err != nil {
		return nil, alone(err)
	}
	return names, nil
}

// matrices gives expand the versions that are active in a row store, of the
// matrices of some names, or of all where names is nil.
type matrices struct {
	store   *rowstore.Store
	cluster *esclient.Cached
	names   []string
}

func (m matrices) Pin() expand.Pinned { return pinned{m.store.Pin(), m.cluster, m.names} }

type pinned struct {
	snapshot *rowstore.Snapshot
	cluster  *esclient.Cached
	names    []string
}

func (p pinned) For(ctx context.Context, indices expand.Indices, field string) (expand.Bound, error) {
	m, err := match(ctx, p.snapshot, p.cluster, indices, field, p.names)
	bound := expand.Bound{Named: m.Named, Resolved: m.Resolved}
	if m.Rows != nil { // else an interface that is not nil
		bound.Rows = m.Rows
	}
	return bound, err
}

// match finds what is bound to a field of the indices. Those of other clusters,
// and those that the cluster tells akin nothing of, are matched by the names in
// the expression alone.
func match(
	ctx context.Context, snapshot *rowstore.Snapshot, cluster *esclient.Cached, indices expand.Indices, field string, among []string,
) (rowstore.Match, error) {
	return snapshot.Match(rowstore.Question{
		Index: indices.Expression, Field: field, Among: among,
		Resolve: func() ([]string, error) {
			names, err := cluster.Resolve(ctx, esclient.Indices(indices), field)
			var refused *esclient.Error
			switch {
			case errors.Is(err, esclient.ErrRemote), errors.Is(err, esclient.ErrNotText), unknown(err):
				return nil, nil
			case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
				return nil, nil
			}
			return names, err
		},
	})
}
