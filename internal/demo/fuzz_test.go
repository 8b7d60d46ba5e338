package demo

import (
	"math"
	"testing"

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
