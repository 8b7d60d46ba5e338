package e2e

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const expressionsIndex = "akin-e2e-expressions"

// expressionsDefinition has the same text in fields that find phrases
// differently.
const expressionsDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
	"body":{"type":"text","analyzer":"english","fields":{
		"pairs":{"type":"text","analyzer":"english","index_phrases":true},
		"bare":{"type":"text","analyzer":"english","index_options":"freqs"}}}}}}`

// expressionsTexts are documents, by their numbers.
var expressionsTexts = []string{
	"heart attack symptoms in women",
	"myocardial infarction symptoms in women",
	"heart attack",
	"a heart attack is a myocardial infarction",
	"the attack went to the heart of the city",
	"infarction of the myocardial wall",
	"nih funding",
	"national institutes of health funding",
	"health of national institutes, funding",
	"symptoms in women",
	"a red thing", "a blue thing", "a green thing", "another thing", "the last thing",
}

// expressionsSynonyms is a file of synonyms as people have it.
const expressionsSynonyms = `# akin: exact
heart attack, myocardial infarction
nih, national institutes of health
# akin: similarity 0.5
thing, colored object
`

// expressionsAkin indexes the texts, makes a matrix of the synonyms, and starts
// an akin with a profile for each way of writing.
func expressionsAkin(t *testing.T, e *engine) *akin {
	t.Helper()
	e.makeIndex(t, expressionsIndex, expressionsDefinition)
	docs := make([]document, len(expressionsTexts))
	for n, text := range expressionsTexts {
		docs[n] = document{strconv.Itoa(n), map[string]any{"body": text}}
	}
	e.index(t, expressionsIndex, docs)
	folder := newDir(t, "synonyms")
	synonyms, matrix := filepath.Join(folder, "synonyms.txt"), filepath.Join(folder, "synonyms.akin")
	if err := os.WriteFile(synonyms, []byte(expressionsSynonyms), 0o600); err != nil {
		t.Fatal(err)
	}
	mustAkin(t, "matrix", "build", "--from-thesaurus", synonyms, "--cluster", e.url, "--index", expressionsIndex, "--field", "body", "--out", matrix)
	a := startAkin(t, section{
		"cluster":   section{"urls": []string{e.url}},
		"expansion": section{"budget": widePatience},
		"profiles": section{
			"linear": section{"scoring": "linear"}, "grouped": section{"scoring": "grouped"},
			"saturated": section{"scoring": "saturated", "phase": "query"}, "rescored": section{"scoring": "saturated"},
			"plain": section{"expressions": false},
		},
		"matrices": []section{{"name": "m", "file": matrix}},
	})
	a.awaitMatrix(t, "m")
	return a
}

// A document with an exact synonym of several words scores as one with the words
// of the text, in every form, and one with both is not twice as good.
func TestExactExpressionsScoreAsTheWordsThatTheyStandFor(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := expressionsAkin(t, e)
		for _, profile := range []string{"linear", "grouped", "saturated", "rescored"} {
			score := func(body string) map[string]float64 {
				t.Helper()
				hits, err := a.search(t.Context(), "/"+expressionsIndex+"/_search?akin_profile="+profile, body)
				if err != nil {
					t.Fatal(err)
				}
				scores := map[string]float64{}
				for _, h := range hits.Hits.Hits {
					scores[h.ID] = h.Score
				}
				return scores
			}
			same := func(what string, a, b float64) {
				t.Helper()
				if a == 0 || math.Abs(a-b) > 1e-4*a {
					t.Errorf("%s, %s: scores %v and %v", profile, what, a, b)
				}
			}
			s := score(`{"query":{"match":{"body":"heart attack"}}}`)
			if s["1"] == 0 || s["5"] != 0 {
				t.Errorf("%s: the phrase alone is found: %v", profile, s)
			}
			if s["3"] > 1.3*s["2"] {
				t.Errorf("%s: a document with both forms: %v", profile, s)
			}
			if profile != "linear" { // whose best of two scores no sum
				s = score(`{"query":{"match":{"body":"heart attack symptoms"}}}`)
				same("of a part of the text", s["0"], s["1"])
				s = score(`{"query":{"match":{"body":{"query":"heart attack symptoms","operator":"and"}}}}`)
				same("with all words", s["0"], s["1"])
				if len(s) != 2 {
					t.Errorf("%s: with all words %v", profile, s)
				}
				s = score(`{"query":{"match":{"body":{"query":"heart attack women","minimum_should_match":2}}}}`)
				if !slices.Equal(slices.Sorted(maps.Keys(s)), []string{"0", "1", "2", "3", "4"}) {
					t.Errorf("%s: two of three words %v", profile, s)
				}
				s = score(`{"query":{"match":{"body":"nih funding"}}}`)
				if s["7"] == 0 || s["7"] <= s["8"] {
					t.Errorf("%s: an acronym: %v", profile, s)
				}
				s = score(`{"query":{"match":{"body":"national institutes of health"}}}`)
				if s["6"] == 0 {
					t.Errorf("%s: an expression for an acronym: %v", profile, s)
				}
			}
		}
		for field, form := range map[string]string{"body": `"match_phrase"`, "body.pairs": `"span_near"`, "body.bare": ""} {
			explained := a.explain(t, expressionsIndex, fmt.Sprintf(`{"query":{"match":{%q:"heart attack"}}}`, field))
			if got := string(explained.Body); !strings.Contains(got, form) || form == "" && (strings.Contains(got, "span_near") || strings.Contains(got, "match_phrase")) {
				t.Errorf("%s: %s", field, got)
			}
			if status, answer, err := a.call(t.Context(), "POST", "/"+expressionsIndex+"/_search", fmt.Sprintf(`{"query":{"match":{%q:"heart attack"}}}`, field)); err != nil || status != 200 {
				t.Errorf("%s: %d %s %v", field, status, answer, err)
			}
		}
	})
}
