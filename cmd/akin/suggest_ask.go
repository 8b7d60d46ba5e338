package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/tools/suggest"
)

// suggestCluster asks a cluster what helps a search.
type suggestCluster struct{ client *esclient.Client }

// Tokens implements [suggest.Cluster].
func (c suggestCluster) Tokens(ctx context.Context, index, field, text string) ([]esclient.Token, error) {
	tokens, err := c.client.AnalyzeTexts(ctx, index, field, []string{text})
	if err != nil {
		return nil, err
	}
	return tokens[0], nil
}

const (
	shownTitles = 3
	titleLength = 80 // characters
	// findTimeout limits an _msearch, searchTimeout each search in it.
	findTimeout   = 20 * time.Second
	searchTimeout = "5s"
)

// titleFields are the fields that usually have the title of a document, the
// likeliest first. Where there is none, a searched field stands for it.
var titleFields = []string{"title", "name", "subject", "heading", "headline", "label"}

// Find implements [suggest.Cluster] by one _msearch.
func (c suggestCluster) Find(ctx context.Context, index string, fields []string, words [][]string) ([]suggest.Found, error) {
	titles := slices.Concat(titleFields, fields)
	var body bytes.Buffer
	for _, all := range words {
		must := make([]esclient.Object, len(all))
		for k, word := range all {
			match := esclient.Object{"query": word, "fields": fields, "operator": "and"}
			if strings.Contains(word, " ") {
				match = esclient.Object{"query": word, "fields": fields, "type": "phrase"}
			}
			must[k] = esclient.Object{"multi_match": match}
		}
		search := esclient.Object{"size": shownTitles, "_source": titles, "timeout": searchTimeout, "query": esclient.Object{"bool": esclient.Object{"must": must}}}
		line, err := json.Marshal(search, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		body.WriteString("{}\n")
		body.Write(line)
		body.WriteByte('\n')
	}
	var answer struct {
		Responses []struct {
			Hits struct {
				Total struct {
					Value int64 `json:"value"`
				} `json:"total"`
				Hits []struct {
					Source map[string]any `json:"_source"`
				} `json:"hits"`
			} `json:"hits"`
			Error *struct {
				Type   string `json:"type"`
				Reason string `json:"reason"`
			} `json:"error"`
		} `json:"responses"`
	}
	err := c.client.Do(ctx, esclient.Call{
		Request: esapi.MsearchRequest{
			Index: []string{esclient.Name(index)}, Body: &body,
			FilterPath: []string{"responses.hits.total.value", "responses.hits.hits._source", "responses.error.type", "responses.error.reason", "responses.status"},
		}, Timeout: findTimeout,
	}, &answer)
	if err != nil {
		return nil, err
	}
	found := make([]suggest.Found, len(answer.Responses))
	var refused error
	answered := false
	for k := range answer.Responses {
		r := &answer.Responses[k]
		if r.Error != nil { // as of a phrase in a field without positions
			refused = errors.New("the cluster refuses a search: " + r.Error.Type + ": " + r.Error.Reason)
			continue
		}
		answered = true
		found[k].Total = r.Hits.Total.Value
		for _, hit := range r.Hits.Hits {
			found[k].Titles = append(found[k].Titles, titleOf(hit.Source, titles))
		}
	}
	if !answered {
		return nil, refused
	}
	return found, nil
}

// titleOf returns the first of the fields that has a text, cut short.
func titleOf(source map[string]any, fields []string) string {
	for _, field := range fields {
		value := source[field]
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		text, _ := value.(string)
		if text = strings.Join(strings.Fields(text), " "); text == "" {
			continue
		}
		if runes := []rune(text); len(runes) > titleLength {
			text = string(runes[:titleLength-1]) + "…"
		}
		return text
	}
	return "(no title)"
}
