package demo

import (
	"math"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/akin-search/akin/e2e/check"
)

func isObject(answer any) bool {
	_, ok := answer.(map[string]any)
	return ok
}

// Whatever the body, a search answers with JSON and with status 200 or a
// refusal, and its hits come in descending order of finite scores.
func FuzzSearchBody(f *testing.F) {
	for _, q := range append(queriesOf("car hire park"), saturated(2)) {
		body := check.Got(json.Marshal(map[string]any{"query": q, "explain": true}))(f)
		f.Add(body)
	}
	for _, body := range []string{
		``, `{}`, `{"query":null}`, `{"query":{"bool":{"must":null,"should":[null]}}}`, `{"query":{"terms":{"n":[1,"x",null]}}}`,
		`{"query":{"match":{"body":"car"}},"_source":["b*"],"sort":["_doc"]}`,
		`{"query":{"function_score":{"random_score":{"seed":3,"field":"_seq_no"},"boost_mode":"replace","min_score":0.2}}}`,
		`{"query":{"multi_match":{"query":"car","fields":["*^2"],"minimum_should_match":"2<-25% 9<3"}},"min_score":0.1}`,
	} {
		f.Add([]byte(body))
	}
	e := NewEngine()
	e.create("toy", map[string]any{"properties": map[string]any{"body": text(), "title": text(), "tag": map[string]any{"type": "text"}}}).
		put("1", []byte(`{"body":"car hire. Cars park!","title":"one","tag":["a",2]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		status, answer := clientOf(e).do(t, "POST", "/toy/_search", string(body))
		check.Must(t, isObject(answer) && (status == 200 || status == 400 || status == 413), "status %d: %v", status, answer)
		last := math.Inf(1)
		hits, _ := at(answer, "hits", "hits").([]any)
		for _, h := range hits {
			score, scored := at(h, "_score").(float64)
			check.Must(t, !scored || score <= last && score >= 0, "score %v after %v", score, last)
			if scored {
				last = score
			}
			explained, ok := at(h, "_explanation", "value").(float64)
			check.Must(t, !scored || !ok || explained == score, "score %v is explained as %v", score, explained)
		}
	})
}

// Whatever the lines, a bulk request answers with JSON, and the index counts
// what it holds.
func FuzzBulkBody(f *testing.F) {
	f.Add("{\"index\":{\"_id\":\"1\"}}\n{\"body\":[1,\"x\",null,\"x y\"]}\n")
	f.Add("{\"create\":{\"_id\":\"1\",\"_index\":\"y\"}}\n{}\n{\"delete\":{\"_id\":\"1\"}}\n")
	f.Add("{\"index\":{}}\n{\"body\":{\"b\":1},\"a\":2}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		e := NewEngine()
		ix := e.create("toy", map[string]any{"properties": map[string]any{"body": text()}})
		_, answer := clientOf(e).do(t, "POST", "/toy/_bulk", body)
		check.Must(t, isObject(answer), "answer %v", answer)
		for name, field := range ix.fields {
			occurrences, pairs := 0, 0
			for term, known := range field.terms {
				n := len(known.list)
				occurrences, pairs = occurrences+known.totalFreq, pairs+n
				check.Must(t, n >= 1 && n <= len(ix.docs), "%s:%s is counted in %d of %d documents", name, term, n, len(ix.docs))
			}
			if occurrences != field.tokens || pairs != field.sumDocFreq || field.docCount > len(ix.docs) {
				t.Fatalf("%s: %d occurrences, %d pairs, %d documents, counted %+v", name, occurrences, pairs, len(ix.docs), field)
			}
		}
		check.Must(t, len(ix.docs) == len(ix.known), "%d documents, %d ids", len(ix.docs), len(ix.known))
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
			tokens, positions := a(text)
			start, position := 0, -1
			for _, token := range tokens {
				if token.Start < start || token.End < token.Start || token.End > utf16Len(text) || token.Position <= position || token.Position >= positions {
					t.Fatalf("%s %q: token %+v after offset %d, position %d", name, text, token, start, position)
				}
				check.Must(t, (token.Term != "" || name == "keyword") && utf8.ValidString(token.Term), "%s %q: term %q", name, text, token.Term)
				start, position = token.End, token.Position
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
		refusal := caught(func() { got = minimumShouldMatch(spec, n) })
		check.Must(t, refusal != nil || got >= 0, "minimumShouldMatch(%q, %d) = %d", spec, n, got)
	})
}
