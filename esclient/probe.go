package esclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/mapping"
)

// maxProbeTerms is the number of terms that the scale probe looks for: enough
// to find a document, few enough for a short explanation.
const maxProbeTerms = 32

// probeScale learns the scale of the field's BM25 (see [Statistics]) from the
// explanation of a document that has one of the terms. It returns 0 if no
// document has one, or its explanation is none of BM25.
func (q question) probeScale(ctx context.Context, s *mapping.Schema, terms []string) (float64, error) {
	var should []Object
	for _, t := range terms[:min(len(terms), maxProbeTerms)] {
		if len(t) <= maxTermBytes {
			should = append(should, TermQuery(q.field, t))
		}
	}
	if len(should) == 0 {
		return 0, nil
	}
	answer, err := search[explained, none](ctx, q.client, q.indices, "hits.hits._explanation", Object{
		"size": 1, "terminate_after": 1, "explain": true, "query": inNested(s, Object{"bool": Object{"should": should}}),
	})
	if err != nil {
		return 0, fmt.Errorf("learn the score's scale: %w", err)
	}
	return firstScale(answer.Hits.Hits), nil
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
	// The source is constant, so that the cluster compiles it once.
	script := Object{"lang": "painless", "source": "_score * params.a", "params": Object{"a": 1}}
	answer, err := search[none, none](ctx, c, indices, "_shards", Object{
		"size": 0, "terminate_after": 1,
		"query": Object{"script_score": Object{"query": Object{"match_all": Object{}}, "script": script}},
	})
	var e *answers.Error
	if errors.As(err, &e) && (e.Status == http.StatusBadRequest || e.Status == http.StatusForbidden) {
		return false, nil
	}
	if err == nil && answer.Shards.Successful == 0 {
		err = errors.New("no shard answered")
	}
	if err != nil {
		return false, fmt.Errorf("learn whether scripts run: %w", err)
	}
	return true, nil
}
