package server

import (
	"context"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/norms"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/rowstore"
)

var (
	_ expand.WeightSource = weightSource{}
	_ expand.Weights      = weights{}
	_ expand.LinearFields = linearFields{}
)

// exact returns e with what the modes hard and soft need.
func (a *App) exact(e *expand.Expander) *expand.Expander {
	if a.weights == nil {
		return e.WithExact(nil, nil)
	}
	return e.WithExact(weightSource{a.weights, a.cluster}, linearFields{a.cluster})
}

// linearFields tells expand what the indices hold for the mode hard.
type linearFields struct{ cached *esclient.Cached }

func (l linearFields) Linear(ctx context.Context, indices esclient.Indices, field, weights string) (esclient.Linear, error) {
	return l.cached.Linear(ctx, indices, field, norms.NormPath(field), norms.WeightsPath(field), weights)
}

// weightSource gives expand the weights that are active in a row store.
type weightSource struct {
	store   *rowstore.Store
	cluster *esclient.Cached
}

func (s weightSource) Weights(ctx context.Context, indices esclient.Indices, field string) (expand.Weights, error) {
	m, err := match(ctx, s.store.Pin(), s.cluster, indices, field, nil)
	if err != nil || m.Rows == nil {
		return nil, err // not a weights of nil
	}
	return weights{m.Rows}, nil
}

// weights are a matrix of which the document frequencies alone are looked at.
type weights struct{ rows *rowstore.Rows }

// ID names the weights as documents do.
func (w weights) ID() string { return norms.ID(w.rows.Checksum()) }

func (w weights) Docs() int64 { return w.rows.Docs() }

func (w weights) Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error {
	return w.rows.Rows(ctx, terms, rows)
}
