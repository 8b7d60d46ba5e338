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

// Inspect says what each index of an expression has of what exact scores of a
// field need, by name. Indices that do not map it, or not as text, and closed
// ones are among them. norm and weights are as in [Cached.Linear].
func (c *Client) Inspect(ctx context.Context, index, field, norm, weights string) ([]mapping.Inspection, error) {
	q := c.about(index, field)
	if err := q.check(); err != nil {
		return nil, err
	}
	var answer map[string]struct {
		Mappings jsontext.Value   `json:"mappings"`
		Settings mapping.Settings `json:"settings"`
	}
	path := q.indices.path("", url.Values{"flat_settings": {"true"}, "expand_wildcards": {"open,closed"}})
	if err := c.get(ctx, path, &answer); err != nil {
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
	if err := c.get(ctx, "/_script_language", &answer); err != nil || !slices.Contains(answer.Types, "inline") {
		return false, err
	}
	for _, l := range answer.Languages {
		if l.Language == "painless" && slices.Contains(l.Contexts, "similarity") {
			return true, nil
		}
	}
	return false, nil
}

const (
	// maxTextFields bounds the answer that lists text fields: the names and types
	// in the mappings of some thousand indices.
	maxTextFields = 8 << 20
	// sampleWords and sampleBytes bound the text that is made of a document: as
	// long as what people search for.
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
	if err := c.Call(ctx, Request{Method: http.MethodGet, Path: path, Limit: maxTextFields}, &answer); err != nil {
		return nil, err
	}
	fields := map[string][]string{}
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
			fields[alias] = append(fields[alias], found...)
		}
	}
	all := make([]TextIndex, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		slices.Sort(fields[name])
		all = append(all, TextIndex{name, slices.Compact(fields[name])})
	}
	return all, nil
}

// SampleText returns some words that a document of an index has in a field, ""
// where there is none to be had.
func (c *Client) SampleText(ctx context.Context, index, field string) (string, error) {
	type hit struct {
		Fields map[string][]jsontext.Value `json:"fields"`
	}
	answer, err := search[hit, none](ctx, c, Indices{Expression: index}, "hits.hits.fields", Object{
		"size": 1, "terminate_after": 1, "fields": []string{field}, "query": ExistsQuery(field),
	})
	if err != nil {
		return "", err
	}
	for _, h := range answer.Hits.Hits {
		for _, value := range h.Fields[field] {
			var text string
			if answers.Decode(value, &text) == nil {
				words := strings.Fields(text[:min(len(text), sampleBytes)])
				return strings.ToValidUTF8(strings.Join(words[:min(len(words), sampleWords)], " "), ""), nil
			}
		}
	}
	return "", nil
}
