package esclient

import (
	"context"
	"errors"
	"fmt"
)

// ErrNoVectors says that too few documents have vectors by a model.
var ErrNoVectors = errors.New("no vectors of the documents")

// Vectors returns nil where at least nine tenths of the documents with a field
// have vectors by the model with the given id, which the keyword stamp names;
// else an error that wraps [ErrNoVectors]. mixed says that some of the others
// have vectors by another model. What is not remembered takes one round trip.
func (c *Cached) Vectors(ctx context.Context, indices Indices, field, stamp, id string) (mixed bool, err error) {
	k := c.key(indices, field).as(vectorsOfField)
	k.stamp, k.id = stamp, id
	return recall(ctx, c, c.statistics, k, k, func(c *Cached, ctx context.Context, k key) (bool, error) {
		return c.about(k).stamped(ctx, k.stamp, k.id)
	})
}

// stamped makes the call for [Cached.Vectors].
func (q question) stamped(ctx context.Context, stamp, id string) (mixed bool, err error) {
	type aggregations struct {
		Stamped documents `json:"stamped"`
		Others  documents `json:"others"`
		Foreign documents `json:"foreign"`
	}
	stamped := TermQuery(stamp, id)
	answer, err := search[none, aggregations](ctx, q.client, q.indices, "_shards.failed,aggregations", Object{
		"size":  0,
		"query": Object{"bool": Object{"filter": ExistsQuery(q.field)}},
		"aggs": Object{
			"stamped": Object{"filter": stamped},
			"others":  Object{"filter": Object{"bool": Object{"must_not": stamped}}},
			"foreign": Object{"filter": Object{"bool": Object{"must_not": stamped, "filter": ExistsQuery(stamp)}}},
		},
	})
	if err != nil {
		return false, q.wrap(fmt.Errorf("count the documents with vectors: %w", err))
	}
	some, others := answer.Aggregations.Stamped.DocCount, answer.Aggregations.Others.DocCount
	if some == 0 || float64(others) > maxNormless*float64(others+some) {
		return false, q.wrap(fmt.Errorf("%d of %d documents have vectors by the model %s: %w", some, some+others, id, ErrNoVectors))
	}
	return answer.Aggregations.Foreign.DocCount > 0, nil
}
