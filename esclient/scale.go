package esclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/akin-search/akin/esclient/mapping"
)

// A ScoreExplanation is a node of the explanation of a score.
type ScoreExplanation struct {
	Value       float64            `json:"value"`
	Description string             `json:"description"`
	Details     []ScoreExplanation `json:"details"`
}

// Scale returns the factor of the first BM25 score in the tree: k1+1, or 1 if
// the score has no factor. It returns false if there is no such score or its
// factor is another.
func (e *ScoreExplanation) Scale() (float64, bool) {
	// "score(freq=2.0), computed as boost * idf * tf from:", since Lucene 8.
	if !strings.HasPrefix(e.Description, "score(freq=") || !strings.Contains(e.Description, "boost * idf * tf") {
		for i := range e.Details {
			if scale, ok := e.Details[i].Scale(); ok {
				return scale, ok
			}
		}
		return 0, false
	}
	boost, k1 := 1.0, math.NaN()
	for _, d := range e.Details {
		switch {
		case d.Description == "boost":
			boost = d.Value
		case strings.HasPrefix(d.Description, "tf,"):
			for _, p := range d.Details {
				if strings.HasPrefix(p.Description, "k1,") {
					k1 = p.Value
				}
			}
		}
	}
	// The engine uses 32-bit floats.
	const precision = 1e-5
	if boost > 0 && (boost == 1 || math.Abs(boost-(k1+1)) <= precision*boost) {
		return boost, true
	}
	return 0, false
}

// An explained hit has an explanation of its score.
type explained struct {
	Explanation ScoreExplanation `json:"_explanation"`
}

// firstScale returns the first scale found in the hits, or 0.
func firstScale(hits []explained) float64 {
	for i := range hits {
		if scale, ok := hits[i].Explanation.Scale(); ok {
			return scale
		}
	}
	return 0
}

// maxProbeTerms limits the terms of the scale probe: enough to find a document,
// few enough for a short explanation.
const maxProbeTerms = 32

// probeScale learns the scale of the field's BM25 from the explanation of a
// document with one of the terms. It returns 0 if no document has one, or if
// its score is not BM25.
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

// scaleOf returns the scale expected for the engine's version and the field's
// mapping, or 0 if the version is not understood.
func scaleOf(s mapping.FieldScoring, info Info) float64 {
	major, _, _ := strings.Cut(info.Version, ".")
	n, err := strconv.Atoi(major)
	switch {
	case err != nil:
		return 0
	case info.Distribution == "opensearch" && n >= 3 && !s.Legacy:
		return 1 // Lucene 8 dropped k1+1; Elasticsearch and OpenSearch 1 and 2 kept it
	default:
		return s.K1 + 1
	}
}

// probeScripts learns whether searches of the indices may run inline scripts.
// An error means that the call did not show it.
func (c *Client) probeScripts(ctx context.Context, indices Indices) (bool, error) {
	// The source is constant, so the cluster compiles it once.
	script := Object{"lang": "painless", "source": "_score * params.a", "params": Object{"a": 1}}
	answer, err := search[none, none](ctx, c, indices, "_shards", Object{
		"size": 0, "terminate_after": 1,
		"query": Object{"script_score": Object{"query": Object{"match_all": Object{}}, "script": script}},
	})
	if isNo(err) {
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
