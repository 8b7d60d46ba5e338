package esclient

import (
	"context"
	"slices"
)

// unreading are the request processors of OpenSearch's search pipelines that
// do not read the texts of a query: they wrap the query, add to it, or change
// other members of the body. Others, such as ml_inference, may read it by JSON
// path, which finds nothing in a query that was rewritten. A script reads no
// query, but can set min_score, explain and profile behind akin's back.
var unreading = []string{"filter_query", "neural_query_enricher", "neural_sparse_two_phase_processor", "oversample"}

// A pipeline is a search pipeline; the other processors see no query.
type pipeline struct {
	Request []map[string]any `json:"request_processors"`
}

func (p *pipeline) readsQuery() bool {
	return slices.ContainsFunc(p.Request, func(processor map[string]any) bool {
		for kind := range processor {
			if !slices.Contains(unreading, kind) {
				return true
			}
		}
		return false
	})
}

// ReadsQuery reports whether a search pipeline, as a body defines it, has a
// request processor that may read the query. One that cannot be read may.
func ReadsQuery(definition []byte) bool {
	var p pipeline
	return Decode(definition, &p) != nil || p.readsQuery()
}

// ReadsQuery reports whether a search pipeline of the cluster (OpenSearch) has
// a request processor that may read the query. It takes one round trip where
// the answer is not cached, and the right cluster:admin/search/pipeline/get.
func (c *Cached) ReadsQuery(ctx context.Context, name string) (bool, error) {
	k := key{kind: readsQueryOfPipeline, field: name}
	return recall(ctx, c, c.statistics, k, k, func(c *Cached, ctx context.Context, k key) (bool, error) {
		var found map[string]pipeline
		if err := c.client.Do(ctx, Call{Request: HTTPRequest{Path: "/_search/pipeline/" + Name(k.field)}}, &found); err != nil {
			return false, err
		}
		p := found[k.field]
		return p.readsQuery(), nil
	})
}
