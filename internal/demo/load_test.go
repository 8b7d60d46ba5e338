package demo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// loadHelp loads the help center as terms into an index of that name.
func loadHelp(tb testing.TB, e *Engine, name string, f Field) {
	tb.Helper()
	check.OK(tb, e.Load(name, map[string]Field{"body": f}, func(yield func(Loaded) bool) {
		for _, d := range Docs("help") {
			freqs := map[string]int{}
			tokens, _ := analyzers()["english"](d.Body)
			for _, t := range tokens {
				freqs[t.Term]++
			}
			if !yield(Loaded{d.ID, map[string]map[string]int{"body": freqs}, 1}) {
				return
			}
		}
	}))
}

func englishTerms(text string) ([]Token, error) {
	tokens, _ := analyzers()["english"](text)
	return tokens, nil
}

func TestDocumentsThatComeAsTermsScoreAsTheirTexts(t *testing.T) {
	c := newClient()
	docs := corpus("help")
	c.load(t, "help", map[string]any{"body": text(), "title": text()}, docs...)
	e := NewEngine()
	loadHelp(t, e, "help", Field{englishTerms, 1.2, 0.75, 2.2})
	loadedClient := clientOf(e)
	for _, q := range Queries() {
		body := fmt.Sprintf(`{"size":5,"from":1,"query":{"bool":{"should":[{"match":{"body":%q}},{"term":{"body":{"value":"card","boost":0.5}}}]}},`+
			`"rescore":{"window_size":20,"query":{"rescore_query":{"match":{"body":"order late"}}}}}`, q.Text)
		got, want := loadedClient.ok(t, "POST", "/help/_search", body), c.ok(t, "POST", "/help/_search", body)
		check.Equal(t, ids(want), ids(got), q.Text)
		for id, score := range scores(got) {
			check.That(t, near(scores(want)[id], score), "%s: %s has %v, want %v", q.Text, id, score, scores(want)[id])
		}
	}
	for path, body := range map[string]any{
		"/help/_analyze":     map[string]any{"field": "body", "text": "Cards are refused"},
		"/help/_termvectors": map[string]any{"doc": map[string]any{"body": "card"}, "per_field_analyzer": map[string]any{"body": "keyword"}, "term_statistics": true, "positions": false, "offsets": false},
		"/_mtermvectors?positions=false&offsets=false&term_statistics=false&field_statistics=false": map[string]any{
			"docs": []any{map[string]any{"_index": "help", "_id": docs[0].id, "fields": []string{"body"}}},
		},
	} {
		want, got := c.ok(t, "POST", path, body), loadedClient.ok(t, "POST", path, body)
		for _, member := range []string{"term_vectors", "docs"} {
			check.Equal(t, at(want, member), at(got, member), path)
		}
	}
}

// With k1 = 0 a term scores scale·idf wherever it is, with b = 0 lengths count
// for nothing.
func TestLoadedFieldsHaveTheirOwnParameters(t *testing.T) {
	e := NewEngine()
	loadHelp(t, e, "flat", Field{englishTerms, 0, 0.75, 1})
	found := scores(clientOf(e).ok(t, "POST", "/flat/_search", `{"query":{"term":{"body":"card"}}}`))
	of := slices.Collect(maps.Values(found))
	check.That(t, len(of) >= 2 && slices.Min(of) == slices.Max(of), "k1 = 0: %v", found)
}

// A document that stands for three counts as three of the same, and is found
// once.
func TestASampleHasTheNumbersOfTheWhole(t *testing.T) {
	index := func(docs ...Loaded) *client {
		e := NewEngine()
		check.OK(t, e.Load("docs", map[string]Field{"body": {englishTerms, 1.2, 0.75, 2.2}}, slices.Values(docs)))
		return clientOf(e)
	}
	doc := func(id string, stands int, terms map[string]int) Loaded {
		return Loaded{id, map[string]map[string]int{"body": terms}, stands}
	}
	car, bus := map[string]int{"car": 2, "park": 1}, map[string]int{"bus": 1}
	whole := index(doc("a", 1, car), doc("b", 1, bus), doc("c", 1, bus), doc("d", 1, bus), doc("e", 1, map[string]int{"car": 1}))
	part := index(doc("a", 1, car), doc("b", 3, bus), doc("e", 1, map[string]int{"car": 1}))
	for _, query := range []string{`{"query":{"term":{"body":"car"}}}`, `{"query":{"term":{"body":"bus"}}}`} {
		want, got := whole.ok(t, "POST", "/docs/_search", query), part.ok(t, "POST", "/docs/_search", query)
		for id, score := range scores(got) {
			check.Equal(t, scores(want)[id], score, query)
		}
		check.Equal(t, at(want, "hits", "total"), at(got, "hits", "total"), query)
	}
	vectors := map[string]any{"doc": map[string]any{"body": "bus"}, "per_field_analyzer": map[string]any{"body": "keyword"}, "term_statistics": true, "positions": false, "offsets": false}
	check.Equal(t, at(whole.ok(t, "POST", "/docs/_termvectors", vectors), "term_vectors"), at(part.ok(t, "POST", "/docs/_termvectors", vectors), "term_vectors"))
}

func TestSearchReportsWhatItCannotRun(t *testing.T) {
	e := NewEngine()
	fields := map[string]Field{"body": {Analyze: func(string) ([]Token, error) { return nil, errors.New("the cluster is away") }}}
	for body, want := range map[string]string{
		`{"query":{"match":{"body":"card"}}}`:  "the cluster is away",
		`{"query":{"wild":{"body":"card"}}}`:   "unknown query [wild]",
		`{"query":{"term":{"tag":"card"}}}`:    "field [tag]",
		`{"query":{"match":{"title":"card"}}}`: "field [title]",
		`{`:                                    "json_parse_exception",
	} {
		check.Message(t, want, e.Check(fields, []byte(body)), body)
	}
	err := e.Check(fields, []byte(`{"query":{"term":{"body":"card"}}}`))
	check.OK(t, err)
	loadHelp(t, e, "help", fields["body"])
	err = e.Load("help", nil, func(func(Loaded) bool) {})
	check.That(t, err != nil, "an index of that name was there before")
}

// Who asks for the state of a document has to be told it, as the mode soft and
// feedback do.
func TestHitsSayTheirStateWhereItIsWanted(t *testing.T) {
	c := newClient()
	c.load(t, "toy", map[string]any{"body": text()}, loaded{"a", map[string]any{"body": "car"}}, loaded{"b", map[string]any{"body": "car park"}})
	asked := c.ok(t, "POST", "/toy/_search", `{"query":{"match":{"body":"park"}},"version":true,"seq_no_primary_term":true}`)
	check.That(t, best(asked, "_seq_no") == 1. && best(asked, "_primary_term") == 1. && best(asked, "_version") == 1., "%v", asked)
	asked = c.ok(t, "POST", "/toy/_search", `{"query":{"match":{"body":"park"}}}`)
	check.That(t, best(asked, "_seq_no") == nil && best(asked, "_version") == nil, "not asked for: %v", asked)
}
