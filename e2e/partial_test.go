package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// narrowIndex lets fewer hits be reranked than a rewritten search does.
const narrowIndex = "akin-e2e-narrow"

// makeNarrow makes the index of the fixture and a copy of it with a setting.
func makeNarrow(t *testing.T, e *engine, setting string) {
	t.Helper()
	makeRelated(t, e)
	e.makeIndex(t, narrowIndex, strings.Replace(relatedDefinition, `"number_of_shards":1`, setting+`,"number_of_shards":1`, 1))
	e.index(t, narrowIndex, relatedDocuments())
}

// failedShardsOf returns how many shards failed for a search or a count, 0
// where the answer does not say.
func failedShardsOf(t *testing.T, answer rawResponse) int {
	t.Helper()
	var page struct {
		Shards struct{ Failed int } `json:"_shards"`
	}
	if err := json.Unmarshal([]byte(answer.body), &page); err != nil || answer.status != "200 OK" {
		t.Fatalf("%s: %v: %s", answer.status, err, answer.body)
	}
	return page.Shards.Failed
}

// A rewritten search that fails on the shards of one index of two would be
// answered with the hits of the other.
func TestSearchThatFailsOnSomeShardsIsAnsweredByTheOriginal(t *testing.T) {
	both := "/" + relatedIndex + "," + narrowIndex
	post := func(target, contentType, body string) rawRequest {
		return rawRequest{method: "POST", target: target, header: []string{contentType}, body: body}
	}
	packed := post(both+"/_search", jsonType, relatedSearch("car"))
	packed.header = append(packed.header, "Accept-Encoding: gzip")
	items := "{}\n" + `{"query":{"term":{"body":"car"}}}` + "\n{}\n" + relatedSearch("car") + "\n"
	requests := map[string]rawRequest{
		"search":          post(both+"/_search", jsonType, relatedSearch("car")),
		"pretty":          post(both+"/_search?pretty&filter_path=-took", jsonType, relatedSearch("car")),
		"gzip":            packed,
		"only failed":     post(both+"/_search?filter_path=_shards.failed,hits", jsonType, relatedSearch("car")),
		"several":         post(both+"/_msearch", ndjsonType, items),
		"several, hits":   post(both+"/_msearch?filter_path=responses.hits", ndjsonType, items),
		"wholly refused":  post("/"+narrowIndex+"/_search", jsonType, relatedSearch("car")),
		"aggregations":    post(both+"/_search", jsonType, `{"query":{"match":{"body":"boat"}},"aggs":{"n":{"sum":{"field":"n"}}}}`),
		"not of our make": post(both+"/_search", jsonType, `{"query":{"match":{"body":"red"}}}`),
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // nothing is rescored without
		}
		makeNarrow(t, e, `"index.max_rescore_window":10`)
		for name, r := range requests {
			t.Run(name, func(t *testing.T) {
				// What was learned of the limit would keep the next one whole.
				a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
				if want, got := exchange(t, e.url, r).stable(t), exchange(t, a.url, r).stable(t); want != got {
					t.Errorf("directly %s\nthrough akin %s", want, got)
				}
				want := 1.0
				if name == "not of our make" {
					want = 0
				}
				if n := a.metric(t, "akin_rejected_searches_total", `original="accepted"`); n != want {
					t.Errorf("%v refusals are counted, want %v", n, want)
				}
			})
		}
	})
}

// The first refusal teaches the limit; the searches after it are whole and
// widened with one request each.
func TestRescoreWindowIsLearnedFromTheFirstRefusal(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		if !e.scripts {
			return // nothing is rescored without
		}
		for _, expression := range []string{relatedIndex + "," + narrowIndex, narrowIndex} {
			makeNarrow(t, e, `"index.max_rescore_window":100`) // as wide as it is asked for
			checkWindowIsLearned(t, e, expression, 0, "rescore", "")
			makeNarrow(t, e, `"index.max_rescore_window":99`)
			checkWindowIsLearned(t, e, expression, 1, "query", "rescore_window")
		}
	})
}

// checkWindowIsLearned sends a search several times, of which the first ones are
// refused, and looks at what becomes of it in the end.
func checkWindowIsLearned(t *testing.T, e *engine, expression string, refused int, phase, reason string) {
	t.Helper()
	a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
	for k := range 3 {
		answer := exchange(t, a.url, rawRequest{method: "POST", target: "/" + expression + "/_search", header: []string{jsonType}, body: relatedSearch("car")})
		widened := strings.Contains(answer.body, `"_id":"automobile"`)
		if failed := failedShardsOf(t, answer); failed > 0 || widened != (k >= refused) {
			t.Errorf("%s, search %d: %s", expression, k, answer.body)
		}
	}
	if n := a.metric(t, "akin_rejected_searches_total"); n != float64(refused) {
		t.Errorf("%s: %v refusals are counted, want %d", expression, n, refused)
	}
	if clauses := a.explain(t, expression, relatedSearch("car")).Clauses; len(clauses) != 1 || clauses[0].Phase != phase || clauses[0].Reason != reason {
		t.Errorf("%s: in the end %+v, want the phase %s with the reason %q", expression, clauses, phase, reason)
	}
}

// A shard that no node serves is missing for the original as well: Elasticsearch
// 8 tells of it as one that failed.
func TestShardThatNoNodeServesCostsNoSecondSearch(t *testing.T) {
	const index = "akin-e2e-unserved"
	eachEngine(t, func(t *testing.T, e *engine) {
		makeRelated(t, e)
		definition := strings.Replace(relatedDefinition, `"number_of_shards":1`, `"number_of_shards":2`, 1)
		e.makeIndex(t, index, definition)
		a := serveRelated(t, e, relatedFile(t, vectorsA), nil)
		target := "/" + relatedIndex + "," + index
		searches := []rawRequest{
			{method: "POST", target: target + "/_search", header: []string{jsonType}, body: relatedSearch("car")},
			{method: "POST", target: target + "/_count", header: []string{jsonType}, body: `{"query":{"match":{"body":"car"}}}`},
			{method: "POST", target: target + "/_msearch", header: []string{ndjsonType}, body: "{}\n" + relatedSearch("car") + "\n"},
		}
		exchange(t, a.url, searches[0]) // the statistics of the terms are known from now on
		e.dropIndex(index)
		e.must(t, http.MethodPut, "/"+index+"?wait_for_active_shards=0",
			strings.Replace(definition, `{"settings":{`, `{"settings":{"index.routing.allocation.total_shards_per_node":1,`, 1))
		waitFor(t, 20*time.Second, "the one shard that is served", func() error {
			_, answer, err := e.call(t.Context(), http.MethodGet, "/_cat/shards/"+index+"?h=state", "")
			if states := strings.Fields(string(answer)); err == nil && (len(states) != 2 || !slices.Contains(states, "STARTED") || !slices.Contains(states, "UNASSIGNED")) {
				err = fmt.Errorf("the shards are %v", states)
			}
			return err
		})
		for _, r := range searches {
			var answer rawResponse
			if !a.rewrites(t, func() { answer = exchange(t, a.url, r) }) || answer.status != "200 OK" {
				t.Errorf("%s is not rewritten: %s\n%s", r.target, answer.body, requestMetrics(t, a))
			}
			if strings.Contains(r.target, "_count") != strings.Contains(answer.body, `"count":4`) || e.name == "elasticsearch8" && !strings.Contains(answer.body, `"failed":1`) {
				t.Errorf("%s: %s", r.target, answer.body)
			}
		}
		if n := a.metric(t, "akin_rejected_searches_total"); n != 0 {
			t.Errorf("%v refusals are counted, want none", n)
		}
	})
}
