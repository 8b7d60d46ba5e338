package e2e

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const expressionsIndex = "akin-e2e-expressions"

// expressionsAnalysis has analyzers that make two terms at one position. The
// Elasticsearch 8 and 9 of the tests lack their filters, see [engine].scripts.
const expressionsAnalysis = `"analysis":{
	"filter":{"pairs":{"type":"shingle"},"ticker":{"type":"synonym","synonyms":["heart, ticker"]}},
	"analyzer":{
		"shingled":{"tokenizer":"standard","filter":["lowercase","stop","porter_stem","pairs"]},
		"doubled":{"tokenizer":"standard","filter":["lowercase","ticker","stop","porter_stem"]}}}`

// expressionsDefinition has the same text in fields that find phrases
// differently, %s is the analysis.
const expressionsDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0,%s},
	"mappings":{"properties":{"title":{"type":"text","analyzer":"english"},"parts":{"type":"nested","properties":{"text":{"type":"text","analyzer":"english"}}},
	"body":{"type":"text","analyzer":"english","fields":{
		"pairs":{"type":"text","analyzer":"english","index_phrases":true},
		"bare":{"type":"text","analyzer":"english","index_options":"freqs"},
		"shingled":{"type":"text","analyzer":"shingled"},
		"doubled":{"type":"text","analyzer":"english","search_analyzer":"doubled"}}}}}}`

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
	"a red thing", "a blue thing", "a green thing", "another thing", "the last thing", "in two fields",
	"point of care testing", "bedside testing", "point care testing", "heart failure", "personal computer",
	"the daily routine", "the daily day to day",
}

// expressionsSynonyms is a file of synonyms as people have it.
const expressionsSynonyms = `# akin: exact
heart attack, myocardial infarction
nih, national institutes of health
# akin: similarity 0.5
thing, colored object
# akin: exact
point of care, bedside
heart attack, heart failure
personal computer, computer
routine, day to day
attack, onslaught
`

// expressionsAkin indexes the texts, makes a matrix of the synonyms, and starts
// an akin with a profile for each way of writing.
func expressionsAkin(t *testing.T, e *engine) *akin {
	t.Helper()
	analysis := expressionsAnalysis
	if !e.scripts {
		analysis = `"analysis":{"analyzer":{"shingled":{"type":"english"},"doubled":{"type":"english"}}}`
	}
	e.makeIndex(t, expressionsIndex, fmt.Sprintf(expressionsDefinition, analysis))
	e.index(t, expressionsIndex, expressionsDocuments())
	synonyms := writeFile(t, "synonyms.txt", expressionsSynonyms)
	return setupWide(t, e, section{
		"profiles": section{
			"linear": section{"scoring": "linear"}, "grouped": section{"scoring": "grouped"},
			"saturated": section{"scoring": "saturated", "phase": "query"}, "rescored": section{"scoring": "saturated"},
			"plain": section{"expressions": false}, "filters": section{"filters": true}, "soft": section{"filters": true, "mode": "soft"},
		},
		"matrices": []section{{
			"name": "m", "file": build(t, append([]string{"--from-thesaurus", synonyms}, e.of(expressionsIndex, "body")...)...),
			"fields": []string{"title", "body", "body.pairs", "body.bare", "body.shingled", "body.doubled", "parts.text"},
		}},
	})
}

func expressionsDocuments() (docs []document) {
	for n, text := range expressionsTexts {
		docs = append(docs, document{strconv.Itoa(n), section{"body": text}})
	}
	for n := 10; n < 15; n++ { // engines blend frequencies only as far as the smallest field has words
		docs[n].fields["title"] = "several other notes"
	}
	docs[15].fields["title"], docs[15].fields["body"] = "heart", "attack"
	for _, n := range []int{0, 1} {
		docs[n].fields["parts"] = []section{{"text": expressionsTexts[n]}}
	}
	return docs
}

// A document with an exact synonym of several words scores as one with the words
// of the text, in every form, and one with both is not twice as good.
func TestExactExpressionsScoreAsTheWordsThatTheyStandFor(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := expressionsAkin(t, e)
		for _, profile := range []string{"linear", "grouped", "saturated", "rescored"} {
			score := func(body string) map[string]float64 {
				t.Helper()
				return a.find(t, expressionsIndex+"?akin_profile="+profile, body).scores()
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
			s = score(`{"query":{"match":{"body":"heart attack symptoms"}}}`)
			same("of a part of the text", s["0"], s["1"])
			s = score(`{"query":{"match":{"body":{"query":"heart attack symptoms","operator":"and"}}}}`)
			same("with all words", s["0"], s["1"])
			if len(s) != 2 {
				t.Errorf("%s: with all words %v", profile, s)
			}
			s = score(`{"query":{"match":{"body":{"query":"heart attack women","minimum_should_match":2}}}}`)
			if !slices.Equal(slices.Sorted(maps.Keys(s)), []string{"0", "1", "19", "2", "3", "4"}) {
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
		for query, source := range map[string]string{"heart attack": "synonyms.txt:2", "nih": "synonyms.txt:3"} {
			explained := string(a.admin.must(t, "POST", "/_akin/expand/"+expressionsIndex, fmt.Sprintf(`{"query":{"match":{"body":%q}}}`, query)))
			if !strings.Contains(explained, `"source":"`+source+`"`) {
				t.Errorf("%s: no source %s in %s", query, source, explained)
			}
		}
		for field, form := range map[string]string{"body": `"match_phrase"`, "body.pairs": `"span_near"`, "body.bare": ""} {
			explained := a.explain(t, expressionsIndex, fmt.Sprintf(`{"query":{"match":{%q:"heart attack"}}}`, field))
			if got := string(explained.Body); !strings.Contains(got, form) || form == "" && (strings.Contains(got, "span_near") || strings.Contains(got, "match_phrase")) {
				t.Errorf("%s: %s", field, got)
			}
			if a.find(t, expressionsIndex, fmt.Sprintf(`{"query":{"match":{%q:"heart attack"}}}`, field)).scores()["0"] == 0 {
				t.Errorf("%s: heart attacks are not found", field)
			}
		}
		checkNoFallback(t, a)
	})
}

// Queries of each kind find a document by an exact expression as they find it by
// the words of the text, with the same score.
func TestEachKindOfQueryTakesAnExactExpressionForTheWords(t *testing.T) {
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	a := expressionsAkin(t, e)
	for _, query := range []string{
		`{"match":{"body":"heart attack symptoms"}}`,
		`{"match":{"body":{"query":"heart attack symptoms","operator":"and"}}}`,
		`{"match":{"body":{"query":"heart attack symptoms","minimum_should_match":"-1","boost":2}}}`,
		`{"match":{"body.pairs":"heart attack symptoms"}}`,
		`{"multi_match":{"query":"heart attack symptoms","fields":["title","body^3"]}}`,
		`{"multi_match":{"query":"heart attack symptoms","type":"most_fields","fields":["title","body"]}}`,
		`{"multi_match":{"query":"heart attack symptoms","type":"cross_fields","fields":["title","body"]}}`,
		`{"multi_match":{"query":"heart attack symptoms","type":"cross_fields","operator":"and","fields":["title^2","body"]}}`,
		`{"query_string":{"query":"heart attack symptoms","fields":["body"]}}`,
		`{"query_string":{"query":"heart attack symptoms","default_operator":"and","fields":["body"]}}`,
		`{"query_string":{"query":"(heart AND attack AND symptoms)","fields":["body"]}}`,
		`{"simple_query_string":{"query":"heart attack symptoms","fields":["body"]}}`,
		`{"simple_query_string":{"query":"heart + attack + symptoms","fields":["body"]}}`,
		`{"simple_query_string":{"query":"heart attack symptoms","default_operator":"and","fields":["body"]}}`,
		`{"match_phrase":{"body":"heart attack symptoms"}}`,
		`{"match_phrase":{"body":{"query":"heart attack women","slop":2}}}`,
		`{"multi_match":{"query":"heart attack symptoms","type":"phrase","fields":["title","body"]}}`,
		`{"bool":{"must":{"match":{"body":"heart attack symptoms"}},"filter":{"match":{"body":"women"}}}}`,
		`{"nested":{"path":"parts","score_mode":"max","query":{"match":{"parts.text":"heart attack symptoms"}}}}`,
	} {
		for _, profile := range []string{"linear", "grouped", "saturated", "rescored"} {
			s := a.find(t, expressionsIndex+"?akin_profile="+profile, `{"query":`+query+`}`).scores()
			if s["0"] == 0 || math.Abs(s["0"]-s["1"]) > 1e-4*s["0"] {
				t.Errorf("%s, %s: %v", profile, query, s)
			}
		}
	}
	for name, tt := range map[string]struct {
		query string
		want  []string // which documents are found
	}{
		"a gap":                          {`{"match_phrase":{"body":"bedside testing"}}`, []string{"16", "17"}},
		"a gap, for a word":              {`{"match":{"body":{"query":"bedside testing","operator":"and"}}}`, []string{"16", "17"}},
		"a word for one with a gap":      {`{"match":{"body":{"query":"point of care testing","operator":"and"}}}`, []string{"16", "17", "18"}},
		"without the gap":                {`{"match_phrase":{"body":"point care testing"}}`, []string{"18"}},
		"a part of what it stands for":   {`{"match":{"body":{"query":"personal computer","operator":"and"}}}`, []string{"20"}},
		"in pairs":                       {`{"match_phrase":{"body.pairs":"heart attack symptoms"}}`, []string{"0", "1"}}, // whose idfs akin does not know
		"a phrase that ends in a prefix": {`{"match_phrase_prefix":{"body":"heart attack symp"}}`, []string{"0", "1"}},
		"in pairs, ending in a prefix":   {`{"match_phrase_prefix":{"body.pairs":"heart attack symp"}}`, []string{"0", "1"}},
		"a typo":                         {`{"match":{"body":{"query":"heart atack symptoms","operator":"and"}}}`, []string{"0", "1"}},
		"no prefix of what is exact":     {`{"match_phrase_prefix":{"body":"symptoms heart"}}`, nil},
		"no other phrase":                {`{"match_phrase":{"body":"attack heart"}}`, nil},
		"the last word is a prefix":      {`{"match_bool_prefix":{"body":"heart attack symp"}}`, []string{"0", "1", "15", "19", "2", "3", "4", "9"}},
	} {
		s := a.find(t, expressionsIndex, `{"query":`+tt.query+`}`).scores()
		if got := slices.Sorted(maps.Keys(s)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, s, tt.want)
		}
	}
	for _, profile := range []string{"filters", "soft", "rescored"} {
		s := a.find(t, expressionsIndex+"?akin_profile="+profile, `{"query":{"bool":{"must":{"match":{"body":"symptoms"}},"filter":{"match":{"body":{"query":"heart attack","operator":"and"}}}}}}`).scores()
		if want := profile != "rescored"; s["0"] == 0 || s["1"] > 0 != want || len(s) > 2 {
			t.Errorf("%s: a filter passes %v", profile, s)
		}
	}
	s := a.find(t, expressionsIndex+"?akin_profile=saturated", `{"query":{"match":{"body":"heart attack"}}}`).scores()
	if s["19"] > 1.0001*s["2"] { // heart failure has a word of the text
		t.Errorf("a word counts twice: %v", s)
	}
	s = a.find(t, expressionsIndex+"?akin_profile=linear", `{"query":{"match":{"body":"routine"}}}`).scores()
	if routine := s["21"]; routine == 0 || s["22"] < 0.8*routine || s["22"] > routine { // which is one word longer
		t.Errorf("a word twice in an expression: %v", s)
	}
	if n := a.total(t, expressionsIndex, `{"match_phrase":{"body":"heart attack symptoms"}}`); n != 2 {
		t.Errorf("%d documents are counted", n)
	}
	checkNoFallback(t, a)
}

// Fields in which expressions cannot be found are searched as without, and
// explanations say why. Terms at one position are variants of a word.
func TestFieldsThatFindNoExpressionsAreSearchedByWords(t *testing.T) {
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	a := expressionsAkin(t, e)
	for name, tt := range map[string]struct{ query, reason string }{
		"without positions":             {`{"match":{"body.bare":"heart attack"}}`, "no_positions"},
		"without positions, of several": {`{"multi_match":{"query":"heart attack","fields":["body.bare","body"]}}`, "no_positions"},
	} {
		body := `{"query":` + tt.query + `}`
		direct, through := e.find(t, expressionsIndex, body).scores(), a.find(t, expressionsIndex, body).scores()
		if several := strings.Contains(name, "several"); !several && !maps.Equal(direct, through) || several && through["1"] == 0 {
			t.Errorf("%s: %v, without akin %v", name, through, direct)
		}
		explained := string(a.admin.must(t, "POST", "/_akin/expand/"+expressionsIndex, body))
		if !strings.Contains(explained, `"reason":"`+tt.reason+`"`) {
			t.Errorf("%s: no reason %q in %s", name, tt.reason, explained)
		}
	}
	for _, field := range []string{"body.shingled", "body.doubled"} {
		if s := a.find(t, expressionsIndex, `{"query":{"match":{"`+field+`":{"query":"heart attack","operator":"and"}}}}`).scores(); s["1"] == 0 || s["5"] > 0 {
			t.Errorf("%s: %v", field, s)
		}
	}
	checkNoFallback(t, a)
}

// What search engines' synonym_graph does with expressions, and people complain
// of, is compared with akin on the same documents and synonyms. The numbers are
// those of issues of Elasticsearch.
func TestExpressionsDoNotHarmTheSearcherAsSynonymFiltersDo(t *testing.T) {
	e := theEngine(t, qualityEngine)
	if e == nil {
		return
	}
	a := expressionsAkin(t, e)
	const graph = "akin-e2e-synonym-graph"
	analyzer := `{"tokenizer":"standard","filter":["lowercase","stop","porter_stem"]}`
	e.makeIndex(t, graph, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"analysis":{
		"filter":{"synonyms":{"type":"synonym_graph","synonyms":["heart attack, myocardial infarction","nih, national institutes of health"]}},
		"analyzer":{"plain":`+analyzer+`,"graph":`+strings.Replace(analyzer, `"lowercase"`, `"lowercase","synonyms"`, 1)+`}}},
		"mappings":{"properties":{"title":{"type":"text","analyzer":"plain","search_analyzer":"graph"},"body":{"type":"text","analyzer":"plain","search_analyzer":"graph"}}}}`)
	e.index(t, graph, expressionsDocuments())
	for name, tt := range map[string]struct {
		body string
		// wrong is what the engine does, and right what akin does.
		wrong, right func(scores map[string]float64) bool
	}{
		"the searcher's words become a phrase (#10394)": {
			`{"query":{"match":{"body":"heart attack"}}}`,
			func(s map[string]float64) bool { return s["4"] == 0 }, func(s map[string]float64) bool { return s["4"] > 0 },
		},
		"a group counts as one word (#3982)": {
			`{"query":{"match":{"body":{"query":"heart attack symptoms","minimum_should_match":2}}}}`,
			func(s map[string]float64) bool { return s["2"] == 0 }, func(s map[string]float64) bool { return s["2"] > 0 && s["9"] == 0 },
		},
		"words in two fields are lost (#26497)": {
			`{"query":{"multi_match":{"query":"heart attack","type":"cross_fields","operator":"and","fields":["title","body"]}}}`,
			func(s map[string]float64) bool { return s["15"] == 0 }, func(s map[string]float64) bool { return s["15"] > 0 },
		},
		"the rarer synonym wins (#45841)": {
			`{"query":{"match":{"body":"nih funding"}}}`,
			func(s map[string]float64) bool { return s["7"] > 1.2*s["6"] }, func(s map[string]float64) bool { return s["7"] > 0 && s["7"] <= 1.0001*s["6"] },
		},
		"both forms count twice (#28045)": {
			`{"query":{"match":{"body":"heart attack"}}}`,
			func(s map[string]float64) bool { return s["3"] > 1.3*s["2"] }, func(s map[string]float64) bool { return s["3"] > 0 && s["3"] < 1.2*s["2"] },
		},
		"forms are mixed (#15858)": {
			`{"query":{"match_phrase":{"body":"myocardial attack"}}}`,
			func(s map[string]float64) bool { return len(s) == 0 }, // graphs have mended what plain synonym filters do
			func(s map[string]float64) bool { return len(s) == 0 },
		},
	} {
		if s := e.find(t, graph, tt.body).scores(); !tt.wrong(s) {
			t.Errorf("%s: synonym_graph does otherwise: %v", name, s)
		}
		if s := a.find(t, expressionsIndex, tt.body).scores(); !tt.right(s) {
			t.Errorf("%s: akin: %v", name, s)
		}
	}
	checkNoFallback(t, a)
}
