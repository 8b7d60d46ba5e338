package esclient

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cache"
)

// Inspect returns what each index with a text field says of it, by name. It
// takes one call; search analyzers may be "". Errors are as of [Client.Fields].
func (c *Client) Inspect(ctx context.Context, index, field string) ([]mapping.Inspection, error) {
	q := c.about(index, field)
	answer, err := q.get(ctx)
	if err != nil {
		return nil, err
	}
	all, err := mapping.Inspect(answer, field)
	if err != nil {
		return nil, q.wrap(err)
	}
	return all, nil
}

// Texts lists the text fields of the open indices of an expression, and the
// sorted names of the indices.
func (c *Client) Texts(ctx context.Context, index string) (names []string, texts map[string][]mapping.Text, err error) {
	var answer map[string]mapping.Index
	r := esapi.IndicesGetRequest{Index: []string{Name(index)}, ExpandWildcards: "open", FlatSettings: new(true)}
	if err := c.Do(ctx, Call{Request: r}, &answer); err != nil {
		return nil, nil, err
	}
	texts = map[string][]mapping.Text{}
	for name, m := range answer {
		found, err := mapping.Texts(name, m)
		if err != nil {
			return nil, nil, fmt.Errorf("mapping of index %q: %w", name, err)
		}
		name = cmp.Or(m.DataStream, name)
		texts[name] = append(texts[name], found...)
	}
	return slices.Sorted(maps.Keys(texts)), texts, nil
}

// SampleWords is the number of words in a text as long as a typical search;
// sampleBytes limits a word.
const SampleWords, sampleBytes = 5, 40

// A TextIndex is an open index or alias, with the full names of its text
// fields.
type TextIndex struct {
	Name   string
	Fields []string
}

// TextIndices lists the open indices of an expression with text fields, and
// their aliases, by name. It takes one round trip.
func (c *Client) TextIndices(ctx context.Context, index string) ([]TextIndex, error) {
	var answer map[string]mapping.Index
	r := esapi.IndicesGetRequest{
		Index: []string{Name(index)}, IgnoreUnavailable: new(true), AllowNoIndices: new(true), ExpandWildcards: "open",
		FlatSettings: new(true), FilterPath: []string{closedFilter, "*.aliases", "*.mappings.properties.**.type"},
	}
	const limit = 8 << 20 // names and types of some thousand indices
	if err := c.Do(ctx, Call{Request: r, Limit: limit}, &answer); err != nil {
		return nil, err
	}
	fields := map[string][]string{}
	for name, m := range answer {
		found, err := mapping.TextFields(m.Mappings.Properties)
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", name, err)
		}
		if len(found) == 0 || m.Closed() {
			continue
		}
		fields[name] = found
		for alias := range m.Aliases {
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

// SampleText returns some words of a document's field, or "" without any.
func (c *Client) SampleText(ctx context.Context, index, field string) (string, error) {
	texts, err := c.SampleTexts(ctx, index, field, 1, SampleWords)
	if len(texts) == 0 {
		return "", err
	}
	return texts[0], err
}

// SampleTexts returns the first words, at most words, of a field of some
// documents; none if they are not available.
func (c *Client) SampleTexts(ctx context.Context, index, field string, documents, words int) ([]string, error) {
	type hit struct {
		Fields map[string][]jsontext.Value `json:"fields"`
	}
	answer, err := search[hit, none](ctx, c, Indices{Expression: index}, "hits.hits.fields", Object{
		"size": documents, "terminate_after": documents, "fields": []string{field}, "query": ExistsQuery(field),
	})
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, h := range answer.Hits.Hits {
		for _, value := range h.Fields[field] {
			var text string
			if Decode(value, &text) == nil {
				found := strings.Fields(text[:min(len(text), words*sampleBytes)])
				texts = append(texts, strings.ToValidUTF8(strings.Join(found[:min(len(found), words)], " "), ""))
				break
			}
		}
	}
	return texts, nil
}

// Settings that limit what a search may ask for.
const (
	MaxClauses       = "indices.query.bool.max_clause_count" // of the cluster
	MaxRescoreWindow = "index.max_rescore_window"
	MaxResultWindow  = "index.max_result_window"
)

// AskLimit asks the cluster in the background for a setting's value, the
// smallest among several indices, and calls tell with it. It does not if the
// cluster does not say, is already being asked, or too many calls are in
// flight.
func (c *Cached) AskLimit(setting, index string, tell func(n int64)) {
	k := key{kind: limitOfIndices, Indices: Indices{Expression: index}, field: setting}
	cache.Start(context.Background(), c.statistics, k, 0, func(ctx context.Context) (n int64, err error) {
		if setting == MaxClauses {
			n, err = c.client.maxClauses(ctx)
		} else {
			n, err = c.client.indexLimit(ctx, setting, index)
		}
		if err == nil {
			tell(n)
		}
		return n, err
	})
}

// maxClauses asks for the cluster's setting. A transient value overrides a
// persistent one, and that the default, which may come from the node's file.
func (c *Client) maxClauses(ctx context.Context) (int64, error) {
	var answer struct {
		Transient  map[string]string `json:"transient"`
		Persistent map[string]string `json:"persistent"`
		Defaults   map[string]string `json:"defaults"`
	}
	r := esapi.ClusterGetSettingsRequest{IncludeDefaults: new(true), FlatSettings: new(true), FilterPath: []string{"*.*max_clause_count"}}
	if err := c.Do(ctx, Call{Request: r}, &answer); err != nil {
		return 0, err
	}
	return positive(MaxClauses, cmp.Or(answer.Transient[MaxClauses], answer.Persistent[MaxClauses], answer.Defaults[MaxClauses]))
}

// indexLimit asks for a setting of indices and returns the smallest value.
func (c *Client) indexLimit(ctx context.Context, setting, index string) (int64, error) {
	var answer map[string]struct {
		Settings map[string]string `json:"settings"`
		Defaults map[string]string `json:"defaults"`
	}
	r := esapi.IndicesGetSettingsRequest{
		Index: []string{Name(index)}, Name: []string{Name(setting)}, IncludeDefaults: new(true), FlatSettings: new(true),
	}
	if err := c.Do(ctx, Call{Request: r}, &answer); err != nil {
		return 0, err
	}
	least := int64(math.MaxInt64)
	for _, of := range answer {
		text, own := of.Settings[setting]
		if !own {
			text = of.Defaults[setting]
		}
		n, err := positive(setting, text)
		if err != nil {
			return 0, err
		}
		least = min(least, n)
	}
	if len(answer) == 0 {
		return 0, fmt.Errorf("no index has %s", setting)
	}
	return least, nil
}

func positive(setting, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%s is %q, not a positive number", setting, text)
	}
	return n, nil
}
