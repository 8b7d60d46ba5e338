package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The fixture of the tests of what options mean: documents whose ids are their
// words, and pairs of related words.
const semanticsIndex = "akin-e2e-semantics"

const semanticsPairs = "car\tauto\t0.9\nred\tcrimson\t0.8\nbig\thuge\t0.7\nboat\tship\t0.9\nfast\tswift\t0.8\n" +
	"dog\thound\t0.9\nquick\trapid\t0.8\n日本\t東京\t0.8\n"

// relatedTo are the words that the pairs relate to a word.
var relatedTo = map[string]string{"car": "auto", "red": "crimson", "big": "huge", "boat": "ship", "fast": "swift"}

// semanticsTexts are the bodies of the documents.
var semanticsTexts = []string{
	"car red big boat", "car red big", "auto red big", "auto crimson huge", "auto crimson huge ship", "car auto red",
	"car auto", "car red", "auto crimson", "car", "auto", "red", "crimson", "ship", "boat big", "huge ship swift",
}

// semanticsDefinition is the index, with the analyzers that the engine has.
func semanticsDefinition(e *engine, shards int) string {
	analysis, fields := "", ""
	if e.scripts { // the engines with scripts have the module for analysis, too
		analysis = `,"analysis":{
			"filter":{"few":{"type":"edge_ngram","min_gram":2,"max_gram":4},
				"syn":{"type":"synonym","synonyms":["quick, fast"]},"words":{"type":"synonym_graph","synonyms":["sports car, coupe"]}},
			"analyzer":{"grams":{"tokenizer":"standard","filter":["lowercase","few"]},
				"syn":{"tokenizer":"standard","filter":["lowercase","syn"]},"words":{"tokenizer":"standard","filter":["lowercase","words"]}}}`
		fields = `,"grams":{"type":"text","analyzer":"grams","search_analyzer":"standard"},
			"gramsboth":{"type":"text","analyzer":"grams"},
			"syn":{"type":"text","analyzer":"standard","search_analyzer":"syn"},
			"words":{"type":"text","analyzer":"standard","search_analyzer":"words"}`
	}
	return fmt.Sprintf(`{"settings":{"number_of_shards":%d,"number_of_replicas":0%s},"mappings":{"properties":{
		"body":{"type":"text","fields":{"stem":{"type":"text","analyzer":"english"}%s}},
		"title":{"type":"text"},"subtitle":{"type":"text"},"cjk":{"type":"text","analyzer":"cjk"},
		"mixed":{"type":"text","analyzer":"standard","search_analyzer":"english"},
		"n":{"type":"integer"},"tag":{"type":"keyword"},"parts":{"type":"nested","properties":{"text":{"type":"text"}}}}}}`,
		shards, analysis, fields)
}

// semanticsDocuments are the documents with enough others.
func semanticsDocuments() []document {
	var docs []document
	add := func(id string, fields section) { docs = append(docs, document{id, fields}) }
	for i, text := range semanticsTexts {
		add(strings.ReplaceAll(text, " ", "-"), section{
			"body": text, "n": i, "tag": fmt.Sprint("t", i%3), "parts": []section{{"text": text}, {"text": "filler"}},
		})
	}
	add("title:auto body:crimson", section{"title": "auto", "subtitle": "filler", "body": "crimson", "n": 100})
	add("title:car body:red", section{"title": "car", "subtitle": "filler", "body": "red", "n": 101})
	add("title:auto", section{"title": "auto", "n": 102})
	add("subtitle:auto", section{"subtitle": "auto", "n": 103})
	add("東京", section{"cjk": "東京", "n": 104})
	add("日本", section{"cjk": "日本", "n": 105})
	add("hounds", section{"body": "hounds", "mixed": "hound", "n": 106})
	add("rapid", section{"body": "rapid", "n": 107})
	add("coupe", section{"body": "coupe", "n": 108})
	for i := range 60 {
		add(fmt.Sprint("filler-", i), section{"body": fmt.Sprint("filler ", i), "title": "filler", "n": 200 + i})
	}
	return docs
}

// semanticsMatrix returns the file of the matrix of the pairs.
func semanticsMatrix(t *testing.T) string {
	t.Helper()
	in := writeFile(t, "pairs.tsv", semanticsPairs)
	out := strings.TrimSuffix(in, ".tsv") + ".akin"
	mustAkin(t, "matrix", "build", "--from-tsv", in, "--out", out)
	return out
}

// serveSemantics makes the index on e and starts an akin for every writing.
func serveSemantics(t *testing.T, e *engine, matrix string, shards int, expansion section, fields ...string) []contender {
	t.Helper()
	e.makeIndex(t, semanticsIndex, semanticsDefinition(e, shards))
	e.index(t, semanticsIndex, semanticsDocuments())
	return startContenders(t, e, matrix, expansion, fields...)
}

const semanticsPath = "/" + semanticsIndex + "/_search"

// found returns the sorted ids of the hits of a query.
func (c cluster) found(t *testing.T, query string) []string {
	t.Helper()
	hits, err := c.search(t.Context(), semanticsPath, `{"size":200,"query":`+query+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return sortedIDs(hits)
}

// withWords returns the ids of the documents whose body has at least n of the
// words, each by itself or, where related words count, by its related one.
func withWords(words string, n int, related bool) []string {
	var ids []string
	for _, text := range append([]string{"crimson", "red"}, semanticsTexts...) {
		has := strings.Fields(text)
		matches := 0
		for word := range strings.FieldsSeq(words) {
			if slices.Contains(has, word) || related && slices.Contains(has, relatedTo[word]) {
				matches++
			}
		}
		if matches >= n {
			ids = append(ids, strings.ReplaceAll(text, " ", "-"))
		}
	}
	return ids
}

// inBody returns the sorted ids, and with them those of the documents with two
// fields, of which the body is one word.
func inBody(words string, n int, related bool) []string {
	ids := map[string]bool{}
	for _, id := range withWords(words, n, related) {
		ids[id] = true
	}
	for id, word := range map[string]string{"title:auto body:crimson": "crimson", "title:car body:red": "red"} {
		ids[id] = ids[word]
	}
	maps.DeleteFunc(ids, func(_ string, in bool) bool { return !in })
	return slices.Sorted(maps.Keys(ids))
}

// TestMinimumsCountOriginalWords asks for a number of words in every form that
// there is: a word and its related one together count once.
func TestMinimumsCountOriginalWords(t *testing.T) {
	const words = "car red big boat"
	tests := []struct {
		option string
		least  int
	}{
		{`"minimum_should_match":3`, 3},
		{`"minimum_should_match":-1`, 3},
		{`"minimum_should_match":"75%"`, 3},
		{`"minimum_should_match":"-25%"`, 3},
		{`"minimum_should_match":"2<75%"`, 3},
		{`"minimum_should_match":"2<-50% 3<2"`, 2},
		{`"minimum_should_match":"4<75%"`, 4},
		{`"minimum_should_match":2`, 2},
		{`"operator":"and"`, 4},
		{`"operator":"and","minimum_should_match":2`, 9}, // of no optional words two: never
		{`"operator":"and","minimum_should_match":"-25%"`, 4},
		{`"operator":"or"`, 1},
	}
	queries := map[string]string{
		"match":                   `{"match":{"body":{"query":"` + words + `",%s}}}`,
		"multi_match":             `{"multi_match":{"fields":["body","subtitle"],"query":"` + words + `",%s}}`,
		"multi_match most_fields": `{"multi_match":{"fields":["body","subtitle"],"type":"most_fields","query":"` + words + `",%s}}`,
		"query_string":            `{"query_string":{"fields":["body"],"query":"` + words + `",%s}}`,
	}
	matrix := semanticsMatrix(t)
	eachEngine(t, func(t *testing.T, e *engine) {
		contenders := serveSemantics(t, e, matrix, 1, nil)
		for name, query := range queries {
			for _, tt := range tests {
				option := tt.option
				if name == "query_string" {
					option = strings.ReplaceAll(option, `"operator"`, `"default_operator"`)
				}
				q := fmt.Sprintf(query, option)
				t.Run(name+" "+tt.option, func(t *testing.T) {
					if got, want := e.found(t, q), inBody(words, tt.least, false); !slices.Equal(got, want) {
						t.Fatalf("directly %q, want %q", got, want)
					}
					for _, c := range contenders {
						want := inBody(words, tt.least, true)
						if name != "match" && tt.least == 1 { // any field
							want = append(want, "subtitle:auto")
							slices.Sort(want)
						}
						if name == "query_string" {
							want = slices.DeleteFunc(want, func(id string) bool { return id == "subtitle:auto" })
						}
						if got := c.found(t, q); !slices.Equal(got, want) {
							t.Errorf("%s: %q, want %q", c.name, got, want)
						}
					}
				})
			}
		}
		checkNoFallback(t, contenders)
	})
}
