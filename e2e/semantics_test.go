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
func semanticsDefinition(e *engine) string {
	analysis, fields := "", ""
	if e.scripts { // the engines with scripts have the module for analysis, too
		analysis = `,"analysis":{
			"filter":{"few":{"type":"edge_ngram","min_gram":2,"max_gram":4},
				"syn":{"type":"synonym","synonyms":["quick, fast"]},"words":{"type":"synonym_graph","synonyms":["sports car, coupe"]}},
			"analyzer":{"grams":{"tokenizer":"standard","filter":["lowercase","few"]},
				"syn":{"tokenizer":"standard","filter":["lowercase","syn"]},"words":{"tokenizer":"standard","filter":["lowercase","words"]}}}`
		fields = `,"grams":{"type":"text","analyzer":"grams","search_analyzer":"standard"},
			"gramsboth":{"type":"text","analyzer":"grams"},"typed":{"type":"search_as_you_type"},
			"syn":{"type":"text","analyzer":"standard","search_analyzer":"syn"},
			"words":{"type":"text","analyzer":"standard","search_analyzer":"words"}`
	}
	return fmt.Sprintf(`{"settings":{"number_of_shards":1,"number_of_replicas":0%s},"mappings":{"properties":{
		"body":{"type":"text","fields":{"stem":{"type":"text","analyzer":"english"}%s}},
		"title":{"type":"text"},"subtitle":{"type":"text"},"cjk":{"type":"text","analyzer":"cjk"},
		"mixed":{"type":"text","analyzer":"standard","search_analyzer":"english"},
		"n":{"type":"integer"},"tag":{"type":"keyword"},"parts":{"type":"nested","properties":{"text":{"type":"text"}}}}}}`,
		analysis, fields)
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

// serveSemantics makes the index on e and starts an akin for every writing. The
// matrix is for some fields, all of them where none are given.
func serveSemantics(t *testing.T, e *engine, fields ...string) []contender {
	t.Helper()
	e.makeIndex(t, semanticsIndex, semanticsDefinition(e))
	e.index(t, semanticsIndex, semanticsDocuments())
	matrix := section{"name": "main", "file": build(t, "--from-tsv", writeFile(t, "pairs.tsv", semanticsPairs))}
	if fields != nil {
		matrix["fields"] = fields
	}
	return startContenders(t, e, matrix, nil)
}

// meant returns the sorted ids of the hits of a query.
func (c cluster) meant(t *testing.T, query string) []string {
	t.Helper()
	return c.find(t, semanticsIndex, `{"size":200,"query":`+query+`}`).sorted()
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
	eachEngine(t, func(t *testing.T, e *engine) {
		contenders := serveSemantics(t, e)
		for name, query := range queries {
			for _, tt := range tests {
				option := tt.option
				if name == "query_string" {
					option = strings.ReplaceAll(option, `"operator"`, `"default_operator"`)
				}
				q := fmt.Sprintf(query, option)
				t.Run(name+" "+tt.option, func(t *testing.T) {
					if got, want := e.meant(t, q), inBody(words, tt.least, false); !slices.Equal(got, want) {
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
						if got := c.meant(t, q); !slices.Equal(got, want) {
							t.Errorf("%s: %q, want %q", c.name, got, want)
						}
					}
				})
			}
		}
		checkNoFallback(t, akins(contenders)...)
	})
}

// A meaning is a query with the documents that it finds through akin, beyond
// those that it finds directly.
type meaning struct {
	name, query string
	// more are the ids that come in: none where only their order may change, nil
	// where the search is not expanded.
	more []string
	// modules says that the engine needs its modules for analysis.
	modules bool
	// combined says that the engine has to know combined_fields.
	combined bool
}

// fieldMeanings are queries on several fields.
var fieldMeanings = []meaning{
	{
		name: "best_fields and", query: `{"multi_match":{"fields":["title","body"],"query":"car red","operator":"and"}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson"},
	},
	{
		name: "cross_fields and", query: `{"multi_match":{"fields":["title","body"],"type":"cross_fields","query":"car red","operator":"and"}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"},
	},
	{
		name: "combined_fields and", query: `{"combined_fields":{"fields":["title^2","body"],"query":"car red","operator":"and"}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"}, combined: true,
	},
	{
		name: "cross_fields minimum", query: `{"multi_match":{"fields":["title","body"],"type":"cross_fields","query":"car red boat","minimum_should_match":2}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"},
	},
	{
		name: "wildcard", query: `{"multi_match":{"fields":["*title"],"query":"car"}}`,
		more: []string{"title:auto", "title:auto body:crimson", "subtitle:auto"},
	},
	{
		name: "wildcard and name", query: `{"multi_match":{"fields":["sub*^3","title"],"type":"most_fields","query":"car"}}`,
		more: []string{"title:auto", "title:auto body:crimson", "subtitle:auto"},
	},
	{
		name: "tie_breaker", query: `{"multi_match":{"fields":["title^2","subtitle"],"query":"car","tie_breaker":0.3}}`,
		more: []string{"title:auto", "title:auto body:crimson", "subtitle:auto"},
	},
	{name: "bool_prefix", query: `{"multi_match":{"fields":["title"],"type":"bool_prefix","query":"car fil"}}`, more: []string{"title:auto", "title:auto body:crimson"}},
	{
		name: "search_as_you_type", query: `{"multi_match":{"fields":["body.typed","body.typed._2gram"],"type":"bool_prefix","operator":"and","query":"car red bi"}}`,
		more: []string{"auto-red-big"}, modules: true,
	},
	{name: "match_bool_prefix and", query: `{"match_bool_prefix":{"body":{"query":"car red bi","operator":"and"}}}`, more: []string{"auto-red-big"}},
	{
		name: "simple_query_string and", query: `{"simple_query_string":{"fields":["title","body"],"query":"car red","default_operator":"and"}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"},
	},
	{
		name: "simple_query_string minimum", query: `{"simple_query_string":{"fields":["title","body"],"query":"car red boat","minimum_should_match":2}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"},
	},
	{
		name: "cross_fields of several analyzers", query: `{"query_string":{"fields":["title","body.stem"],"type":"cross_fields","query":"car red boat","minimum_should_match":2}}`,
		more: []string{"auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship"},
	},
	{name: "phrase", query: `{"multi_match":{"fields":["body"],"type":"phrase","query":"car red"}}`, more: []string{}},
}

// analyzerMeanings are queries whose text is analyzed in some special way.
var analyzerMeanings = []meaning{
	{name: "the field's own", query: `{"match":{"body.stem":"cars"}}`, more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-red-big"}},
	{name: "not stemmed", query: `{"match":{"body":"cars"}}`},
	{name: "the clause's", query: `{"match":{"body":{"query":"cars","analyzer":"english"}}}`, more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-red-big"}},
	{name: "search_analyzer", query: `{"match":{"mixed":"dogs"}}`, more: []string{"hounds"}},
	{name: "only stop words", query: `{"match":{"body.stem":{"query":"the of and","zero_terms_query":"none"}}}`},
	{name: "a language without blanks", query: `{"match":{"cjk":"日本"}}`, more: []string{"東京"}},
	{name: "synonyms", query: `{"match":{"body.syn":"quick"}}`, modules: true, more: []string{"rapid", "huge-ship-swift"}},
	{name: "synonyms and", query: `{"match":{"body.syn":{"query":"quick boat","operator":"and"}}}`, modules: true, more: []string{"huge-ship-swift"}},
	{name: "a synonym of several words", query: `{"match":{"body.words":"sports car"}}`, modules: true, more: []string{}}, // only as a phrase
	{name: "synonym and", query: `{"match":{"body.words":{"query":"coupe","operator":"and"}}}`, modules: true, more: []string{}},
	{name: "n-grams in the index", query: `{"match":{"body.grams":"car"}}`, modules: true, more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-red-big"}},
	{name: "n-grams in both", query: `{"match":{"body.gramsboth":"red"}}`, modules: true},
}

// known reports whether the engine knows what m needs.
func (e *engine) known(m meaning) bool {
	if m.combined {
		return e.family == "elasticsearch" && e.name != "elasticsearch7"
	}
	return e.scripts || !m.modules
}

func TestFieldsAndAnalyzersKeepTheirMeaning(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		// Fields of n-grams are not expanded unless a binding names them in full.
		contenders := serveSemantics(t, e, "*", "body.grams", "body.gramsboth")
		for _, m := range slices.Concat(fieldMeanings, analyzerMeanings) {
			if e.known(m) {
				t.Run(m.name, func(t *testing.T) { checkMeaning(t, e, contenders, m) })
			}
		}
		checkNoFallback(t, akins(contenders)...)
	})
}

// checkMeaning compares what a query finds through akin with what it finds
// directly and what is to come in.
func checkMeaning(t *testing.T, e *engine, contenders []contender, m meaning) {
	t.Helper()
	direct := e.meant(t, m.query)
	want := slices.Sorted(slices.Values(append(slices.Clone(direct), m.more...)))
	for _, c := range contenders {
		var got []string
		rewritten := c.rewrites(t, func() { got = c.meant(t, m.query) }) > 0
		if !slices.Equal(got, want) || rewritten != (m.more != nil) {
			t.Errorf("%s: %q, want %q and directly %q; rewritten: %t: %s", c.name, got, m.more, direct, rewritten,
				c.written(t, semanticsIndex, `{"query":`+m.query+`}`))
		}
	}
}
