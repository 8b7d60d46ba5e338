package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// throwing is a search for cars with a script of the client's that throws text
// for the document "automobile" of an index, which the original does not find.
// The name of a parameter makes it a shape of its own.
func throwing(index, text, parameter string) string {
	source := fmt.Sprintf("if (doc['_index'].value == '%s' && doc['n'].value == 3) throw new IllegalArgumentException('%s'); return _score", index, text)
	return `{"query":{"script_score":{"query":{"match":{"body":"car"}},"script":{"source":` + quote(source) + `,"params":{` + quote(parameter) + `:1}}}},"size":100,"_source":false}`
}

// One client must not switch expansion off for the others by an error of its own
// making.
func TestScriptsThatThrowTheSentencesOfLimitsTeachNothing(t *testing.T) {
	sentences := []string{
		"maxClauseCount is set to 1",
		"maxClauseCount is set to 64",
		"Rescore window [100] is too large. It must be less than [1]. This prevents allocating massive heaps for storing the results to be rescored. This limit can be set by changing the [index.max_rescore_window] index level setting.",
		"Result window is too large, from + size must be less than or equal to: [1] but was [100]. See the scroll api for a more efficient way to request large data sets. This limit can be set by changing the [index.max_result_window] index level setting.",
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return
		}
		makeNarrow(t, e, `"index.max_result_window":10000`)
		a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
		want := a.explain(t, relatedIndex, relatedSearch("car"))
		for k, sentence := range sentences {
			for _, path := range []string{relatedPath, "/" + relatedIndex + "," + narrowIndex + "/_search"} {
				r := rawRequest{method: "POST", target: path, header: []string{jsonType}, body: throwing(relatedIndex, sentence, fmt.Sprint("p", k))}
				direct, through := both(t, e, a, r)
				if direct.status != "200 OK" || through.stable(t) != direct.stable(t) {
					t.Errorf("directly %s\nthrough akin %s", direct.body, through.body)
				}
			}
		}
		if n := a.metric(t, "akin_rejected_searches_total", `original="accepted"`); n != float64(2*len(sentences)) {
			t.Errorf("%v scripts have thrown something:\n%s", n, requestMetrics(t, a))
		}
		if n := a.metric(t, "akin_learned_limit_indices"); n != 0 {
			t.Errorf("%v limits were learned", n)
		}
		got := a.explain(t, relatedIndex, relatedSearch("car"))
		if len(got.Clauses) != 1 || len(got.Clauses[0].Added) == 0 || got.Clauses[0].Phase != want.Clauses[0].Phase || len(got.Clauses[0].Added) != len(want.Clauses[0].Added) {
			t.Errorf("then another search becomes %+v, before %+v", got.Clauses, want.Clauses)
		}
		if hits := a.searchRelated(t, relatedSearch("car")); !strings.Contains(strings.Join(hits.ids(), " "), "automobile") {
			t.Errorf("then another search finds %v", hits.ids())
		}
	})
}

// A limit is learned from one refusal, corrected by what the cluster says, and
// reported.
func TestLimitsAreLearnedFromTheClusterItself(t *testing.T) {
	const limit, narrower = `{"transient":{"indices.query.bool.max_clause_count":%s}}`, "akin-e2e-narrower"
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // nothing is rescored without
		}
		makeNarrow(t, e, `"index.max_rescore_window":99`)
		e.makeIndex(t, narrower, strings.Replace(relatedDefinition, `"number_of_shards":1`, `"index.max_rescore_window":90,"number_of_shards":1`, 1))
		a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
		expression := relatedIndex + "," + narrower + "," + narrowIndex
		for range 3 {
			exchange(t, a.url, rawRequest{method: "POST", target: "/" + expression + "/_search", header: []string{jsonType}, body: relatedSearch("car")})
		}
		awaitLimit(t, a, "rescore_window", 90) // only the index with 99 has a document
		if e.family != "opensearch" || !e.ours {
			return // the limit of clauses of the others cannot be changed while they run
		}
		t.Cleanup(func() { // the test's own context has ended by then
			_, _, _ = e.call(context.Background(), http.MethodPut, "/_cluster/settings", fmt.Sprintf(limit, "null"))
		})
		e.must(t, http.MethodPut, "/_cluster/settings", fmt.Sprintf(limit, "100"))
		words := make([]string, 99)
		for i := range words {
			words[i] = fmt.Sprintf("w%d", i)
		}
		body := `{"query":{"bool":{"should":[{"match":{"body":"` + strings.Join(words, " ") + `"}},{"match":{"body":"car"}}]}}}`
		before := a.metric(t, "akin_rejected_searches_total")
		for range 3 {
			if answer := exchange(t, a.url, rawRequest{method: "POST", target: relatedPath, header: []string{jsonType}, body: body}); answer.status != "200 OK" {
				t.Errorf("%s: %s", answer.status, answer.body)
			}
		}
		awaitLimit(t, a, "clauses", 100)
		if n := a.metric(t, "akin_rejected_searches_total") - before; n != 1 {
			t.Errorf("%v searches were refused, want 1:\n%s", n, requestMetrics(t, a))
		}
	})
}

func awaitLimit(t *testing.T, a *akin, kind string, want float64) {
	t.Helper()
	waitFor(t, 10*time.Second, "the limit of "+kind, func() error {
		if n := a.metric(t, "akin_learned_limit", `kind="`+kind+`"`); n != want {
			return fmt.Errorf("it is %v, want %v", n, want)
		}
		return nil
	})
	for _, line := range a.logLines(t) {
		if line["level"] == "INFO" && line["kind"] == kind && line["index"] != "" && line["limit"] == want {
			return
		}
	}
	t.Errorf("the log does not tell of the limit of %s", kind)
}

// The answer that akin throws away has opened a scroll, which the client cannot
// clear.
func TestRefusedSearchesLeaveNoScrollBehind(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return
		}
		makeNarrow(t, e, `"index.max_result_window":10000`)
		a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
		before := openContexts(t, e)
		r := rawRequest{method: "POST", target: "/" + relatedIndex + "," + narrowIndex + "/_search?scroll=5m", header: []string{jsonType}, body: throwing(relatedIndex, "x", "p")}
		answer := exchange(t, a.url, r)
		if failedShardsOf(t, answer) != 0 || a.metric(t, "akin_rejected_searches_total", `original="accepted"`) != 1 {
			t.Fatalf("it was not refused: %s\n%s", answer.body, requestMetrics(t, a))
		}
		var page struct {
			ID string `json:"_scroll_id"`
		}
		if err := json.Unmarshal([]byte(answer.body), &page); err != nil || page.ID == "" {
			t.Fatalf("%v: %s", err, answer.body)
		}
		a.must(t, http.MethodDelete, "/_search/scroll", `{"scroll_id":[`+quote(page.ID)+`]}`)
		waitFor(t, 10*time.Second, "the end of all scrolls", func() error {
			if n := openContexts(t, e); n > before {
				return fmt.Errorf("%d contexts are open, %d before", n, before)
			}
			return nil
		})
	})
}

// openContexts returns how many searches the engine keeps open.
func openContexts(t *testing.T, e *engine) (n int) {
	t.Helper()
	var answer struct {
		Nodes map[string]struct {
			Indices struct {
				Search struct {
					Open int `json:"open_contexts"`
				} `json:"search"`
			} `json:"indices"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(e.must(t, http.MethodGet, "/_nodes/stats/indices/search", ""), &answer); err != nil {
		t.Fatal(err)
	}
	for _, node := range answer.Nodes {
		n += node.Indices.Search.Open
	}
	return n
}
