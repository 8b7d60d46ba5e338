package esclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/akin-search/akin/esclient/answers"
)

// A found is the answer to a search: hits with members H, and aggregations A.
type found[H, A any] struct {
	Shards struct {
		Successful int `json:"successful"`
		Failed     int `json:"failed"`
	} `json:"_shards"`
	Hits struct {
		Hits []H `json:"hits"`
	} `json:"hits"`
	Aggregations A `json:"aggregations"`
}

// none is what a search is not asked for.
type none struct{}

// documents is how many documents an aggregation counts.
type documents struct {
	DocCount int64 `json:"doc_count"`
}

// errShards says that an answer is not of all shards.
var errShards = errors.New("shards failed")

// search searches the indices for what filter lets through of the answer, never
// sources or how many hits there are.
func search[H, A any](ctx context.Context, c *Client, indices Indices, filter string, body Object) (found[H, A], error) {
	body["track_total_hits"], body["_source"] = false, false
	var answer found[H, A]
	err := c.Call(ctx, Request{
		Method: http.MethodPost, Path: indices.path("/_search", url.Values{"filter_path": {filter}}), Body: body, Limit: smallAnswer,
	}, &answer)
	if n := answer.Shards.Failed; err == nil && n > 0 {
		err = fmt.Errorf("%d %w", n, errShards)
	}
	return answer, err
}

// An explained hit has the explanation of its score.
type explained struct {
	Explanation answers.Explanation `json:"_explanation"`
}

// firstScale returns the scale of the first score that tells it, 0 for none.
func firstScale(hits []explained) float64 {
	for i := range hits {
		if scale, ok := hits[i].Explanation.Scale(); ok {
			return scale
		}
	}
	return 0
}

// TermQuery returns the query for one term of a field.
func TermQuery(field, term string) Object {
	return Object{"term": Object{field: Object{"value": term}}}
}

// ExistsQuery returns the query for the documents that have a field.
func ExistsQuery(field string) Object { return Object{"exists": Object{"field": field}} }
