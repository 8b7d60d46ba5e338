package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/expand/dsl"
)

// The texts with operators, for both kinds of query strings.
var (
	queryStringTexts = []string{
		"(car)", "(car) AND (red)", "(car red) big", "car AND red", "car AND red OR big", "car OR red AND big", "car OR red big", "car red AND big",
		"car red big AND boat", "car && red || big", "+car red", "+car +red -big", "car -red", "car NOT red", "car !red", "car AND NOT red", "NOT red car",
		"red OR (-car)", "car AND (red OR big)", "(car OR auto) AND (red OR crimson) NOT boat", "((car red) OR (auto crimson)) AND big",
		"title:car", "title:(car auto) red", "title:(car OR auto) AND body:(red OR crimson)", "car^3 red", "(car red)^2 boat", "title:car^2 body:red^0.5",
		`"car red" big`, `car AND "red big"`, `"auto crimson"~2 car`, "car re*", "car r?d big", "c?r AND red", "car rde~1 big", "car AND n:[3 TO 8]", "car n:{3 TO 8]",
		`n:>4 AND car`, "car AND _exists_:title", "car OR *:*", "http:car red", `c\ar re\-d`, `car \- red`, "car - red", "car /re./ big", "car * red", ">car red", "car\u3000AND\u3000red",
		"body.stem:(cars AND big)", "big the AND car", "the OR car", "red AND the OR big", "car OR the AND red", "car NOT the AND red", "red OR (-the)", "red OR (-car -the)",
		"title:(car n:>4)", "car n:(>4)", "title:(>=car red)",
	}
	simpleTexts = []string{
		"(car)", "(car) + (red)", "car + red", "car +red", "car | red", "car red | big", "car | red big", "car + red | big", "car | red + big", "+car +red", "car -red",
		"car + -red", "car | -red", "-red car", "car --red", "car - red", "car + (red | big)", "(car | auto) + (red | crimson)", "((car red) | (auto crimson)) + big",
		`"car red" big`, `car + "red big"`, `"auto crimson"~2 car`, "car re*", "car + re*", "car rde~1 big", "car rde~ + big", "car * red", `c\ar red`, `car \+ red`, "car+red",
		"car ++ red", "| car red |", "a-b car + red", "car AND red", "title:car + red", `car -"red big"`, "car -(red big)", "big + the car", "big + the | car", "car | the + red", "red | -the", "(big + the) car", "the + big | car",
		`"red boat"~ car`, `-"red boat"~ car`, `("red boat"~) | car`, `car | "red boat"~`,
	}
)

// The words and operators of random texts.
var (
	queryStringWords = []string{
		"car", "red", "big", "boat", "auto crimson", "c\\ar", "title:car", "title:(car red)", "body:(red OR -big)^2", "car^3", `"car red"`, `"auto crimson"~2`, "re*", "rde~1", "n:[3 TO 8]", "/re./",
	}
	queryStringOperators = []string{" ", " ", " AND ", " OR ", " && ", " || ", " NOT ", " AND NOT ", " OR NOT ", " +", " -", " !"}
	simpleWords          = []string{"car", "red", "big", "boat", "auto crimson", "c\\ar", "a-b", `"car red"`, `"auto crimson"~2`, `"red boat"~`, "re*", "rde~1", "-red", "-(car red)"}
	simpleOperators      = []string{" ", " ", " + ", " | ", "+", "|", " +", " -", " + -", " | -"}
)

// randomText returns a text with groups up to a depth.
func randomText(random *rand.Rand, words, operators []string, depth int) string {
	var text strings.Builder
	for k := range 1 + random.IntN(4) {
		if k > 0 {
			text.WriteString(operators[random.IntN(len(operators))])
		}
		if depth > 0 && random.IntN(4) == 0 {
			text.WriteString("(" + randomText(random, words, operators, depth-1) + ")")
		} else {
			text.WriteString(words[random.IntN(len(words))])
		}
	}
	return text.String()
}

// taken returns the query of the parts beside a query string, or "".
func taken(t *testing.T, query string) string {
	t.Helper()
	s, why := (&dsl.Parser{Apart: true}).Parse([]byte(`{"query":`+query+`}`), new(dsl.Parameters))
	if why != "" {
		t.Fatal(query, why)
	}
	_, parts, _ := strings.Cut(string(s.Query.Of(s.Body)), `{"dis_max":{"queries":[`+query+`,`)
	return strings.TrimSuffix(parts, `]}}`)
}

// TestPartsOfQueryStringsFindAndScoreLikeTheWhole sends query strings and what
// akin makes of their parts, without any added word: both find the same
// documents with the same scores. Where a part has no terms, the parts may find
// less, never more.
func TestPartsOfQueryStringsFindAndScoreLikeTheWhole(t *testing.T) {
	var wholes, parts []string
	all := 0
	for _, options := range []string{
		`"fields":["body"]`, `"fields":["title^2","body"]`, `"fields":["body.stem"],"boost":3`, `"fields":["body","n"],"lenient":true`,
	} {
		for _, operator := range []string{"or", "and"} {
			for kind, texts := range map[string][]string{"query_string": queryStringTexts, "simple_query_string": simpleTexts} {
				words, operators := queryStringWords, queryStringOperators
				if kind == "simple_query_string" {
					words, operators = simpleWords, simpleOperators
				}
				texts, random := slices.Clone(texts), rand.New(rand.NewPCG(1, 2))
				for range 200 {
					texts = append(texts, randomText(random, words, operators, 2))
				}
				for _, text := range texts {
					all++
					query := fmt.Sprintf(`{"%s":{"query":%q,%s,"default_operator":"%s"}}`, kind, text, options, operator)
					if apart := taken(t, query); apart != "" {
						wholes, parts = append(wholes, query), append(parts, apart)
					}
				}
			}
		}
	}
	if len(wholes) < all/2 {
		t.Errorf("only %d of %d texts are taken apart", len(wholes), all)
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		e.makeIndex(t, semanticsIndex, semanticsDefinition(e))
		e.index(t, semanticsIndex, semanticsDocuments())
		wants, gots := e.scoresOf(t, wholes), e.scoresOf(t, parts)
		for i, query := range wholes {
			want, got := wants[i], gots[i]
			if strings.Contains(query, "the") || strings.Contains(query, " - ") {
				maps.DeleteFunc(got, func(id string, _ float64) bool { _, found := want[id]; return found })
				want = nil
			}
			if !maps.EqualFunc(want, got, func(a, b float64) bool { return a <= b*(1+scoreTolerance) && b <= a*(1+scoreTolerance) }) {
				t.Errorf("%s\nfinds %v,\n%s\nfinds %v\n%s\n%s", query, want, parts[i], got, e.validated(t, query), e.validated(t, parts[i]))
			}
		}
	})
}

// scoresOf returns the scores of the hits of each query by their ids.
func (e *engine) scoresOf(t *testing.T, queries []string) (scores []map[string]float64) {
	t.Helper()
	var lines strings.Builder
	for _, query := range queries {
		lines.WriteString(`{}` + "\n" + `{"size":200,"query":` + query + "}\n")
	}
	var all struct{ Responses []found }
	if err := json.Unmarshal(e.must(t, http.MethodPost, "/"+semanticsIndex+"/_msearch", lines.String()), &all); err != nil {
		t.Fatal(err)
	}
	for i, f := range all.Responses {
		if f.Shards.Total == 0 || f.Shards.Failed > 0 {
			t.Errorf("%s: the engine fails", queries[i])
		}
		scores = append(scores, f.scores())
	}
	return scores
}

// validated returns how the engine understands a query.
func (e *engine) validated(t *testing.T, query string) string {
	t.Helper()
	return string(e.must(t, http.MethodGet, "/"+semanticsIndex+"/_validate/query?explain=true&filter_path=explanations.explanation", `{"query":`+query+`}`))
}

// operatorMeanings are query strings with operators.
var operatorMeanings = []meaning{
	{name: "and", query: `{"query_string":{"fields":["body"],"query":"car AND red"}}`, more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson"}},
	{name: "not", query: `{"query_string":{"fields":["body"],"query":"car -red"}}`, more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship"}},
	{name: "not a related word", query: `{"query_string":{"fields":["body"],"query":"car NOT crimson"}}`, more: []string{"auto", "auto-red-big"}},
	{
		name: "groups", query: `{"query_string":{"fields":["body"],"query":"(car OR boat) AND NOT red"}}`,
		more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship", "ship", "huge-ship-swift"},
	},
	{name: "fields", query: `{"query_string":{"query":"title:car AND body:red"}}`, more: []string{"title:auto body:crimson"}},
	{
		name: "several fields", query: `{"query_string":{"fields":["title","body^2"],"query":"car AND red"}}`,
		more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson", "title:auto body:crimson"},
	},
	{name: "a phrase", query: `{"query_string":{"fields":["body"],"query":"car AND \"red big\""}}`, more: []string{"auto-red-big"}},
	{name: "a range", query: `{"query_string":{"fields":["body"],"query":"car AND n:[2 TO 3]"}}`, more: []string{"auto-red-big", "auto-crimson-huge"}},
	{name: "a prefix", query: `{"query_string":{"fields":["body"],"query":"car AND re*"}}`, more: []string{"auto-red-big"}},
	{name: "a word in parentheses", query: `{"query_string":{"default_field":"body","query":"(boat)"}}`, more: []string{"auto-crimson-huge-ship", "huge-ship-swift", "ship"}},
	{name: "counted", query: `{"query_string":{"fields":["body"],"query":"+car red","minimum_should_match":1}}`, more: []string{}},
	{name: "only a prefix", query: `{"query_string":{"fields":["body"],"query":"car*"}}`},
	{name: "simple and", query: `{"simple_query_string":{"fields":["body"],"query":"car + red"}}`, more: []string{"auto-red-big", "auto-crimson-huge", "auto-crimson-huge-ship", "auto-crimson"}},
	{name: "simple not", query: `{"simple_query_string":{"fields":["body"],"query":"car + -red"}}`, more: []string{"auto", "auto-crimson", "auto-crimson-huge", "auto-crimson-huge-ship"}},
	{name: "simple or not", query: `{"simple_query_string":{"fields":["body"],"query":"car | -red"}}`, more: []string{"auto-red-big"}},
	{name: "simple unsure", query: `{"simple_query_string":{"fields":["body"],"query":"car + red | boat"}}`, more: []string{}},
}

func TestOperatorsKeepTheirMeaning(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		contenders := serveSemantics(t, e)
		for _, m := range operatorMeanings {
			t.Run(m.name, func(t *testing.T) { checkMeaning(t, e, contenders, m) })
		}
		checkNoFallback(t, akins(contenders)...)
	})
}

// TestOddQueryStringsAreAnsweredAsByTheEngine sends texts that engines refuse,
// or that are large: what the engine accepts finds no less, and what it refuses
// is refused in the same words.
func TestOddQueryStringsAreAnsweredAsByTheEngine(t *testing.T) {
	odd := []string{
		"", " ", "(", ")", "car AND", "AND car", "car OR " + "OR red", `"car`, `car\`, "car^", "car^x", "car~x", "car AND (red", "car) red", "car:", ":car", "/car", "[1 TO", "{car}", "car[",
		"+ - ! && || ( ) { } [ ] ^ \" ~ * ? : \\ / < > =", "+-car", "!!car", "car !", `\u00e9`, "car\x00red", "title:(", "*:*", "(*)", "()", "car ()", `""`, "~", "car~99", "car^1e9",
		strings.Repeat("(", 1000) + "car", strings.Repeat("(", 40) + "car" + strings.Repeat(")", 40), strings.Repeat("car AND ", 100<<10/8) + "red", strings.Repeat("car red ", 100<<10/8),
		strings.Repeat("car:", 100), strings.Repeat("-", 1000) + "car", strings.Repeat(`"`, 999), strings.Repeat("+car -red ", 300), strings.Repeat("*", 100),
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		for _, c := range serveSemantics(t, e) {
			for _, text := range odd {
				for _, kind := range []string{"query_string", "simple_query_string"} {
					quoted, _ := json.Marshal(text)
					r := post("/"+semanticsIndex+"/_search", `{"size":200,"query":{"`+kind+`":{"fields":["body"],"query":`+string(quoted)+`}}}`)
					direct, through := exchange(t, e.url, r), exchange(t, c.url, r)
					if !strings.HasPrefix(direct.status, "200") {
						if want, got := stableAnswer(t, direct), stableAnswer(t, through); want != got {
							t.Errorf("%s, %s %.60q: directly %.300s, through akin %.300s", c.name, kind, text, want, got)
						}
						continue
					}
					var want, got found
					if err := errors.Join(json.Unmarshal([]byte(direct.body), &want), json.Unmarshal([]byte(through.body), &got)); err != nil {
						t.Fatalf("%s, %s %.60q: %v: %s", c.name, kind, text, err, through.body)
					}
					for _, id := range want.ids() {
						if !got.has(id) {
							t.Errorf("%s, %s %.60q: loses %s", c.name, kind, text, id)
						}
					}
				}
			}
		}
	})
}
