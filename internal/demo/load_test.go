package demo

import (
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loadHelp loads the help center as terms into an index of that name.
func loadHelp(tb testing.TB, e *Engine, name string, f Field) {
	tb.Helper()
	if err := e.Load(name, map[string]Field{"body": f}, func(yield func(string, map[string]map[string]int) bool) {
		for _, d := range Docs("help") {
			freqs := map[string]int{}
			tokens, _ := analyzers()["english"](d.Body)
			for _, t := range tokens {
				freqs[t.Term]++
			}
			if !yield(d.ID, map[string]map[string]int{"body": freqs}) {
				return
			}
		}
	}); err != nil {
		tb.Fatal(err)
	}
}

func englishTerms(text string) ([]Token, error) {
	tokens, _ := analyzers()["english"](text)
	return tokens, nil
}

// clientOf returns a client of an engine.
func clientOf(tb testing.TB, e *Engine) *client {
	tb.Helper()
	server := httptest.NewServer(e)
	tb.Cleanup(server.Close)
	return &client{server.URL, server.Client()}
}

func TestDocumentsThatComeAsTermsScoreAsTheirTexts(t *testing.T) {
	c := newClient(t)
	var docs []loaded
	for _, d := range Docs("help") {
		docs = append(docs, loaded{d.ID, map[string]any{"body": d.Body}})
	}
	c.load(t, "help", map[string]any{"body": text()}, docs...)
	e := NewEngine()
	loadHelp(t, e, "help", Field{englishTerms, 1.2, 0.75, 2.2})
	loadedClient := clientOf(t, e)
	for _, q := range Queries() {
		body := fmt.Sprintf(`{"size":5,"from":1,"query":{"bool":{"should":[{"match":{"body":%q}},{"term":{"body":{"value":"card","boost":0.5}}}]}},`+
			`"rescore":{"window_size":20,"query":{"rescore_query":{"match":{"body":"order late"}}}}}`, q.Text)
		got, want := loadedClient.ok(t, "POST", "/help/_search", body), c.ok(t, "POST", "/help/_search", body)
		if diff := cmp.Diff(ids(want), ids(got)); diff != "" {
			t.Errorf("%s: %s", q.Text, diff)
		}
		for id, score := range scores(got) {
			if !near(scores(want)[id], score) {
				t.Errorf("%s: %s has %v, want %v", q.Text, id, score, scores(want)[id])
			}
		}
	}
	for _, path := range []string{"/help/_analyze", "/help/_termvectors", "/_mtermvectors?positions=false&offsets=false&term_statistics=false&field_statistics=false"} {
		body := map[string]any{
			"/help/_analyze":     map[string]any{"field": "body", "text": "Cards are refused"},
			"/help/_termvectors": map[string]any{"doc": map[string]any{"body": "card"}, "per_field_analyzer": map[string]any{"body": "keyword"}, "term_statistics": true, "positions": false, "offsets": false},
		}[path]
		if body == nil {
			body = map[string]any{"docs": []any{map[string]any{"_index": "help", "_id": docs[0].id, "fields": []string{"body"}}}}
		}
		if want, got := c.ok(t, "POST", path, body), loadedClient.ok(t, "POST", path, body); path != "/help/_analyze" && !cmp.Equal(at(want, "term_vectors"), at(got, "term_vectors")) || !cmp.Equal(at(want, "docs"), at(got, "docs")) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// With k1 = 0 a term scores scale·idf wherever it is, with b = 0 lengths count
// for nothing.
func TestLoadedFieldsHaveTheirOwnParameters(t *testing.T) {
	e := NewEngine()
	loadHelp(t, e, "flat", Field{englishTerms, 0, 0.75, 1})
	found := scores(clientOf(t, e).ok(t, "POST", "/flat/_search", `{"query":{"term":{"body":"card"}}}`))
	if of := slices.Collect(maps.Values(found)); len(of) < 2 || slices.Min(of) != slices.Max(of) {
		t.Errorf("k1 = 0: %v", found)
	}
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
		if err := e.Check(fields, []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	if err := e.Check(fields, []byte(`{"query":{"term":{"body":"card"}}}`)); err != nil {
		t.Error(err)
	}
	loadHelp(t, e, "help", fields["body"])
	if err := e.Load("help", nil, func(func(string, map[string]map[string]int) bool) {}); err == nil {
		t.Error("an index of that name was there before")
	}
}

// Who asks for the state of a document has to be told it, as the mode soft and
// feedback do.
func TestHitsSayTheirStateWhereItIsWanted(t *testing.T) {
	c := newClient(t)
	c.load(t, "toy", map[string]any{"body": text()}, loaded{"a", map[string]any{"body": "car"}}, loaded{"b", map[string]any{"body": "car park"}})
	asked := c.ok(t, "POST", "/toy/_search", `{"query":{"match":{"body":"park"}},"version":true,"seq_no_primary_term":true}`)
	hit := asked.(map[string]any)["hits"].(map[string]any)["hits"].([]any)[0]
	if at(hit, "_seq_no") != 1. || at(hit, "_primary_term") != 1. || at(hit, "_version") != 1. {
		t.Errorf("%v", hit)
	}
	hit = c.ok(t, "POST", "/toy/_search", `{"query":{"match":{"body":"park"}}}`).(map[string]any)["hits"].(map[string]any)["hits"].([]any)[0]
	if at(hit, "_seq_no") != nil || at(hit, "_version") != nil {
		t.Errorf("not asked for: %v", hit)
	}
}
