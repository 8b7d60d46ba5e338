package esclient

import (
	"context"
	"errors"
	"fmt"
)

// ErrNoVectors says that too few documents have vectors by a model.
var ErrNoVectors = errors.New("no vectors of the documents")

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
