package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/e2e/check"
)

func TestRefusalsNameTheCause(t *testing.T) {
	c := toy(t)
	search := func(query string) string { return `{"query":` + query + `}` }
	script := func(source, params string) string {
		return search(`{"script_score":{"query":{"match_all":{}},"script":{"source":"` + source + `","params":` + params + `}}}`)
	}
	for _, tt := range []struct {
		name, method, path string
		body               any
		status             int
		kind, reason       string
	}{
		{"unknown endpoint", "POST", "/toy/_close", nil, 400, "illegal_argument_exception", "/toy/_close"},
		{"unknown root endpoint", "GET", "/_nodes", nil, 400, "illegal_argument_exception", "/_nodes"},
		{"unknown method", "PATCH", "/toy/_search", nil, 400, "illegal_argument_exception", "[PATCH]"},
		{"unknown parameter", "GET", "/toy/_search?akin=off", nil, 400, "illegal_argument_exception", "unrecognized parameter: [akin]"},
		{"unknown query", "POST", "/toy/_search", search(`{"match_phrase":{"body":"x"}}`), 400, "parsing_exception", "unknown query [match_phrase]"},
		{"term vectors of documents with offsets", "POST", "/_mtermvectors", `{"docs":[]}`, 400, "illegal_argument_exception", "[offsets]"},
		{"unknown query over no index", "POST", "/none*/_search", search(`{"knn":{}}`), 400, "parsing_exception", "[knn]"},
		{"unknown query option", "POST", "/toy/_search", search(`{"match":{"body":{"query":"x","fuzziness":1}}}`), 400, "parsing_exception", "[match] query does not support [fuzziness]"},
		{"unknown search option", "POST", "/toy/_search", `{"aggs":{}}`, 400, "parsing_exception", "[aggs]"},
		{"unknown multi_match type", "POST", "/toy/_search", search(`{"multi_match":{"query":"x","type":"cross_fields"}}`), 400, "illegal_argument_exception", "cross_fields"},
		{"query string operators", "GET", "/toy/_search?q=car+AND+hire", nil, 400, "illegal_argument_exception", "car AND hire"},
		{"two queries at once", "POST", "/toy/_search", search(`{"match_all":{},"ids":{}}`), 400, "parsing_exception", "one query clause"},
		{"negative boost", "POST", "/toy/_search", search(`{"match_all":{"boost":-1}}`), 400, "parsing_exception", "boost"},
		{"malformed minimum", "POST", "/toy/_search", search(`{"match":{"body":{"query":"a b","minimum_should_match":"x%"}}}`), 400, "illegal_argument_exception", "x%"},
		{"not JSON", "POST", "/toy/_search", `{"query":`, 400, "json_parse_exception", ""},
		{"duplicate names", "POST", "/toy/_search", `{"size":1,"size":2}`, 400, "json_parse_exception", "duplicate"},
		{"window too large", "POST", "/toy/_search", `{"from":9995,"size":10}`, 400, "illegal_argument_exception", "10005"},
		{"sort by a field", "POST", "/toy/_search", `{"sort":["title"]}`, 400, "illegal_argument_exception", "title"},
		{"body too large", "POST", "/toy/_search", `{"size":1}` + strings.Repeat(" ", maxBody), 413, "content_too_long_exception", ""},
		{"foreign script", "POST", "/toy/_search", script("return 1", "{}"), 400, "script_exception", "compile error"},
		{"script without params", "POST", "/toy/_search", script(ScriptSaturate, "{}"), 400, "illegal_argument_exception", "invalid score [NaN]"},
		{"probe with a negative factor", "POST", "/toy/_search", script(ScriptProbe, `{"a":-1}`), 400, "illegal_argument_exception", "invalid score [-1]"},
		{"script that divides by zero", "POST", "/toy/_search", script(ScriptInvert, `{"m":1,"b":1,"c":1}`), 400, "illegal_argument_exception", "invalid score [+Inf]"},
		{"unknown index", "GET", "/nowhere/_search", nil, 404, "index_not_found_exception", "no such index [nowhere]"},
		{"one unknown index of two", "GET", "/toy,nowhere/_count", nil, 404, "index_not_found_exception", "[nowhere]"},
		{"unknown analyzer", "POST", "/toy/_analyze", `{"analyzer":"french","text":"x"}`, 400, "illegal_argument_exception", "[french]"},
		{"no text to analyze", "POST", "/toy/_analyze", `{}`, 400, "illegal_argument_exception", "text is missing"},
		{"index exists", "PUT", "/toy", nil, 400, "resource_already_exists_exception", "[toy]"},
		{"bad index name", "PUT", "/Toy", nil, 400, "invalid_index_name_exception", "[Toy]"},
		{"unknown field type", "PUT", "/new", `{"mappings":{"properties":{"v":{"type":"nested"}}}}`, 400, "mapper_parsing_exception", "[nested]"},
		{"unknown analyzer in a mapping", "PUT", "/new", `{"mappings":{"properties":{"v":{"type":"text","analyzer":"x"}}}}`, 400, "mapper_parsing_exception", "[x]"},
		{"subfields", "PUT", "/new", `{"mappings":{"properties":{"v":{"type":"text","fields":{"w":{"type":"text"}}}}}}`, 400, "parsing_exception", "[fields]"},
		{"own analysis", "PUT", "/new", `{"settings":{"analysis":{}}}`, 400, "parsing_exception", "[analysis]"},
		{"two shards", "PUT", "/new", `{"settings":{"number_of_shards":2}}`, 400, "illegal_argument_exception", "shards"},
		{"a single document", "PUT", "/toy/_doc/9", `{}`, 400, "illegal_argument_exception", "does not serve it"},
		{"bulk that is not JSON", "POST", "/toy/_bulk", "{\"index\":{\"_id\":\"9\"}}\n{", 400, "json_parse_exception", ""},
		{"bulk in no index", "POST", "/nowhere/_bulk", "{\"index\":{\"_id\":\"9\"}}\n{}\n", 404, "index_not_found_exception", "[nowhere]"},
		{"unknown bulk action", "POST", "/toy/_bulk", "{\"update\":{\"_id\":\"1\"}}\n{}\n", 400, "illegal_argument_exception", "[update]"},
		{"bulk action without document", "POST", "/toy/_bulk", "{\"index\":{\"_id\":\"1\"}}\n", 400, "illegal_argument_exception", "no document"},
		{"unknown scroll", "POST", "/_search/scroll", `{"scroll_id":"x","scroll":"1m"}`, 404, "search_context_missing_exception", "[x]"},
		{"scroll without an end", "POST", "/toy/_search?scroll=forever", nil, 400, "illegal_argument_exception", "forever"},
		{"places in term vectors", "POST", "/toy/_termvectors", `{"doc":{"body":"car"},"term_statistics":true}`, 400, "illegal_argument_exception", "positions"},
		{"term vectors of texts", "POST", "/toy/_termvectors", `{"doc":{"body":"car"},"term_statistics":true,"positions":false,"offsets":false}`, 400, "illegal_argument_exception", "[keyword]"},
		{"term vectors of nothing", "POST", "/toy/_termvectors", `{"term_statistics":true,"positions":false,"offsets":false}`, 400, "illegal_argument_exception", "doc is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, answer := c.do(t, tt.method, tt.path, tt.body)
			kind, reason := at(answer, "error", "type"), fmt.Sprint(at(answer, "error", "reason"))
			if status != tt.status || kind != tt.kind || !strings.Contains(reason, tt.reason) {
				t.Errorf("status %d %v %q, want %d %s %q", status, kind, reason, tt.status, tt.kind, tt.reason)
			}
			if at(answer, "status") != float64(tt.status) || at(answer, "error", "root_cause", 0, "type") != tt.kind {
				t.Errorf("the error is not in the engines' shape: %v", answer)
			}
		})
	}
	check.Equal(t, 3.0, at(c.ok(t, "GET", "/toy/_count", nil), "count"))
}

func TestWeightsMultiplyScores(t *testing.T) {
	c := toy(t)
	car := scores(c.ok(t, "POST", "/toy/_search", `{"query":{"match":{"body":"car"}}}`))
	got := scores(c.ok(t, "POST", "/toy/_search",
		`{"query":{"function_score":{"query":{"match":{"body":"car"}},"functions":[{"filter":{"match":{"body":"hire"}},"weight":4}],"weight":2}}}`))
	check.That(t, len(got) == 2 && near(got["1"], 8*car["1"]) && near(got["2"], 2*car["2"]), "%v, without weights %v", got, car)
}

func TestBodyHasToSayThatItIsJSON(t *testing.T) {
	e := NewEngine()
	for contentType, want := range map[string]int{
		"application/json": 200, "application/json; charset=UTF-8": 200, "application/x-ndjson": 200,
		"": 406, "application/x-www-form-urlencoded": 406, "application/vnd.elasticsearch+json;compatible-with=8": 406,
	} {
		r := httptest.NewRequest(http.MethodPost, "/_search", strings.NewReader("{}"))
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		check.Equal(t, want, w.Code, contentType)
	}
}

func TestBulkReportsEachItem(t *testing.T) {
	c := newClient()
	c.load(t, "b", map[string]any{"tag": map[string]any{"type": "text"}})
	answer := c.ok(t, "POST", "/b/_bulk", `{"index":{"_id":"1"}}
{"tag":["x",null,3,true]}
{"index":{"_id":"1"}}
{"tag":"y"}

{"index":{"_id":"2"}}
{"tag":{"in":"y"}}
{"index":{"_id":"2"}}
{"other":"y"}
{"index":{"_id":"2"}}
[1]
{"index":{}}
{"tag":null}
`)
	var got []string
	items, _ := at(answer, "items").([]any)
	for _, item := range items {
		for action, v := range item.(map[string]any) {
			got = append(got, fmt.Sprint(action, " ", at(v, "status"), " ", at(v, "result"), " ", at(v, "error", "type")))
		}
	}
	want := []string{
		"index 201 created <nil>", "index 409 <nil> version_conflict_engine_exception", "index 400 <nil> mapper_parsing_exception",
		"index 400 <nil> strict_dynamic_mapping_exception", "index 400 <nil> mapper_parsing_exception", "index 201 created <nil>",
	}
	diff := cmp.Diff(want, got)
	check.That(t, diff == "" && at(answer, "errors") == true, "errors %v, items (-want +got):\n%s", at(answer, "errors"), diff)
	for value, want := range map[string]float64{"x": 1, "3": 1, "true": 1, "y": 0} {
		n := at(c.ok(t, "POST", "/b/_count", `{"query":{"term":{"tag":"`+value+`"}}}`), "count")
		check.That(t, n == want, "%v documents with %q, want %v", n, value, want)
	}
	check.Equal(t, 2.0, at(c.ok(t, "GET", "/b/_count", nil), "count"))
}

func TestIndexExpressions(t *testing.T) {
	c := newClient()
	for _, name := range []string{"logs-1", "logs-2", "other"} {
		c.load(t, name, map[string]any{"v": text()}, loaded{name, map[string]any{"v": "x"}})
	}
	for path, want := range map[string][]string{
		"/_search": {"logs-1", "logs-2", "other"}, "/_all/_search": {"logs-1", "logs-2", "other"}, "/*/_search": {"logs-1", "logs-2", "other"},
		"/logs-*/_search": {"logs-1", "logs-2"}, "/other,logs-1/_search": {"logs-1", "other"}, "/*-2,*r/_search": {"logs-2", "other"},
		"/none-*/_search": {}, "/other,none/_search?ignore_unavailable=true": {"other"},
	} {
		check.Equal(t, want, ids(c.ok(t, "GET", path, nil)), path)
	}
}

func TestSearchOptions(t *testing.T) {
	c := toy(t)
	match := `"query":{"match":{"body":"car park"}}`
	for _, tt := range []struct {
		name, path, body string
		want             map[string]any // by a path into the answer
	}{
		{"order is by score", "/toy/_search", `{` + match + `}`, map[string]any{"ids": "[2 1 3]", "total.value": 3.0, "total.relation": "eq"}},
		{"pages", "/toy/_search", `{` + match + `,"from":1,"size":1}`, map[string]any{"ids": "[1]", "total.value": 3.0}},
		{"past the end", "/toy/_search", `{` + match + `,"from":7}`, map[string]any{"ids": "[]", "total.value": 3.0}},
		{"no hits wanted", "/toy/_search?size=0", `{` + match + `}`, map[string]any{"ids": "[]", "total.value": 3.0, "max_score": nil}},
		{"no total", "/toy/_search?track_total_hits=false", `{` + match + `}`, map[string]any{"total": nil}},
		{"a counted total", "/toy/_search", `{` + match + `,"track_total_hits":2}`, map[string]any{"total.value": 2.0, "total.relation": "gte"}},
		{"index order", "/toy/_search", `{` + match + `,"sort":["_doc"]}`, map[string]any{"ids": "[1 2 3]", "max_score": nil, "hits.0._score": nil, "hits.1.sort.0": 1.0}},
		{"terminated early", "/toy/_search?terminate_after=2", `{` + match + `}`, map[string]any{"ids": "[2 1]"}},
		{"least score", "/toy/_search", `{` + match + `,"min_score":0.53}`, map[string]any{"ids": "[2 1]"}},
		{"ties stay in index order", "/toy/_search", `{}`, map[string]any{"ids": "[1 2 3]", "max_score": 1.0}},
		{
			"named queries", "/toy/_search", `{"query":{"bool":{"should":[{"match":{"body":{"query":"car","_name":"b"}}},{"term":{"body":{"value":"park","_name":"a"}}}]}}}`,
			map[string]any{"ids": "[2 1 3]", "hits.0.matched_queries.0": "a", "hits.0.matched_queries.1": "b"},
		},
		{"no names", "/toy/_search", `{` + match + `}`, map[string]any{"hits.0.matched_queries": nil}},
		{"no source", "/toy/_search", `{"_source":false}`, map[string]any{"hits.0._source": nil}},
		{"some source", "/toy/_search", `{"_source":["t*"]}`, map[string]any{"hits.0._source.title": "one", "hits.0._source.body": nil}},
		{"a word in any field", "/toy/_search?q=one", ``, map[string]any{"ids": "[1]"}},
		{"all words", "/toy/_search", `{"query":{"query_string":{"query":"car park","default_operator":"AND","default_field":"body"}}}`, map[string]any{"ids": "[2]"}},
		{"q overrides the body", "/toy/_search?q=hire", `{` + match + `}`, map[string]any{"ids": "[1]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := c.ok(t, "POST", tt.path, tt.body)
			for path, want := range tt.want {
				if path == "ids" {
					check.Equal(t, want, any(fmt.Sprint(ids(answer))))
					continue
				}
				steps := []any{"hits"}
				for part := range strings.SplitSeq(path, ".") {
					if part >= "0" && part <= "9" {
						steps = append(steps, int(part[0]-'0'))
					} else {
						steps = append(steps, part)
					}
				}
				got := at(answer, steps...)
				check.That(t, got == want, "%s is %v, want %v", path, got, want)
			}
		})
	}
}

func TestScrollReadsEveryDocumentAsItWas(t *testing.T) {
	synctest.Test(t, scrollDocuments)
}

func scrollDocuments(t *testing.T) {
	t.Helper()
	c := newClient()
	var docs []loaded
	for i := range 7 {
		docs = append(docs, loaded{strconv.Itoa(i), map[string]any{"v": "old"}})
	}
	c.load(t, "s", map[string]any{"v": text()}, docs...)
	answer := c.ok(t, "POST", "/s/_search?scroll=1m", `{"size":3,"sort":["_doc"]}`)
	got := ids(answer)
	c.ok(t, "POST", "/s/_bulk", "{\"index\":{}}\n{\"v\":\"new\"}\n")
	id := at(answer, "_scroll_id")
	for range 3 {
		answer = c.ok(t, "POST", "/_search/scroll", map[string]any{"scroll": "1m", "scroll_id": id})
		got = append(got, ids(answer)...)
	}
	check.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, got)
	check.Elapse(2 * time.Minute)
	status, _ := c.do(t, "POST", "/_search/scroll", map[string]any{"scroll_id": id})
	check.That(t, status == http.StatusNotFound, "an expired scroll answers with status %d, want 404", status)
	second := at(c.ok(t, "POST", "/s/_search?scroll=1m", nil), "_scroll_id")
	freed := c.ok(t, "DELETE", "/_search/scroll", map[string]any{"scroll_id": []any{second}})
	check.Equal(t, 1.0, at(freed, "num_freed"), freed)
	status, _ = c.do(t, "DELETE", "/_search/scroll", map[string]any{"scroll_id": second})
	check.That(t, status == http.StatusNotFound, "freeing twice: status %d, want 404", status)
}

func TestOpenScrollsAreBounded(t *testing.T) {
	c := toy(t)
	for range maxScrolls {
		c.ok(t, "POST", "/toy/_search?scroll=1m&size=1", nil)
	}
	status, _ := c.do(t, "POST", "/toy/_search?scroll=1m&size=1", nil)
	check.That(t, status == http.StatusTooManyRequests, "status %d, want 429", status)
}

func TestEngineDescribesItsIndices(t *testing.T) {
	c := toy(t)
	answer := c.ok(t, "GET", "/toy", nil)
	if at(answer, "toy", "settings", "index", "number_of_shards") != "1" ||
		at(answer, "toy", "mappings", "properties", "body", "type") != "text" || at(answer, "toy", "aliases") == nil {
		t.Errorf("GET /toy: %v", answer)
	}
	check.Equal(t, "1", at(c.ok(t, "GET", "/toy?flat_settings=true", nil), "toy", "settings", "index.number_of_shards"))
	v, _ := at(c.ok(t, "GET", "/", nil), "version", "number").(string)
	check.That(t, strings.HasPrefix(v, "8."), "version %q", v)
	for index, want := range map[string]int{"toy": 200, "elsewhere": 404} {
		status, _ := c.do(t, "HEAD", "/"+index, nil)
		check.That(t, status == want, "HEAD /%s: status %d, want %d", index, status, want)
	}
}

func TestTermVectorsOfDocumentsAreThoseOfTheirTexts(t *testing.T) {
	c := toy(t)
	const without = "?positions=false&offsets=false&payloads=false&term_statistics=false&field_statistics=false"
	answer := c.ok(t, "POST", "/_mtermvectors"+without,
		`{"docs":[{"_index":"toy","_id":"1","fields":["body"]},{"_index":"toy","_id":"nobody","fields":["body"]}]}`)
	check.Equal(t, 2., at(answer, "docs", 0, "term_vectors", "body", "terms", "car", "term_freq"))
	got := at(answer, "docs", 0, "term_vectors", "title")
	check.That(t, got == nil, "a field that was not asked for: %v", got)
	check.Equal(t, false, at(answer, "docs", 1, "found"))
	got = at(answer, "docs", 0, "term_vectors", "body", "terms", "car", "tokens")
	check.That(t, got == nil, "positions that were not asked for: %v", got)
	answer = c.ok(t, "POST", "/_mtermvectors"+strings.Replace(without, "positions=false", "positions=true", 1),
		`{"docs":[{"_index":"toy","_id":"1","fields":["body"]}]}`)
	want := any([]any{map[string]any{"position": 0.}, map[string]any{"position": 2.}})
	check.Equal(t, want, at(answer, "docs", 0, "term_vectors", "body", "terms", "car", "tokens"))
}

func TestHitsAreNamedByNumbers(t *testing.T) {
	c := toy(t)
	names := `{"query":{"match":{"body":"car"}},"_source":false,"stored_fields":"_none_","docvalue_fields":["_seq_no"]}`
	answer := c.ok(t, "POST", "/toy/_search", names)
	number := best(answer, "fields", "_seq_no", 0)
	id := best(answer, "_id")
	check.Must(t, id == nil && number != nil, "named by the id %v and the number %v", id, number)
	want := best(c.ok(t, "POST", "/toy/_search", `{"query":{"match":{"body":"car"}}}`), "_id")
	page := fmt.Sprintf(`{"query":{"bool":{"filter":[{"terms":{"_seq_no":[%v]}},{"term":{"_index":"toy"}}]}}}`, number)
	got := at(c.ok(t, "POST", "/toy/_search", page), "hits", "hits")
	check.That(t, len(got.([]any)) == 1 && at(got, 0, "_id") == want, "number %v is of %v, want %v", number, got, want)
	vectors := c.ok(t, "POST", "/_mtermvectors?positions=false&offsets=false&payloads=false&term_statistics=false&field_statistics=true",
		`{"docs":[{"_index":"toy","_id":"1","fields":["body"]}]}`)
	n := at(vectors, "docs", 0, "term_vectors", "body", "field_statistics", "sum_ttf")
	check.That(t, n != nil, "no statistics of the field")
}
