package e2e

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// serveEndpoints makes the fixture of related words on e and starts an akin
// before it that expands at every endpoint. Keys of expansion may be overridden.
func serveEndpoints(t *testing.T, e *engine, expansion section) *akin {
	t.Helper()
	e.require(t)
	makeRelated(t, e)
	options := section{"templates": true}
	maps.Copy(options, expansion)
	return serveRelated(t, e, relatedFile(t, vectorsA), options)
}

// both sends a request directly and through akin.
func both(t *testing.T, e *engine, a *akin, r rawRequest) (direct, through rawResponse) {
	t.Helper()
	return exchange(t, e.url, r), exchange(t, a.url, r)
}

// rewrites reports whether f has akin rewrite something.
func (a *akin) rewrites(t *testing.T, f func()) bool {
	t.Helper()
	before := a.metric(t, requestsMetric, rewrittenOutcome)
	f()
	return a.metric(t, requestsMetric, rewrittenOutcome) > before
}

// served reports whether an engine has the endpoint: the nodes of Elasticsearch
// 8 and 9 that tests run have no modules, and none has async search. Where it is
// missing akin answers as the engine does, and that is checked here; Elasticsearch
// 7 takes the name for a type, and its error names a new document each time.
func served(t *testing.T, e *engine, a *akin, r rawRequest) bool {
	t.Helper()
	direct, through := both(t, e, a, r)
	if direct.status == "200 OK" {
		return true
	}
	same := direct.status == through.status && (direct.body == through.body || strings.Contains(direct.body, "parsing_exception"))
	if !same || strings.Contains(through.body, "akin_") {
		t.Errorf("%s is not served: directly %s %s\nthrough akin %s %s", r.target, direct.status, direct.body, through.status, through.body)
	}
	return false
}

// A multiAnswer is what the tests read of the answer of _msearch.
type multiAnswer struct{ Responses []json.RawMessage }

func readMulti(t *testing.T, r rawResponse) []json.RawMessage {
	t.Helper()
	var answer multiAnswer
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || r.status != "200 OK" {
		t.Fatalf("%s: %v: %s", r.status, err, r.body)
	}
	return answer.Responses
}

// stableItem is an item without what differs from one call to the next.
func stableItem(item json.RawMessage) string { return volatile.ReplaceAllString(string(item), "*") }

func TestMultiSearchIsRewrittenItemByItem(t *testing.T) {
	items := []struct {
		header, body string
		added        string // the document that comes in, "" where the search stays as it is
	}{
		{`{"index":"` + relatedIndex + `"}`, relatedSearch("car"), "automobile"},
		{`{}`, `{"query":{"term":{"body":"car"}}}`, ""},
		{`{"index":"akin-e2e-none"}`, relatedSearch("car"), ""},
		{``, relatedSearch("boat"), "ship"},
		{`{"preference":"_local"}`, `{"query":{"query_string":{"query":"car AND (","default_field":"body"}}}`, ""},
		{`{"index":["` + relatedIndex + `"],"search_type":"query_then_fetch"}`, relatedSearch("car red"), "automobile"},
	}
	var lines strings.Builder
	for _, item := range items {
		lines.WriteString(item.header + "\n" + item.body + "\n")
	}
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, nil)
		for name, r := range map[string]rawRequest{
			"ndjson":    {method: "POST", target: "/" + relatedIndex + "/_msearch", header: []string{ndjsonType}, body: lines.String()},
			"json, GET": {method: "GET", target: "/" + relatedIndex + "/_msearch", header: []string{jsonType}, body: lines.String()},
			"gzip":      {method: "POST", target: "/" + relatedIndex + "/_msearch", header: []string{ndjsonType, "Content-Encoding: gzip", "Accept-Encoding: gzip"}, body: gzipped(t, lines.String())},
		} {
			t.Run(name, func(t *testing.T) {
				direct, through := both(t, e, a, r)
				direct.body, through.body = unzipped(t, direct), unzipped(t, through)
				want, got := readMulti(t, direct), readMulti(t, through)
				if len(want) != len(items) || len(got) != len(items) {
					t.Fatalf("%d items directly, %d through akin, want %d", len(want), len(got), len(items))
				}
				for k, item := range items {
					before, after := stableItem(want[k]), stableItem(got[k])
					switch {
					case item.added == "" && before != after:
						t.Errorf("item %d: directly %s\nthrough akin %s", k, before, after)
					case item.added != "" && (!strings.Contains(after, `"_id":"`+item.added+`"`) || !strings.Contains(after, `"status":200`)):
						t.Errorf("item %d: %s", k, after)
					}
				}
			})
		}
		// Filtered, so that failures are not shown: nothing else is shown either.
		r := rawRequest{method: "POST", target: "/" + relatedIndex + "/_msearch?filter_path=responses.hits.hits._id", header: []string{ndjsonType}, body: "{}\n" + relatedSearch("car") + "\n"}
		if got := readMulti(t, exchange(t, a.url, r)); len(got) != 1 || !strings.Contains(string(got[0]), `{"_id":"automobile"}`) || strings.Contains(string(got[0]), "error") {
			t.Errorf("filtered: %s", got)
		}
	})
}

// unzipped returns the body of an answer, decompressed.
func unzipped(t *testing.T, r rawResponse) string {
	t.Helper()
	if r.header.Get("Content-Encoding") != "gzip" {
		return r.body
	}
	reader, err := gzip.NewReader(strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestCountAgreesWithSearch(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, nil)
		for _, q := range relatedQueries {
			body := `{"query":` + q.query + `}`
			total := a.searchRelated(t, body).Hits.Total.Value
			if got := countOf(t, a.cluster, "/"+relatedIndex+"/_count", body); got != total {
				t.Errorf("%s: the count is %d, the search finds %d", q.name, got, total)
			}
		}
		const target = "/" + relatedIndex + "/_count?q=car&df=body"
		if direct, through := countOf(t, e.cluster, target, ""), countOf(t, a.cluster, target, ""); through <= direct {
			t.Errorf("q: the count is %d directly, %d through akin", direct, through)
		}
	})
}

func countOf(t *testing.T, c cluster, target, body string) int {
	t.Helper()
	var answer struct{ Count int }
	if err := json.Unmarshal(c.must(t, http.MethodPost, target, body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Count
}

// With matching: same a count stays as it is, and so does what it counts.
func TestCountStaysWithMatchingSame(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, section{"matching": "same"})
		const target, body = "/" + relatedIndex + "/_count", `{"query":{"match":{"body":"car"}}}`
		if a.rewrites(t, func() {
			if direct, through := countOf(t, e.cluster, target, body), countOf(t, a.cluster, target, body); through != direct {
				t.Errorf("the count is %d directly, %d through akin", direct, through)
			}
		}) {
			t.Error("the count is rewritten")
		}
	})
}

func TestValidateTellsOfTheRewrittenQuery(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, nil)
		for _, target := range []string{"/" + relatedIndex + "/_validate/query?explain=true", "/" + relatedIndex + "/_validate/query?rewrite=true"} {
			answer := string(a.must(t, http.MethodPost, target, `{"query":{"match":{"body":"car"}}}`))
			if !strings.Contains(answer, `"valid":true`) || !strings.Contains(answer, "automobile") {
				t.Errorf("%s: %s", target, answer)
			}
		}
		for _, body := range []string{
			`{"query":{"query_string":{"query":"car AND (","default_field":"body"}}}`,
			`{"query":{"bool":{"should":[{"match":{"body":"car"}},{"nope":{}}]}}}`,
			`{"query":{"bool":{"should":[{"match":{"body":"car"}},{"range":{"n":{"gte":"x"}}}]}}}`,
		} {
			direct, through := both(t, e, a, rawRequest{method: "POST", target: "/" + relatedIndex + "/_validate/query", header: []string{jsonType}, body: body})
			if want, got := direct.stable(t), through.stable(t); got != want || !strings.Contains(got, `"valid":false`) {
				t.Errorf("%s: directly %s\nthrough akin %s", body, want, got)
			}
		}
	})
}

// An explanation is of the query that a search runs: it matches the same
// documents, with the same scores.
func TestExplainIsOfTheRewrittenQuery(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, section{"scoring": "linear"})
		for _, hit := range a.searchRelated(t, relatedSearch("car")).Hits.Hits {
			var answer struct {
				Matched     bool
				Explanation struct{ Value float64 }
			}
			target := "/" + relatedIndex + "/_explain/" + hit.ID
			if err := json.Unmarshal(a.must(t, http.MethodPost, target, `{"query":{"match":{"body":"car"}}}`), &answer); err != nil {
				t.Fatal(err)
			}
			// Single precision, printed with up to nine digits.
			if !answer.Matched || math.Abs(answer.Explanation.Value-hit.Score) > 1e-5*hit.Score {
				t.Errorf("%s: explained as %+v, found with %v", hit.ID, answer, hit.Score)
			}
		}
		for _, id := range []string{"lorry", "none"} {
			direct, through := both(t, e, a, rawRequest{method: "GET", target: "/" + relatedIndex + "/_explain/" + id + "?q=car&df=body"})
			if want, got := direct.status, through.status; got != want || strings.Contains(through.body, `"matched":true`) {
				t.Errorf("%s: directly %s, through akin %s: %s", id, want, got, through.body)
			}
		}
	})
}

func TestRankEvalEvaluatesRewrittenSearches(t *testing.T) {
	body := `{"requests":[{"id":"car","request":{"query":{"match":{"body":"car"}}},"ratings":[` +
		`{"_index":"` + relatedIndex + `","_id":"automobile","rating":1},{"_index":"` + relatedIndex + `","_id":"car","rating":1}]}` +
		`%s],"metric":{"recall":{"k":20}}}`
	broken := `,{"id":"broken","request":{"query":{"query_string":{"query":"car AND (","default_field":"body"}}},"ratings":[{"_index":"` + relatedIndex + `","_id":"car","rating":1}]}`
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, nil)
		r := rawRequest{method: "POST", target: "/" + relatedIndex + "/_rank_eval", header: []string{jsonType}, body: fmt.Sprintf(body, "")}
		if !served(t, e, a, r) {
			return
		}
		score := func(answer rawResponse) float64 {
			var page struct {
				Score float64 `json:"metric_score"`
			}
			if err := json.Unmarshal([]byte(answer.body), &page); err != nil || answer.status != "200 OK" {
				t.Fatalf("%v: %s", err, answer.body)
			}
			return page.Score
		}
		for _, query := range []string{"", "?filter_path=metric_score"} {
			r.target = "/" + relatedIndex + "/_rank_eval" + query
			direct, through := both(t, e, a, r)
			if before, after := score(direct), score(through); before != 0.5 || after != 1 {
				t.Errorf("%s: recall %v directly, %v through akin, want 1/2 and 1", query, before, after)
			}
			if query != "" && through.body != `{"metric_score":1.0}` {
				t.Errorf("filtered: %s", through.body)
			}
		}
		// One search fails, whose failure looks like one of ours: the
		// answer is that to the original.
		r.target, r.body = "/"+relatedIndex+"/_rank_eval", fmt.Sprintf(body, broken)
		direct, through := both(t, e, a, r)
		if want, got := direct.stable(t), through.stable(t); got != want || !strings.Contains(got, `"broken"`) {
			t.Errorf("directly %s\nthrough akin %s", want, got)
		}
	})
}

func TestTemplatesAreRenderedAndRewritten(t *testing.T) {
	const stored = "akin-e2e-template"
	source := "{\n  \"query\": {\"match\": {\"body\": \"{{words}}\"}},\n  \"size\": 100, \"_source\": false}"
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, nil)
		inline := `{"source":` + quote(source) + `,"params":{"words":"car"}}`
		post := func(target, body string) rawRequest {
			return rawRequest{method: "POST", target: target, header: []string{jsonType}, body: body}
		}
		one, several := "/"+relatedIndex+"/_search/template", "/"+relatedIndex+"/_msearch/template"
		if !served(t, e, a, post(one, inline)) {
			return
		}
		e.must(t, http.MethodPut, "/_scripts/"+stored, `{"script":{"lang":"mustache","source":`+quote(source)+`}}`)
		t.Cleanup(func() { _, _, _ = e.call(context.Background(), http.MethodDelete, "/_scripts/"+stored, "") })
		byID := `{"id":"` + stored + `","params":{"words":"car"}}`
		absent := `{"id":"akin-e2e-absent","params":{}}`
		for name, r := range map[string]rawRequest{
			"inline":      post(one, inline),
			"as object":   post(one, `{"source":{"query":{"match":{"body":"{{words}}"}}},"params":{"words":"car"}}`),
			"stored":      post(one, byID),
			"options":     post(one+"?preference=_local&typed_keys=true", `{"explain":true,"profile":true,"id":"`+stored+`","params":{"words":"car"}}`),
			"total":       post(one+"?rest_total_hits_as_int=true", byID),
			"scroll":      post(one+"?scroll=1m", byID),
			"filtered":    post(one+"?filter_path=hits.hits._id", byID),
			"GET":         {method: "GET", target: one, header: []string{jsonType}, body: byID},
			"several":     {method: "POST", target: several, header: []string{ndjsonType}, body: "{}\n" + byID + "\n{\"preference\":\"_local\"}\n" + inline + "\n"},
			"odd strings": post(one, `{"source":`+quote(source)+`,"params":{"words":"car \"{{x}}\" }}} \\ é <&>"}}`),
		} {
			t.Run(name, func(t *testing.T) {
				direct, through := both(t, e, a, r)
				if through.status != "200 OK" || strings.Contains(direct.body, `"_id":"automobile"`) || !strings.Contains(through.body, `"_id":"automobile"`) {
					t.Errorf("directly %s\nthrough akin %s", direct.body, through.body)
				}
				if want, got := membersOf(t, direct.body), membersOf(t, through.body); !slices.Equal(want, got) {
					t.Errorf("members directly %v, through akin %v", want, got)
				}
			})
		}
		for name, r := range map[string]rawRequest{
			"nothing to add":     post(one, `{"id":"`+stored+`","params":{"words":"canoe"}}`),
			"absent":             post(one, absent),
			"one of two absent":  {method: "POST", target: several, header: []string{ndjsonType}, body: "{}\n" + byID + "\n{}\n" + absent + "\n"},
			"ignored parameter":  post(one+"?q=boat", byID),
			"unknown parameter":  post(one+"?akin_e2e=1", byID),
			"renders to no JSON": post(one, `{"source":"{{words}}","params":{"words":"car"}}`),
		} {
			t.Run(name, func(t *testing.T) {
				direct, through := both(t, e, a, r)
				if want, got := direct.stable(t), through.stable(t); got != want {
					t.Errorf("directly %s\nthrough akin %s", want, got)
				}
			})
		}
	})
}

// membersOf returns the names of the members of an answer, and of the first of
// several.
func membersOf(t *testing.T, body string) []string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	names := slices.Sorted(maps.Keys(members))
	var items []map[string]json.RawMessage
	if members["responses"] != nil {
		if err := json.Unmarshal(members["responses"], &items); err != nil || len(items) == 0 {
			t.Fatalf("%v: %s", err, body)
		}
		names = append(names, slices.Sorted(maps.Keys(items[0]))...)
	}
	return names
}

func TestAsyncSearchIsRewritten(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, nil)
		r := rawRequest{method: "POST", target: "/" + relatedIndex + "/_async_search", header: []string{jsonType}, body: relatedSearch("car")}
		if served(t, e, a, r) && !strings.Contains(exchange(t, a.url, r).body, `"_id":"automobile"`) {
			t.Errorf("not rewritten: %s", exchange(t, a.url, r).body)
		}
	})
}

// A search of several that the cluster refuses only in its rewritten form gets
// the answer to the original.
func TestItemRefusedForItsClausesIsAnsweredByTheOriginal(t *testing.T) {
	const limit = `{"transient":{"indices.query.bool.max_clause_count":%s}}`
	eachEngine(t, func(t *testing.T, e *engine) {
		a := serveEndpoints(t, e, section{"scoring": "linear"})
		if e.family != "opensearch" || !e.ours {
			return // the limit of the others cannot be changed while they run
		}
		t.Cleanup(func() { // the test's own context has ended by then
			_, _, _ = e.call(context.Background(), http.MethodPut, "/_cluster/settings", fmt.Sprintf(limit, "null"))
		})
		// The original has two clauses for its two words.
		e.must(t, http.MethodPut, "/_cluster/settings", fmt.Sprintf(limit, "2"))
		for _, r := range []rawRequest{
			{method: "POST", target: "/" + relatedIndex + "/_msearch", header: []string{ndjsonType}, body: "{}\n" + relatedSearch("car boat") + "\n{}\n" + relatedSearch("lorry") + "\n"},
			{method: "POST", target: "/" + relatedIndex + "/_validate/query?explain=true", header: []string{jsonType}, body: `{"query":{"match":{"body":"boat car"}}}`},
			{method: "POST", target: relatedPath, header: []string{jsonType}, body: relatedSearch("boat car")},
		} {
			direct, through := both(t, e, a, r)
			if want, got := direct.stable(t), through.stable(t); got != want {
				t.Errorf("%s: directly %s\nthrough akin %s", r.target, want, got)
			}
		}
		if n := a.metric(t, "akin_rejected_searches_total", `original="accepted"`); n == 0 {
			t.Errorf("no refusal is counted:\n%s", requestMetrics(t, a))
		}
	})
}
