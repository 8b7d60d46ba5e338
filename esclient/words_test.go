package esclient

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/e2e/clustertest"
	"github.com/akin-search/akin/esclient/mapping"
)

// TestAnalyzersThatMakeOtherTermsThanWords has flat settings as the engines
// answer them.
func TestAnalyzersThatMakeOtherTermsThanWords(t *testing.T) {
	const analyzer = `"index.analysis.analyzer.a.`
	for _, tt := range []struct{ name, settings, want string }{
		{"standard", ``, ""},
		{"letters", analyzer + `tokenizer":"letter"`, ""},
		{"words in many ways", analyzer + `type":"custom",` + analyzer + `tokenizer":"standard",` + analyzer + `filter":["lowercase","stop","snowball","asciifolding","word_delimiter_graph"]`, ""},
		{"a language", analyzer + `type":"english"`, ""},
		{"a filter of the engine", analyzer + `tokenizer":"standard",` + analyzer + `filter":["lowercase","edge_ngram"]`, "filter edge_ngram"},
		{"one filter as a string", analyzer + `tokenizer":"standard",` + analyzer + `filter":"shingle"`, "filter shingle"},
		{"several as a string", analyzer + `tokenizer":"standard",` + analyzer + `filter":"lowercase, ngram"`, "filter ngram"},
		{"an old name", analyzer + `tokenizer":"nGram"`, "tokenizer nGram"},
		{"another old name", analyzer + `tokenizer":"standard",` + analyzer + `filter":["edgeNGram"]`, "filter edgeNGram"},
		{"paths", analyzer + `tokenizer":"PathHierarchy"`, "tokenizer PathHierarchy"},
		{"paths by the new name", analyzer + `tokenizer":"path_hierarchy"`, "tokenizer path_hierarchy"},
		{
			"a tokenizer of the index", analyzer + `tokenizer":"parts","index.analysis.tokenizer.parts.type":"edge_ngram","index.analysis.tokenizer.parts.min_gram":"2"`,
			"tokenizer parts (edge_ngram)",
		},
		{
			"a filter of the index", analyzer + `tokenizer":"standard",` + analyzer + `filter":["lowercase","begins"],"index.analysis.filter.begins.type":"edge_ngram"`,
			"filter begins (edge_ngram)",
		},
		{"phonetic", analyzer + `tokenizer":"standard",` + analyzer + `filter":["sounds"],"index.analysis.filter.sounds.type":"phonetic","index.analysis.filter.sounds.encoder":"metaphone"`, "filter sounds (phonetic)"},
		{"phonetic of another kind", analyzer + `tokenizer":"standard",` + analyzer + `filter":["sounds"],"index.analysis.filter.sounds.type":"beider_morse"`, "filter sounds (beider_morse)"},
		{"min_hash", analyzer + `tokenizer":"standard",` + analyzer + `filter":["min_hash"]`, "filter min_hash"},
		{"common_grams", analyzer + `tokenizer":"standard",` + analyzer + `filter":["c"],"index.analysis.filter.c.type":"common_grams","index.analysis.filter.c.common_words":["the"]`, "filter c (common_grams)"},
		{"an analyzer of the engine", analyzer + `type":"fingerprint"`, "analyzer a (fingerprint)"},
		{
			"in a multiplexer", analyzer + `tokenizer":"standard",` + analyzer + `filter":["m"],"index.analysis.filter.m.type":"multiplexer","index.analysis.filter.m.filters":["lowercase","porter_stem, begins"],"index.analysis.filter.begins.type":"ngram"`,
			"filter begins (ngram)",
		},
		{"in a condition", analyzer + `tokenizer":"standard",` + analyzer + `filter":["c"],"index.analysis.filter.c.type":"condition","index.analysis.filter.c.filter":["shingle"]`, "filter shingle"},
		{"of the engine's name, of the index", analyzer + `tokenizer":"ngram",` + analyzer + `filter":["shingle"],"index.analysis.tokenizer.ngram.type":"standard","index.analysis.filter.shingle.type":"lowercase"`, ""},
		{"another analyzer's", analyzer + `tokenizer":"standard","index.analysis.analyzer.b.tokenizer":"ngram"`, ""},
		{"a synonym", analyzer + `tokenizer":"standard",` + analyzer + `filter":["s"],"index.analysis.filter.s.type":"synonym","index.analysis.filter.s.synonyms":["shingle, tile"]`, ""},
		{"filters that do not count", analyzer + `type":"standard",` + analyzer + `filter":["ngram"]`, ""},
		{"a circle", analyzer + `tokenizer":"standard",` + analyzer + `filter":["m"],"index.analysis.filter.m.type":"multiplexer","index.analysis.filter.m.filters":["m"]`, ""},
	} {
		var s mapping.Settings
		check.OK(t, json.Unmarshal([]byte("{"+tt.settings+"}"), &s))
		check.Equal(t, tt.want, s.NotWords("a"), tt.name)
	}
	none := mapping.Settings{}
	for name, want := range map[string]string{"default": "", "english": "", "fingerprint": "analyzer fingerprint"} {
		check.Equal(t, want, none.NotWords(name), name)
	}
}

func TestAnalysisTellsOfFieldsWithoutWords(t *testing.T) {
	const index = `{"a":{"settings":{"index.analysis.analyzer.begins.tokenizer":"standard","index.analysis.analyzer.begins.filter":["edge_ngram"],` +
		`"index.analysis.analyzer.default_search.type":"standard"},"mappings":{"properties":{` +
		`"both":{"type":"text","analyzer":"begins","search_analyzer":"begins"},` +
		`"index":{"type":"text","analyzer":"begins","search_analyzer":"standard"},` +
		`"search":{"type":"text","search_analyzer":"begins"},"words":{"type":"text"},` +
		`"typed":{"type":"search_as_you_type"}}}}}`
	f := clustertest.New().Reply("GET /a", http.StatusOK, index).Reply("POST /a/_analyze", http.StatusOK, `{"tokens":[{"token":"car","start_offset":0,"end_offset":3,"position":0}]}`)
	for field, want := range map[string]string{"both": "filter edge_ngram", "index": "filter edge_ngram", "search": "filter edge_ngram", "words": "", "typed": ""} {
		a, err := cached(t, f).Analyze(t.Context(), at("a"), field, "", "car")
		check.That(t, err == nil && a.NotWords == want, "%s: %+v, %v; want %q", field, a, err, want)
		// The analyzer of a clause does not change what is in the index.
		if a, err = cached(t, f).Analyze(t.Context(), at("a"), field, "standard", "car"); err != nil || a.NotWords != want {
			t.Errorf("%s, by another analyzer: %+v, %v; want %q", field, a, err, want)
		}
		if s, err := client(t, f).Schema(t.Context(), "a", field); err != nil || s.NotWords != want {
			t.Errorf("%s: %q, %v; want %q", field, s.NotWords, err, want)
		}
	}
	for _, field := range []string{"typed._2gram", "typed._index_prefix"} {
		a, err := cached(t, f).Analyze(t.Context(), at("a"), field, "", "car")
		check.That(t, telling(err), "%s: %+v, %v", field, a, err)
	}
}
