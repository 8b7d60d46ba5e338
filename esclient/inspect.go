package esclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/mapping"
)

// Inspect says what each index of an expression has of what exact scores of a
// field need, by name. Indices that do not map it, or not as text, and closed
// ones are among them. norm and weights are as in [Cached.Linear].
func (c *Client) Inspect(ctx context.Context, index, field, norm, weights string) ([]mapping.Inspection, error) {
	indices := Indices{Expression: index}
	if err := errors.Join(indices.check(), checkField(field)); err != nil {
		return nil, err
	}
	var answer map[string]struct {
		Mappings jsontext.Value   `json:"mappings"`
		Settings mapping.Settings `json:"settings"`
	}
	r := request{method: http.MethodGet, path: indices.path("", url.Values{"flat_settings": {"true"}, "expand_wildcards": {"open,closed"}})}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	var all []mapping.Inspection
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		i := mapping.Inspection{Index: name, Settings: answer[name].Settings, Mappings: answer[name].Mappings}
		if err := i.Read(field, norm, weights); err != nil {
			return nil, fmt.Errorf("mappings of index %q: %w", name, err)
		}
		all = append(all, i)
	}
	return all, nil
}

// SimilarityScripts reports whether the cluster takes scripts in the settings
// of similarities. It creates nothing for that. It returns an error where the
// cluster does not tell, as hosted ones may.
func (c *Client) SimilarityScripts(ctx context.Context) (bool, error) {
	var answer struct {
		Types     []string `json:"types_allowed"`
		Languages []struct {
			Language string   `json:"language"`
			Contexts []string `json:"contexts"`
		} `json:"language_contexts"`
	}
	if err := c.call(ctx, request{method: http.MethodGet, path: "/_script_language"}, &answer); err != nil {
		return false, err
	}
	if !slices.Contains(answer.Types, "inline") {
		return false, nil
	}
	for _, l := range answer.Languages {
		if l.Language == "painless" && slices.Contains(l.Contexts, "similarity") {
			return true, nil
		}
	}
	return false, nil
}

// NormCounts say how many documents of an index have what exact scores need.
type NormCounts struct {
	// Docs is the number of documents that have the field.
	Docs int64
	// Unfilled is how many of them lack the field that scores linearly, 0 where
	// none was asked for.
	Unfilled int64
	// Weighted is how many of them have the id of the weights asked for, or any
	// where none was, and Bare how many have none at all.
	Weighted, Bare int64
	// Normless is how many of them have an id and no norm: documents without a
	// term.
	Normless int64
	// IDs are the ids of weights that most of them have, with their numbers.
	IDs map[string]int64
}

// CountNorms counts documents of an index by one search. linear is the field
// that scores linearly, "" for none, and id that of the weights, "" for any;
// norm and weights are as in [Cached.Linear].
func (c *Client) CountNorms(ctx context.Context, index, field, linear, norm, weights, id string) (NormCounts, error) {
	var answer struct {
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
		Aggregations struct {
			Docs struct {
				documents

				Unfilled documents `json:"unfilled"`
				Weighted documents `json:"weighted"`
				Bare     documents `json:"bare"`
				Normless documents `json:"normless"`
				IDs      struct {
					Buckets []struct {
						Key string `json:"key"`
						documents
					} `json:"buckets"`
				} `json:"ids"`
			} `json:"docs"`
		} `json:"aggregations"`
	}
	exists := func(field string) object { return object{"exists": object{"field": field}} }
	without := func(field string, more ...object) object {
		return object{"filter": object{"bool": object{"must_not": exists(field), "filter": more}}}
	}
	const someIDs = 5
	aggregations := object{
		"bare": without(weights), "normless": without(norm, exists(weights)), "weighted": object{"filter": exists(weights)},
		"ids": object{"terms": object{"field": weights, "size": someIDs}},
	}
	if linear != "" {
		aggregations["unfilled"] = without(linear)
	}
	if id != "" {
		aggregations["weighted"] = object{"filter": termQuery(weights, id)}
	}
	r := request{
		method: http.MethodPost, path: indexPath(index, "/_search?filter_path=_shards.failed,aggregations"), timeout: pageTimeout,
		body: object{"size": 0, "track_total_hits": false, "aggs": object{
			"docs": object{"filter": exists(field), "aggs": aggregations},
		}},
	}
	if err := c.call(ctx, r, &answer); err != nil {
		return NormCounts{}, err
	}
	if n := answer.Shards.Failed; n > 0 {
		return NormCounts{}, fmt.Errorf("count the norms of %q: %d shards failed", index, n)
	}
	docs := &answer.Aggregations.Docs
	counts := NormCounts{
		Docs: docs.DocCount, Unfilled: docs.Unfilled.DocCount, Weighted: docs.Weighted.DocCount,
		Bare: docs.Bare.DocCount, Normless: docs.Normless.DocCount, IDs: map[string]int64{},
	}
	for _, b := range docs.IDs.Buckets {
		counts.IDs[b.Key] = b.DocCount
	}
	return counts, nil
}
