package demo

import (
	"errors"
	"fmt"
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
			tokens, _ := analyzers()["english"].analyze(d.Body)
			for _, t := range tokens {
				freqs[t.term]++
			}
			if !yield(d.ID, map[string]map[string]int{"body": freqs}) {
				return
			}
		}
	}); err != nil {
		tb.Fatal(err)
	}
}

func englishTerms(text string) (terms []string, err error) {
	tokens, _ := analyzers()["english"].analyze(text)
	for _, t := range tokens {
		terms = append(terms, t.term)
	}
	return terms, nil
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
	for _, q := range Queries() {
		body := fmt.Sprintf(`{"size":5,"from":1,"query":{"bool":{"should":[{"match":{"body":%q}},{"term":{"body":{"value":"card","boost":0.5}}}]}},`+
			`"rescore":{"window_size":20,"query":{"rescore_query":{"match":{"body":"order late"}}}}}`, q.Text)
		hits, err := e.Search("help", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, h := range hits {
			got = append(got, h.ID)
		}
		answer := c.ok(t, "POST", "/help/_search", body)
		if diff := cmp.Diff(ids(answer), got); diff != "" {
			t.Errorf("%s: %s", q.Text, diff)
		}
		want := scores(answer)
		for _, h := range hits {
			if !near(want[h.ID], float64(h.Score)) {
				t.Errorf("%s: %s has %v, want %v", q.Text, h.ID, h.Score, want[h.ID])
			}
		}
	}
}

// With k1 = 0 a term scores scale·idf wherever it is, with b = 0 lengths count
// for nothing.
func TestLoadedFieldsHaveTheirOwnParameters(t *testing.T) {
	e := NewEngine()
	loadHelp(t, e, "flat", Field{englishTerms, 0, 0.75, 1})
	hits, err := e.Search("flat", []byte(`{"query":{"term":{"body":"card"}}}`))
	if err != nil || len(hits) < 2 || hits[0].Score != hits[len(hits)-1].Score {
		t.Errorf("k1 = 0: %v %v", hits, err)
	}
}

func TestSearchReportsWhatItCannotRun(t *testing.T) {
	e := NewEngine()
	loadHelp(t, e, "help", Field{func(string) ([]string, error) { return nil, errors.New("the cluster is away") }, 1.2, 0.75, 2.2})
	for body, want := range map[string]string{
		`{"query":{"match":{"body":"card"}}}`:  "the cluster is away",
		`{"query":{"wild":{"body":"card"}}}`:   "unknown query [wild]",
		`{"query":{"term":{"tag":"card"}}}`:    "field [tag]",
		`{"query":{"match":{"title":"card"}}}`: "field [title]",
		`{`:                                    "json_parse_exception",
	} {
		if _, err := e.Search("help", []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
	if err := e.Load("help", nil, func(func(string, map[string]map[string]int) bool) {}); err == nil {
		t.Error("an index of that name was there before")
	}
}
