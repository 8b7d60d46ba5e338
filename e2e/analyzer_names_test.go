package e2e

import (
	"fmt"
	"slices"
	"testing"
)

const (
	namesIndex      = "akin-e2e-names"
	namesDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0,"analysis":{"analyzer":{
		"one":{"type":"custom","tokenizer":"standard","filter":["lowercase"]},
		"two":{"type":"custom","tokenizer":"standard","filter":["lowercase"]}}}},
	"mappings":{"properties":{"a":{"type":"text","analyzer":"one"},"b":{"type":"text","analyzer":"two"},"c":{"type":"text","analyzer":"one"}}}}`
)

// TestFieldsThatTheEngineKeepsApartStayApart: the engines look for a text in
// fields together only where their analyzers have one name, however they are
// defined. What akin adds must not bring the words of the text together.
func TestFieldsThatTheEngineKeepsApartStayApart(t *testing.T) {
	file := relatedFile(t, vectorsA)
	docs := []document{
		{"a car red", map[string]any{"a": "car red"}},
		{"a car, b red", map[string]any{"a": "car", "b": "red"}},
		{"a car, c red", map[string]any{"a": "car", "c": "red"}},
		{"a automobile, c red", map[string]any{"a": "automobile", "c": "red"}},
		{"a automobile, b red", map[string]any{"a": "automobile", "b": "red"}},
	}
	for i := range 50 {
		docs = append(docs, document{fmt.Sprint("filler ", i), map[string]any{"a": "filler", "b": "filler", "c": "filler"}})
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, namesIndex, namesDefinition)
		e.index(t, namesIndex, docs)
		a := serveRelated(t, e, file, nil)
		for fields, want := range map[string][]string{
			`"a","b"`: {"a car red"},
			`"a","c"`: {"a automobile, c red", "a car red", "a car, c red"},
		} {
			body := `{"query":{"multi_match":{"query":"car red","type":"cross_fields","operator":"and","fields":[` + fields + `]}}}`
			hits, err := a.search(t.Context(), "/"+namesIndex+"/_search", body)
			if err != nil {
				t.Fatal(err)
			}
			if got := sortedIDs(hits); !slices.Equal(got, want) {
				t.Errorf("%s: hits %q, want %q", fields, got, want)
			}
		}
	})
}
