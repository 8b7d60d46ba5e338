package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/vectors"
	"github.com/akin-search/akin/internal/cli"
)

// Bounds of a model's file: its size in bytes, and the time to read it.
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

// A vectorSource gives expand the models that documents have vectors by.
type vectorSource struct {
	models  []*vectors.Model
	cluster *esclient.Cached
	log     *slog.Logger
	logged  atomic.Int64 // when documents were last said to have other vectors, in Unix seconds
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
		if none = err; !errors.Is(err, esclient.ErrNoVectors) {
			return nil, false, err
		}
		last, now := s.logged.Load(), time.Now().Unix()
		if now-last >= 60 && s.logged.CompareAndSwap(last, now) {
			s.log.InfoContext(ctx, "a model is not used: too few documents have vectors by it", "field", field, "model", m.ID(), "err", err)
		}
	}
	return nil, false, none
}
