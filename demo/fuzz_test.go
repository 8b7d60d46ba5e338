package demo

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Whatever the body, a search answers with JSON and with status 200 or a
// refusal, and its hits come in descending order of finite scores.
func FuzzSearchBody(f *testing.F) {
	for _, q := range append(queriesOf("car hire park"), saturated(2)) {
		body, err := json.Marshal(map[string]any{"query": q, "explain": true})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, body := range []string{
		``, `{}`, `{"query":null}`, `{"query":{"bool":{"must":null,"should":[null]}}}`, `{"query":{"terms":{"n":[1,"x",null]}}}`,
		`{"highlight":{"fields":{"*":{"number_of_fragments":0}}},"query":{"match":{"body":"car"}}}`, `{"sort":[{"_score":{"order":"desc"}}]}`,
		`{"query":{"range":{"n":{"gte":"1","lt":2}}},"_source":{"includes":["b*"],"excludes":["*.x"]}}`,
		`{"query":{"function_score":{"random_score":{"seed":3,"field":"_seq_no"},"boost_mode":"replace","min_score":0.2}},"slice":{"id":1,"max":3}}`,
		`{"query":{"multi_match":{"query":"car","fields":["*^2"],"minimum_should_match":"2<-25% 9<3"}},"min_score":0.1}`,
	} {
		f.Add([]byte(body))
	}
	e := NewEngine()
	put := httptest.NewRequest(http.MethodPut, "/toy/_doc/1", strings.NewReader(`{"body":"car hire. Cars park!","title":"one","n":[1,2],"tag":"a"}`))
	put.Header.Set("Content-Type", "application/json")
	e.ServeHTTP(httptest.NewRecorder(), put)
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/toy/_search", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		var answer any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("answer %q: %v", w.Body, err)
		}
		if w.Code != 200 {
			if w.Code != 400 && w.Code != 413 {
				t.Fatalf("status %d: %v", w.Code, answer)
			}
			return
		}
		last := math.Inf(1)
		hits, _ := at(answer, "hits", "hits").([]any)
		for _, h := range hits {
			score, scored := at(h, "_score").(float64)
			if scored && (score > last || score < 0) {
				t.Fatalf("score %v after %v", score, last)
			}
			if scored {
				last = score
			}
			if explained, ok := at(h, "_explanation", "value").(float64); scored && ok && explained != score {
				t.Fatalf("score %v is explained as %v", score, explained)
			}
		}
	})
}

// Whatever the lines, a bulk request answers with JSON and one item for each
// action, and the index counts what it holds.
func FuzzBulkBody(f *testing.F) {
	f.Add("{\"index\":{\"_id\":\"1\"}}\n{\"a\":{\"b\":[1,\"x\",{\"c\":null}]}}\n")
	f.Add("{\"create\":{\"_id\":\"1\",\"_index\":\"y\"}}\n{}\n{\"delete\":{\"_id\":\"1\"}}\n")
	f.Add("{\"index\":{}}\n{\"a.b\":1,\"a\":2,\"a.\":3}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		e := NewEngine()
		r := httptest.NewRequest(http.MethodPost, "/toy/_bulk", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-ndjson")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		var answer any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("answer %q: %v", w.Body, err)
		}
		for _, ix := range e.indices {
			again := newIndex("again", time.Time{}, e.analyzers) // what only the living documents count
			for _, doc := range ix.live() {
				again.count(ix.docs[doc].fields, 1)
			}
			for name, field := range ix.fields {
				want := again.fields[name]
				if want == nil {
					want = &fieldStatistics{}
				}
				total := 0
				for term, n := range field.docFreq {
					total += field.totalFreq[term]
					if n != want.docFreq[term] || field.totalFreq[term] != want.totalFreq[term] || n < 0 {
						t.Fatalf("%s:%s is counted in %d documents, want %d", name, term, n, want.docFreq[term])
					}
				}
				if total != field.totalTermFreq || field.docCount != want.docCount || field.sumDocFreq != want.sumDocFreq {
					t.Fatalf("%s: %d occurrences, counted %+v, want %+v", name, total, field, want)
				}
			}
			if living := len(ix.live()); living != len(ix.byID) {
				t.Fatalf("%d living documents, %d ids", living, len(ix.byID))
			}
		}
	})
}

// Tokens lie in the text, in order, and no term is empty but that of the
// keyword analyzer.
func FuzzAnalyze(f *testing.F) {
	for _, text := range oddTexts() {
		f.Add(text)
	}
	known := analyzers()
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("JSON carries no invalid UTF-8")
		}
		for name, a := range known {
			tokens, positions := a.analyze(text)
			start, position := 0, -1
			for _, token := range tokens {
				if token.start < start || token.end < token.start || token.end > len(text) || token.position <= position || token.position >= positions {
					t.Fatalf("%s %q: token %+v after offset %d, position %d", name, text, token, start, position)
				}
				if token.term == "" && name != "keyword" && name != "english" || !utf8.ValidString(token.term) {
					t.Fatalf("%s %q: term %q", name, text, token.term)
				}
				start, position = token.end, token.position
			}
		}
	})
}

func FuzzMinimumShouldMatch(f *testing.F) {
	for _, spec := range []string{"2", "-1", "75%", "-25%", "2<75% 9<-3", "3<", "<", "%", "99999999999"} {
		f.Add(spec, 4)
	}
	f.Fuzz(func(t *testing.T, spec string, n int) {
		n &= 1023
		var got int
		if refusal := caught(func() { got = minimumShouldMatch(spec, n) }); refusal == nil && got < 0 {
			t.Fatalf("minimumShouldMatch(%q, %d) = %d", spec, n, got)
		}
	})
}
