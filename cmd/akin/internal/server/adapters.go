package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/proxy"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

var (
	_ expand.Cluster  = (*esclient.Cached)(nil)
	_ expand.Matrices = matrices{}
	_ expand.Pinned   = pinned{}
	_ expand.Rows     = (*rowstore.Rows)(nil)
	_ proxy.Expander  = (*expand.Expander)(nil)
)

// unauthorized reports whether the cluster refused a call of akin's own for its
// credentials, and not for a block on an index, which is a 403, too.
func unauthorized(e *esclient.Error) bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.Type != "cluster_block_exception"
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

func (p pinned) For(ctx context.Context, indices esclient.Indices, field string) (expand.Bound, error) {
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
	ctx context.Context, snapshot *rowstore.Snapshot, cluster *esclient.Cached, indices esclient.Indices, field string, among []string,
) (rowstore.Match, error) {
	return snapshot.Match(rowstore.Question{
		Index: indices.Expression, Field: field, Among: among,
		Resolve: func() ([]string, error) {
			names, err := cluster.Resolve(ctx, indices, field)
			var refused *esclient.Error
			switch {
			case errors.Is(err, esclient.ErrRemote), errors.Is(err, esclient.ErrNotText), esclient.IsUnknown(err):
				return nil, nil
			case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
				return nil, nil
			}
			return names, err
		},
	})
}
