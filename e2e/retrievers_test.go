package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

// retrieverMembers are the members of each retriever that none of the engines
// here can run, with those that it needs first, as in Elastic's reference of the
// search API (9.2): https://www.elastic.co/docs/reference/elasticsearch/rest-apis/retrievers
var retrieverMembers = map[string]struct{ needs, takes []string }{
	"standard":                 {nil, []string{"query", "search_after", "terminate_after", "sort", "collapse"}},
	"knn":                      {[]string{"field"}, []string{"query_vector", "query_vector_builder", "k", "num_candidates", "visit_percentage", "similarity", "rescore_vector"}},
	"rrf":                      {nil, []string{"retrievers", "query", "fields", "rank_constant", "rank_window_size"}},
	"linear":                   {nil, []string{"retrievers", "query", "fields", "normalizer", "rank_window_size"}},
	"rescorer":                 {[]string{"retriever", "rescore"}, nil},
	"text_similarity_reranker": {[]string{"retriever", "inference_text", "field"}, []string{"inference_id", "rank_window_size", "chunk_rescorer"}},
	"random_reranker":          {[]string{"retriever", "field"}, []string{"rank_window_size"}},
	"rule":                     {[]string{"retriever", "ruleset_ids", "match_criteria"}, []string{"rank_window_size"}},
	"pinned":                   {[]string{"retriever"}, []string{"ids", "docs", "rank_window_size"}},
	"diversify":                {[]string{"retriever", "type", "field"}, []string{"query_vector", "query_vector_builder", "rank_window_size", "lambda", "size"}},
}

// checkRetriever returns what the reference does not allow in a retriever.
func checkRetriever(path string, v any) error {
	of, ok := v.(map[string]any)
	if !ok || len(of) != 1 {
		return fmt.Errorf("%s: want one retriever", path)
	}
	for kind, members := range of {
		known, ok := retrieverMembers[kind]
		options, isObject := members.(map[string]any)
		if !ok || !isObject {
			return fmt.Errorf("%s: %q is no retriever", path, kind)
		}
		path += "." + kind
		for _, name := range known.needs {
			if _, ok := options[name]; !ok {
				return fmt.Errorf("%s: needs %s", path, name)
			}
		}
		for name, value := range options {
			at := path + "." + name
			switch {
			case name == "filter" || name == "min_score" || name == "_name": // of all
			case !slices.Contains(known.needs, name) && !slices.Contains(known.takes, name):
				return fmt.Errorf("%s: unknown", at)
			case name == "retriever":
				if err := checkRetriever(at, value); err != nil {
					return err
				}
			case name == "retrievers":
				entries, _ := value.([]any)
				if len(entries) == 0 {
					return fmt.Errorf("%s: want a list", at)
				}
				for _, entry := range entries {
					// In objects they have a weight and, in linear, a normalizer.
					if o, _ := entry.(map[string]any); o["retriever"] != nil {
						for member := range o {
							if member != "retriever" && member != "weight" && (member != "normalizer" || kind != "linear") {
								return fmt.Errorf("%s: %s is unknown", at, member)
							}
						}
						entry = o["retriever"]
					}
					if err := checkRetriever(at, entry); err != nil {
						return err
					}
				}
			case name == "query" && kind == "standard":
				if o, _ := value.(map[string]any); len(o) != 1 {
					return fmt.Errorf("%s: want one query", at)
				}
			case name == "query":
				if _, ok := value.(string); !ok {
					return fmt.Errorf("%s: want a text", at)
				}
			}
		}
		if _, fields := options["fields"]; fields && options["query"] == nil {
			return fmt.Errorf("%s: fields without a query", path)
		}
		if kind == "rrf" || kind == "linear" {
			if (options["retrievers"] == nil) == (options["query"] == nil) {
				return fmt.Errorf("%s: want either retrievers or a query", path)
			}
		}
	}
	return nil
}

// What akin makes of retrievers keeps the shape that the reference publishes:
// Elasticsearch's core, which runs here, knows neither rrf nor linear.
func TestRewrittenRetrieversHaveThePublishedShape(t *testing.T) {
	checked := 0
	for _, f := range requestFiles(t) {
		if !strings.HasPrefix(f.Name, "retriever/") || f.Name == "retriever/unknown" {
			continue
		}
		sent, _, _ := strings.Cut(f.Want, requests.Separator)
		for what, text := range map[string]string{"the request": f.Body, "what is sent": sent} {
			var body map[string]any
			if json.Unmarshal([]byte(text), &body) != nil {
				continue // it goes as it came, which the file says in a word
			}
			if err := checkRetriever("retriever", body["retriever"]); err != nil {
				t.Errorf("%s, %s: %v", f.Name, what, err)
			}
			checked++
		}
	}
	if checked < 15 {
		t.Errorf("%d bodies", checked)
	}
	for _, bad := range []string{
		`{}`, `{"rrf":{}}`, `{"rrf":{"retrievers":[]}}`, `{"rrf":{"retrievers":[{"standard":{"querry":{}}}]}}`, `{"linear":{"fields":["a"]}}`,
		`{"rrf":{"retrievers":[{"retriever":{"standard":{}},"normalizer":"minmax"}]}}`, `{"pinned":{"ids":["1"]}}`, `{"standard":{},"knn":{"field":"v"}}`,
	} {
		var v any
		if err := json.Unmarshal([]byte(bad), &v); err != nil || checkRetriever("retriever", v) == nil {
			t.Errorf("%s is taken, %v", bad, err)
		}
	}
}
