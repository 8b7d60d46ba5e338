package esclient

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/mapping"
)

const (
	// maxTextFields bounds the answer that lists text fields: the names and types
	// in the mappings of some thousand indices.
	maxTextFields = 8 << 20
	// maxSample bounds the answer with one document's text.
	maxSample = 1 << 20
	// sampleWords and sampleBytes bound the text that is made of it: as long as
	// what people search for.
	sampleWords, sampleBytes = 5, 200
)

// A TextIndex is a name that searches can go to, with the fields of text there.
type TextIndex struct {
	// Name is that of an open index, or of an alias.
	Name string
	// Fields are full names, in order.
	Fields []string
}

// TextIndices lists the open indices of an expression that have text fields,
// and their aliases, by name. It takes one round trip.
func (c *Client) TextIndices(ctx context.Context, index string) ([]TextIndex, error) {
	var answer map[string]struct {
		mapping.Tree

		Aliases map[string]jsontext.Value `json:"aliases"`
	}
	path := Indices{Expression: index}.path("", url.Values{
		"ignore_unavailable": {"true"}, "allow_no_indices": {"true"}, "expand_wildcards": {"open"},
		"filter_path": {"*.settings.index.verified_before_close,*.aliases,*.mappings.properties.**.type"},
	})
	if err := c.call(ctx, request{method: http.MethodGet, path: path, limit: maxTextFields}, &answer); err != nil {
		return nil, err
	}
	fields := map[string]map[string]string{}
	for name, tree := range answer {
		found, err := mapping.TextFields(tree.Mappings.Properties)
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", name, err)
		}
		if len(found) == 0 || tree.Settings.Index.Closed == "true" {
			continue
		}
		fields[name] = found
		for alias := range tree.Aliases {
			if fields[alias] == nil {
				fields[alias] = map[string]string{}
			}
			maps.Copy(fields[alias], found)
		}
	}
	all := make([]TextIndex, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, TextIndex{name, slices.Sorted(maps.Keys(fields[name]))})
	}
	return all, nil
}

// SampleText returns some words that a document of an index has in a field, ""
// where there is none to be had.
func (c *Client) SampleText(ctx context.Context, index, field string) (string, error) {
	var answer struct {
		Hits struct {
			Hits []struct {
				Fields map[string][]jsontext.Value `json:"fields"`
			} `json:"hits"`
		} `json:"hits"`
	}
	r := request{
		method: http.MethodPost,
		path:   indexPath(index, "/_search?filter_path=hits.hits.fields"),
		body: object{
			"size": 1, "terminate_after": 1, "track_total_hits": false, "_source": false, "fields": []string{field},
			"query": object{"exists": object{"field": field}},
		},
		limit: maxSample,
	}
	if err := c.call(ctx, r, &answer); err != nil {
		return "", err
	}
	for i := range answer.Hits.Hits {
		for _, value := range answer.Hits.Hits[i].Fields[field] {
			var text string
			if answers.Decode(value, &text) == nil {
				return firstWords(text), nil
			}
		}
	}
	return "", nil
}

// firstWords returns the first words of a text.
func firstWords(text string) string {
	words := strings.Fields(text[:min(len(text), sampleBytes)])
	return strings.ToValidUTF8(strings.Join(words[:min(len(words), sampleWords)], " "), "")
}
