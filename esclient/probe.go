package esclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/mapping"
)

// maxProbeTerms is the number of terms that the scale probe looks for: enough
// to find a document, few enough for a short explanation.
const maxProbeTerms = 32

// probeScale learns the scale of the field's BM25 (see [Statistics]) from the
// explanation of a document that holds one of the terms. It returns 0 if no
// document does, or its explanation is none of BM25.
func (c *Client) probeScale(
	ctx context.Context, indices Indices, field string, s *mapping.Schema, terms []string,
) (float64, error) {
	var should []object
	for _, t := range terms[:min(len(terms), maxProbeTerms)] {
		if len(t) <= maxTermBytes {
			should = append(should, termQuery(field, t))
		}
	}
	if len(should) == 0 {
		return 0, nil
	}
	var answer struct {
		Hits struct {
			Hits []struct {
				Explanation answers.Explanation `json:"_explanation"`
			} `json:"hits"`
		} `json:"hits"`
	}
	r := request{
		method: http.MethodPost, limit: smallAnswer,
		path: indices.path("/_search", url.Values{"filter_path": {"hits.hits._explanation"}}),
		body: object{
			"size": 1, "terminate_after": 1, "track_total_hits": false, "_source": false, "explain": true,
			"query": inNested(s, object{"bool": object{"should": should}}),
		},
	}
	if err := c.call(ctx, r, &answer); err != nil {
		return 0, fmt.Errorf("learn the score's scale: %w", err)
	}
	for i := range answer.Hits.Hits {
		if scale, ok := answer.Hits.Hits[i].Explanation.Scale(); ok {
			return scale, nil
		}
	}
	return 0, nil
}

// scaleOf returns the scale that the engine's version and the field's mapping
// lead to expect, 0 where the version is not understood.
func scaleOf(s mapping.Scoring, info Info) float64 {
	major, _, _ := strings.Cut(info.Version, ".")
	n, err := strconv.Atoi(major)
	switch {
	case err != nil:
		return 0
	case info.Distribution == "opensearch" && n >= 3 && !s.Legacy:
		// Lucene dropped k1+1 from BM25 in version 8; Elasticsearch and
		// OpenSearch 1 and 2 kept it, OpenSearch 3 does not.
		return 1
	default:
		return s.K1 + 1
	}
}

// probeScripts learns whether inline scripts run in searches of the indices.
// They do not where the cluster lacks painless, where its settings bar inline
// scripts or expensive queries, and where the user may not use them. It returns
// an error where the call tells nothing about scripts.
func (c *Client) probeScripts(ctx context.Context, indices Indices) (bool, error) {
	var answer struct {
		Shards struct {
			Successful int `json:"successful"`
			Failed     int `json:"failed"`
		} `json:"_shards"`
	}
	// The source is constant, so that the cluster compiles it once.
	script := object{"lang": "painless", "source": "_score * params.a", "params": object{"a": 1}}
	r := request{
		method: http.MethodPost, limit: smallAnswer,
		path: indices.path("/_search", url.Values{"filter_path": {"_shards"}}),
		body: object{
			"size": 0, "terminate_after": 1, "track_total_hits": false,
			"query": object{"script_score": object{"query": object{"match_all": object{}}, "script": script}},
		},
	}
	err := c.call(ctx, r, &answer)
	var e *Error
	switch {
	case errors.As(err, &e) && (e.Status == http.StatusBadRequest || e.Status == http.StatusForbidden):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("learn whether scripts run: %w", err)
	case answer.Shards.Failed > 0 || answer.Shards.Successful == 0:
		return false, fmt.Errorf("learn whether scripts run: %d shards failed", answer.Shards.Failed)
	}
	return true, nil
}
