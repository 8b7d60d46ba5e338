package esclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoVectors says that too few documents have vectors by a model.
var ErrNoVectors = errors.New("no vectors of the documents")

// Vectors returns nil where at least nine tenths of the documents with a field
// have vectors by the model with the given id, which the keyword stamp names;
// else an error that wraps [ErrNoVectors]. What is not remembered takes one
// round trip.
func (c *Cached) Vectors(ctx context.Context, indices Indices, field, stamp, id string) error {
	k := c.key(indices, field)
	k.text = stamp + "\x00" + id
	_, err := recall(ctx, c, c.statistics.vectors, k, k, func(c *Cached, ctx context.Context, k key) (struct{}, error) {
		stamp, id, _ := strings.Cut(k.text, "\x00")
		return struct{}{}, c.about(k).stamped(ctx, stamp, id)
	})
	return err
}

// stamped makes the call for [Cached.Vectors].
func (q question) stamped(ctx context.Context, stamp, id string) error {
	type aggregations struct {
		Stamped documents `json:"stamped"`
		Others  documents `json:"others"`
	}
	stamped := TermQuery(stamp, id)
	answer, err := search[none, aggregations](ctx, q.client, q.indices, "_shards.failed,aggregations", Object{
		"size":  0,
		"query": Object{"bool": Object{"filter": ExistsQuery(q.field)}},
		"aggs": Object{
			"stamped": Object{"filter": stamped},
			"others":  Object{"filter": Object{"bool": Object{"must_not": stamped}}},
		},
	})
	if err != nil {
		return q.wrap(fmt.Errorf("count the documents with vectors: %w", err))
	}
	some, others := answer.Aggregations.Stamped.DocCount, answer.Aggregations.Others.DocCount
	if some == 0 || float64(others) > maxNormless*float64(others+some) {
		return q.wrap(fmt.Errorf("%d of %d documents have vectors by the model %s: %w", some, some+others, id, ErrNoVectors))
	}
	return nil
}
