package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/store"
)

// unauthorized reports whether the cluster refused akin's own call for its
// credentials. A 403 can also be for a block on an index.
func unauthorized(e *esclient.Error) bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.Type != "cluster_block_exception"
}

// matrices gives expand the active versions in a row store: of the named
// matrices, or of all if names is nil.
type matrices struct {
	store   *store.Store
	cluster *esclient.Cached
	names   []string
}

func (m matrices) Pin() expand.Pinned { return pinned{m.store.Pin(), m.cluster, m.names} }

// pinned answers from one snapshot of a row store, of matrices or of weights.
type pinned struct {
	snapshot *store.Snapshot
	cluster  *esclient.Cached
	names    []string
}

func (p pinned) For(ctx context.Context, indices esclient.Indices, field string) (expand.Bound, error) {
	m, err := p.match(ctx, indices, field)
	bound := expand.Bound{Named: m.Named, Resolved: m.Resolved}
	if m.Rows != nil { // else bound.Rows would be a non-nil interface
		bound.Rows = m.Rows
	}
	return bound, err
}

func (p pinned) Weights(ctx context.Context, indices esclient.Indices, field string) (expand.Weights, error) {
	m, err := p.match(ctx, indices, field)
	if err != nil || m.Rows == nil {
		return nil, err // not a non-nil Weights with nil in it
	}
	return weights{m.Rows}, nil
}

// match finds what is bound to a field of the indices. Indices about which the
// cluster says nothing, such as remote ones, are matched by name.
func (p pinned) match(ctx context.Context, indices esclient.Indices, field string) (store.Match, error) {
	return p.snapshot.Match(indices.Expression, field, p.names, func() ([]string, error) {
		names, err := p.cluster.Resolve(ctx, indices, field)
		refused, ok := errors.AsType[*esclient.Error](err)
		if ok && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden) ||
			errors.Is(err, esclient.ErrRemote) || errors.Is(err, mapping.ErrNotText) || esclient.IsUnknown(err) {
			return nil, nil
		}
		return names, err
	})
}

// weightSource gives expand the active weights in a row store, and what the
// indices have for the modes hard and softcosine.
type weightSource struct {
	store   *store.Store
	cluster *esclient.Cached
}

func (s weightSource) Pin() expand.PinnedWeights { return pinned{s.store.Pin(), s.cluster, nil} }

func (s weightSource) Linear(ctx context.Context, indices esclient.Indices, field, weights, matrix string) (esclient.Linear, error) {
	if matrix != "" {
		id := esclient.SoftNormID(weights, matrix)
		return s.cluster.Linear(ctx, indices, field, esclient.SoftNormPath(field), esclient.SoftNormMatrixPath(field), id)
	}
	return s.cluster.Linear(ctx, indices, field, esclient.NormPath(field), esclient.NormWeightsPath(field), weights)
}

// weights is a matrix of which only document frequencies are used.
type weights struct{ rows *store.Rows }

// ID returns the name of the weights in documents.
func (w weights) ID() string { return esclient.NormWeightsID(w.rows.Checksum()) }

func (w weights) Docs() int64 { return w.rows.Docs() }

func (w weights) Rows(ctx context.Context, terms []string, rows []simmatrix.Row) error {
	return w.rows.Rows(ctx, terms, rows)
}

// termVectors adapts esclient to package soft.
type termVectors struct{ documents.API }

// maxNames limits the bytes of index names in one request: engines accept a
// request line of 4 KiB, in which a byte can take three.
const maxNames = 1000

// UUIDs implements [soft.TermVectors].
func (v termVectors) UUIDs(ctx context.Context, indices, ids []string) error {
	found, err := v.Concrete(ctx, indices)
	for k, name := range indices {
		ids[k] = found[name].UUID
	}
	return err
}

// Concrete implements [embedding.Sources].
func (v termVectors) Concrete(ctx context.Context, indices []string) (map[string]documents.ConcreteIndex, error) {
	byName := make(map[string]documents.ConcreteIndex, len(indices))
	for rest := indices; len(rest) > 0; {
		n, length := 1, len(rest[0])
		for n < len(rest) && length+len(rest[n]) < maxNames {
			length += len(rest[n]) + 1
			n++
		}
		found, err := v.Indices(ctx, strings.Join(rest[:n], ","))
		if err != nil {
			return nil, err
		}
		for _, i := range found {
			byName[i.Name] = i
		}
		rest = rest[n:]
	}
	return byName, nil
}

// Limits of a model file: bytes and the time to read it.
const maxModel, modelTime = 4 << 30, time.Minute

func readModels(ctx context.Context, paths []string, log *slog.Logger) (models []*vectors.Model, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, modelTime, errors.New("it does not end"))
	defer cancel()
	for i, path := range paths {
		m, err := cli.Read(ctx, path, func(r io.Reader) (*vectors.Model, error) {
			return vectors.Read(bufio.NewReaderSize(io.LimitReader(r, maxModel), 1<<20))
		})
		if err != nil {
			return nil, fmt.Errorf("vectors[%d]: %w", i, err)
		}
		models = append(models, m)
		log.InfoContext(ctx, "model of vectors", "file", path, "model", m.ID(), "field", m.Meta().Field, "store", m.Meta().Store)
	}
	return models, nil
}

// A vectorSource gives expand the models of documents' vectors.
type vectorSource struct {
	models  []*vectors.Model
	cluster *esclient.Cached
	log     *slog.Logger
	logged  atomic.Int64 // last log line about documents with other vectors, in Unix seconds
}

// Model implements [expand.VectorSource].
func (s *vectorSource) Model(ctx context.Context, indices esclient.Indices, field string) (m *vectors.Model, mixed bool, err error) {
	none := esclient.ErrNoVectors
	for _, m := range s.models {
		if m.Meta().Field != field {
			continue
		}
		mixed, err := s.cluster.Vectors(ctx, indices, field, vectors.ModelPath(field), m.ID())
		if err == nil {
			return m, mixed, nil
		}
		none = err
		if !errors.Is(err, esclient.ErrNoVectors) {
			return nil, false, err
		}
		last, now := s.logged.Load(), time.Now().Unix()
		if now-last >= 60 && s.logged.CompareAndSwap(last, now) {
			s.log.InfoContext(ctx, "a model is not used: too few documents have vectors by it", "field", field, "model", m.ID(), "err", err)
		}
	}
	return nil, false, none
}
