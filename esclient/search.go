package esclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// An Object is a JSON object of a request.
type Object = map[string]any

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

// search searches the indices for what filter lets through of the answer.
func search[H, A any](ctx context.Context, c *Client, indices Indices, filter string, body Object) (found[H, A], error) {
	body["track_total_hits"], body["_source"] = false, false
	var answer found[H, A]
	err := c.Do(ctx, Call{
		Method: http.MethodPost, Path: indices.path("/_search", url.Values{"filter_path": {filter}}), Body: body, Limit: smallAnswer,
	}, &answer)
	if n := answer.Shards.Failed; err == nil && n > 0 {
		err = fmt.Errorf("%d %w", n, errShards)
	}
	return answer, err
}

// TermQuery returns the query for one term of a field.
func TermQuery(field, term string) Object {
	return Object{"term": Object{field: Object{"value": term}}}
}

// ExistsQuery returns the query for the documents that have a field.
func ExistsQuery(field string) Object { return Object{"exists": Object{"field": field}} }
