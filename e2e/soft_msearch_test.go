package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/requests"
)

// A searchOfSeveral is one search of a _msearch.
type searchOfSeveral struct {
	name, header, body string
	// ordered says that its hits are reranked.
	ordered bool
}

// softSearches are searches of one request. All but the last go to the index
// that the path or the header names.
var softSearches = []searchOfSeveral{
	{"plain", `{}`, `{"query":{"match":{"body":"flow wing"}}}`, true},
	{"sorted", `{"preference":"_local"}`, `{"query":{"match":{"body":"flow"}},"sort":["_doc"]}`, false},
	{"a page", `{}`, `{"from":1,"size":2,"query":{"multi_match":{"query":"flow air","fields":["title","body"]}}}`, true},
	{"all asked for", `{}`, `{"query":{"match":{"body":"stream"}},"version":true,"seq_no_primary_term":true,"_source":false}`, true},
	{"counted", `{}`, `{"query":{"match":{"body":"flow"}},"aggs":{"a":{"value_count":{"field":"_index"}}},"size":3}`, true},
	{"no clause", `{}`, `{"size":2}`, false},
	{"nothing found", `{}`, `{"query":{"match":{"body":"unheard"}}}`, true},
	{"the client's mistake", `{"index":"akin-e2e-soft-none"}`, `{"query":{"match":{"body":"flow"}}}`, false},
}

// orderedOf returns how many of searches have their hits reranked.
func orderedOf(searches []searchOfSeveral) (n int) {
	for _, s := range searches {
		if s.ordered {
			n++
		}
	}
	return n
}

// linesOf returns the body of a _msearch.
func linesOf(searches []searchOfSeveral) string {
	var lines strings.Builder
	for _, s := range searches {
		lines.WriteString(s.header + "\n" + s.body + "\n")
	}
	return lines.String()
}

// TestSoftModeOrdersEachSearchOfMultiSearch sends searches together and each
// by itself. Their answers have to be the same to the byte.
func TestSoftModeOrdersEachSearchOfMultiSearch(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		index, matrix := makeSmallSoft(t, e)
		a := startAkin(t, softConfig(e, matrix))
		a.awaitMatrix(t, "s")
		for _, path := range []string{"/" + index + "/_msearch", "/" + index + "/_msearch?rest_total_hits_as_int=true&typed_keys=true", "/" + index + "/_msearch?pretty"} {
			t.Run(path, func(t *testing.T) { checkSoftSearches(t, a, path) })
		}
		t.Run("indices in headers", func(t *testing.T) {
			before := a.metric(t, rerankedMetric, rerankedResult)
			searches := []searchOfSeveral{{header: `{"index":"` + index + `"}`, body: softSearches[0].body, ordered: true}}
			got := answersOf(t, a.must(t, http.MethodPost, "/_msearch", linesOf(searches)))
			want := a.must(t, http.MethodPost, "/"+index+"/_search", softSearches[0].body)
			if got, want := asSingle(got[0]), softTook.ReplaceAllString(string(want), `"took":0`); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if n := a.metric(t, rerankedMetric, rerankedResult) - before; n != 2 {
				t.Errorf("%v searches were reranked, want both", n)
			}
		})
	})
}

// checkSoftSearches compares the answers to softSearches with those that each
// of them gets in a request of its own.
func checkSoftSearches(t *testing.T, a *akin, path string) {
	t.Helper()
	before := a.metric(t, rerankedMetric)
	answers := answersOf(t, a.must(t, http.MethodPost, path, linesOf(softSearches)))
	if n := int(a.metric(t, rerankedMetric) - before); n != orderedOf(softSearches) {
		t.Errorf("%d searches were reranked, want %d", n, orderedOf(softSearches))
	}
	if len(answers) != len(softSearches) {
		t.Fatalf("%d answers", len(answers))
	}
	for i, s := range softSearches {
		single := strings.Replace(path, "_msearch", "_search", 1)
		if s.header == `{"index":"akin-e2e-soft-none"}` {
			single = "/akin-e2e-soft-none/_search" + single[strings.Index(single, "/_search")+len("/_search"):]
		}
		_, want, err := a.call(t.Context(), http.MethodPost, single, s.body)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := asSingle(answers[i]), softTook.ReplaceAllString(requests.Compact(string(want)), `"took":0`); got != want {
			t.Errorf("%s: got %s\nwant %s", s.name, got, want)
		}
	}
}

// answersOf returns the answers in one to _msearch.
func answersOf(t *testing.T, answer []byte) []string {
	t.Helper()
	var several struct{ Responses []json.RawMessage }
	decode(t, []byte(requests.Compact(string(answer))), &several)
	answers := make([]string, len(several.Responses))
	for i, one := range several.Responses {
		answers[i] = string(one)
	}
	return answers
}

// asSingle returns one answer of several as that of a request of its own,
// without the time that it took.
func asSingle(answer string) string {
	if !strings.HasPrefix(answer, `{"error"`) {
		answer = strings.TrimSuffix(answer, `,"status":200}`) + "}"
	}
	return softTook.ReplaceAllString(answer, `"took":0`)
}

// TestSoftModeOfSeveralSearchesFailsOpen sends searches of which one cannot be
// answered in any form: the answer is the engine's own, for all.
func TestSoftModeOfSeveralSearchesFailsOpen(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		index, matrix := makeSmallSoft(t, e)
		config := softConfig(e, matrix)
		a := startAkin(t, config)
		a.awaitMatrix(t, "s")
		broken := `{"query":{"match":{"body":"flow"}},"aggs":{"a":{"terms":{"field":"body"}}}}` // of a text
		lines := "{}\n" + softSearches[0].body + "\n{}\n" + broken + "\n"
		got := a.must(t, http.MethodPost, "/"+index+"/_msearch", lines)
		want := e.must(t, http.MethodPost, "/"+index+"/_msearch", lines)
		if got, want := softTook.ReplaceAllString(string(got), ""), softTook.ReplaceAllString(string(want), ""); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if n := a.metric(t, "akin_rejected_searches_total", `original="rejected"`); n != 1 {
			t.Errorf("%v refusals are counted as the client's mistake", n)
		}
		checkManySoftSearches(t, a, index)
	})
}

// checkManySoftSearches sends as many searches at once as are reranked, and
// one more.
func checkManySoftSearches(t *testing.T, a *akin, index string) {
	t.Helper()
	for n, want := range map[int]int{16: 16, 17: 0} {
		before := a.metric(t, rerankedMetric, rerankedResult)
		answer := a.must(t, http.MethodPost, "/"+index+"/_msearch", strings.Repeat("{}\n"+softSearches[0].body+"\n", n))
		if got := len(answersOf(t, answer)); got != n {
			t.Errorf("%d answers to %d searches", got, n)
		}
		if got := int(a.metric(t, rerankedMetric, rerankedResult) - before); got != want {
			t.Errorf("%d of %d searches were reranked, want %d", got, n, want)
		}
	}
}

// TestSoftModeOrdersTemplatesOfMultiSearch compares templates with the searches
// that they render.
func TestSoftModeOrdersTemplatesOfMultiSearch(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		index, matrix := makeSmallSoft(t, e)
		config := softConfig(e, matrix)
		expansion, _ := config["expansion"].(section)
		expansion["templates"] = true
		a := startAkin(t, config)
		a.awaitMatrix(t, "s")
		var lines strings.Builder
		texts := []string{"flow wing", "wing", "unheard flow"} // the last has a word without neighbors
		for _, text := range texts {
			lines.WriteString("{}\n" + `{"source":"{\"query\":{\"match\":{\"body\":\"{{w}}\"}},\"size\":{{n}}}","params":{"w":"` + text + `","n":3}}` + "\n")
		}
		target := "/" + index + "/_msearch/template"
		if !served(t, e, a, rawRequest{method: "POST", target: target, header: []string{jsonType}, body: lines.String()}) {
			return
		}
		before := a.metric(t, rerankedMetric, rerankedResult)
		answers := answersOf(t, a.must(t, http.MethodPost, target, lines.String()))
		if n := int(a.metric(t, rerankedMetric, rerankedResult) - before); n != len(texts) || len(answers) != n {
			t.Fatalf("%d searches were reranked, there are %d answers", n, len(answers))
		}
		for i, text := range texts {
			want := a.must(t, http.MethodPost, "/"+index+"/_search", pageBody(text, 0, 3))
			var got, single hitList
			decode(t, []byte(answers[i]), &got)
			decode(t, want, &single)
			for k, hit := range single.Hits.Hits {
				if other := got.Hits.Hits[k]; len(got.Hits.Hits) != len(single.Hits.Hits) || other.ID != hit.ID || other.Score != hit.Score {
					t.Errorf("%s: hit %d is %+v, want %+v", text, k, other, hit)
				}
			}
		}
	})
}

// TestExplanationsTellOfEachSearchInTheModeSoft reads what became of the hits
// of several searches.
func TestExplanationsTellOfEachSearchInTheModeSoft(t *testing.T) {
	e, index, matrix := smallSoft(t)
	a := startAkin(t, softConfig(e, matrix))
	a.awaitMatrix(t, "s")
	for _, c := range []struct{ path, body, want string }{
		{"/_search", softSearches[0].body, "reranked"},
		{"/_msearch", linesOf(softSearches), "[0] reranked, [2] reranked, [3] reranked, [4] reranked, [6] no_hits"},
	} {
		answer := exchange(t, a.url, rawRequest{method: "POST", target: "/" + index + c.path, header: []string{jsonType, "X-Akin: explain"}, body: c.body})
		var shown struct{ Reranked, Sent string }
		decode(t, a.admin.must(t, http.MethodGet, "/_akin/explanations/"+answer.header.Get("X-Akin-Explanation"), ""), &shown)
		if shown.Reranked != c.want || shown.Sent != "rewritten" {
			t.Errorf("%s: %+v, want %q", c.path, shown, c.want)
		}
	}
}
