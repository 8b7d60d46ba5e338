package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRefusalsNameTheCause(t *testing.T) {
	c := toy(t)
	nested := strings.Repeat(`{"bool":{"must":`, 40) + `{"match_all":{}}` + strings.Repeat("}}", 40)
	var clauses strings.Builder
	for i := range 1025 {
		fmt.Fprintf(&clauses, `{"term":{"body":"t%d"}},`, i)
	}
	tooMany := `{"query":{"bool":{"should":[` + strings.TrimSuffix(clauses.String(), ",") + `]}}}`
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
		{"too deep", "POST", "/toy/_search", search(nested), 400, "illegal_argument_exception", "deeper"},
		{"too many clauses", "POST", "/toy/_search", tooMany, 400, "too_many_clauses", "1024"},
		{"window too large", "POST", "/toy/_search", `{"from":9995,"size":10}`, 400, "illegal_argument_exception", "10005"},
		{"sort by a field", "POST", "/toy/_search", `{"sort":["title"]}`, 400, "illegal_argument_exception", "title"},
		{"body too large", "POST", "/toy/_search", `{"size":1}` + strings.Repeat(" ", maxBody), 413, "content_too_long_exception", ""},
		{"foreign script", "POST", "/toy/_search", script("return 1", "{}"), 400, "script_exception", "compile error"},
		{"script without params", "POST", "/toy/_search", script(ScriptSaturate, "{}"), 400, "script_exception", "params.m"},
		{"probe with a negative factor", "POST", "/toy/_search", script(ScriptProbe, `{"a":-1}`), 400, "script_exception", "params.a"},
		{"script that could be infinite", "POST", "/toy/_search", script(ScriptInvert, `{"m":1,"b":1,"c":1}`), 400, "script_exception", "params.c"},
		{"unknown index", "GET", "/nowhere/_search", nil, 404, "index_not_found_exception", "no such index [nowhere]"},
		{"one unknown index of two", "GET", "/toy,nowhere/_count", nil, 404, "index_not_found_exception", "[nowhere]"},
		{"unknown analyzer", "POST", "/toy/_analyze", `{"analyzer":"french","text":"x"}`, 400, "illegal_argument_exception", "[french]"},
		{
			"too many tokens", "POST", "/toy/_analyze", `{"analyzer":"standard","text":"` + strings.Repeat("a ", maxAnalyzedTokens+1) + `"}`, 400, "illegal_state_exception",
			"exceeded the allowed maximum of [10000]. This limit can be set by changing the [index.analyze.max_token_count] index level setting.",
		},
		{"no text to analyze", "POST", "/toy/_analyze", `{}`, 400, "action_request_validation_exception", "text is missing"},
		{"index exists", "PUT", "/toy", nil, 400, "resource_already_exists_exception", "[toy]"},
		{"bad index name", "PUT", "/Toy", nil, 400, "invalid_index_name_exception", "[Toy]"},
		{"unknown field type", "PUT", "/new", `{"mappings":{"properties":{"v":{"type":"nested"}}}}`, 400, "mapper_parsing_exception", "[nested]"},
		{"unknown analyzer in a mapping", "PUT", "/new", `{"mappings":{"properties":{"v":{"type":"text","analyzer":"x"}}}}`, 400, "mapper_parsing_exception", "[x]"},
		{"own analysis", "PUT", "/new", `{"settings":{"analysis":{}}}`, 400, "illegal_argument_exception", "[analysis]"},
		{"two shards", "PUT", "/new", `{"settings":{"index":{"number_of_shards":2}}}`, 400, "illegal_argument_exception", "shards"},
		{"changed field type", "PUT", "/toy/_mapping", `{"properties":{"body":{"type":"keyword"}}}`, 400, "illegal_argument_exception", "cannot be changed"},
		{"document of the wrong type", "PUT", "/toy/_doc/9", `[1]`, 400, "mapper_parsing_exception", "JSON object"},
		{"bulk without a last newline", "POST", "/_bulk", `{"delete":{"_index":"toy","_id":"1"}}`, 400, "illegal_argument_exception", "newline"},
		{"bulk without index", "POST", "/_bulk", "{\"delete\":{\"_id\":\"1\"}}\n", 400, "action_request_validation_exception", "index is missing"},
		{"unknown bulk action", "POST", "/toy/_bulk", "{\"update\":{\"_id\":\"1\"}}\n{}\n", 400, "illegal_argument_exception", "[update]"},
		{"bulk action without document", "POST", "/toy/_bulk", "{\"index\":{\"_id\":\"1\"}}\n", 400, "illegal_argument_exception", "no document"},
		{"unknown scroll", "POST", "/_search/scroll", `{"scroll_id":"x","scroll":"1m"}`, 404, "search_context_missing_exception", "[x]"},
		{"scroll without an end", "POST", "/toy/_search?scroll=forever", nil, 400, "illegal_argument_exception", "forever"},
		{"term vectors of nothing", "POST", "/toy/_termvectors", `{}`, 400, "action_request_validation_exception", "doc is missing"},
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
	if n := at(c.ok(t, "GET", "/toy/_count", nil), "count"); n != 3.0 {
		t.Errorf("%v documents are left, want 3: a refused request wrote something", n)
	}
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
		if w.Code != want {
			t.Errorf("%q: status %d, want %d", contentType, w.Code, want)
		}
	}
}

func TestDocumentLife(t *testing.T) {
	c := newClient(t)
	steps := []struct {
		method, path string
		body         any
		status       int
		result       any
		version      any
	}{
		{"PUT", "/life/_doc/a", `{"v": "one car"}`, 201, "created", 1.0},
		{"PUT", "/life/_doc/a", `{"v": "two cars"}`, 200, "updated", 2.0},
		{"PUT", "/life/_create/a", `{"v": "three"}`, 409, nil, nil},
		{"GET", "/life/_doc/a", nil, 200, nil, 2.0},
		{"DELETE", "/life/_doc/a", nil, 200, "deleted", 3.0},
		{"DELETE", "/life/_doc/a", nil, 404, "not_found", 1.0},
		{"GET", "/life/_doc/a", nil, 404, nil, nil},
		{"POST", "/life/_doc", `{"v": "three"}`, 201, "created", 1.0},
		{"DELETE", "/elsewhere/_doc/a", nil, 404, nil, nil},
		{"HEAD", "/life", nil, 200, nil, nil},
		{"HEAD", "/elsewhere", nil, 404, nil, nil},
		{"DELETE", "/life", nil, 200, nil, nil},
		{"HEAD", "/life", nil, 404, nil, nil},
	}
	for _, s := range steps {
		status, answer := c.do(t, s.method, s.path, s.body)
		if status != s.status || at(answer, "result") != s.result || at(answer, "_version") != s.version {
			t.Errorf("%s %s: %d %v, want %d %v %v", s.method, s.path, status, answer, s.status, s.result, s.version)
		}
	}
}

// A field's statistics have to be those of an index that never held the
// documents that were replaced and deleted.
func TestDeletedDocumentsLeaveNoTrace(t *testing.T) {
	properties := map[string]any{"body": text(), "tag": map[string]any{"type": "keyword"}, "n": map[string]any{"type": "long"}}
	doc := func(words, tag string, n int) map[string]any {
		return map[string]any{"body": words, "tag": tag, "n": n}
	}
	clean, used := newClient(t), newClient(t)
	clean.load(t, "x", properties, loaded{"1", doc("a red car", "t", 1)}, loaded{"2", doc("blue cars and red boats", "u", 2)})
	used.load(t, "x", properties, loaded{"3", doc("red only red here", "only", 3)}, loaded{"1", doc("old red car", "t", 9)})
	used.ok(t, "PUT", "/x/_doc/1", doc("a red car", "t", 1))
	used.ok(t, "PUT", "/x/_doc/2", doc("blue cars and red boats", "u", 2))
	used.ok(t, "DELETE", "/x/_doc/3", nil)
	requests := map[string]any{
		"/x/_termvectors": map[string]any{
			"doc": map[string]any{"body": "red car only boat", "tag": "only"}, "term_statistics": true, "field_statistics": true,
		},
		"/x/_search?_source=false": map[string]any{"query": map[string]any{"match": map[string]any{"body": "red car"}}},
		"/x/_count":                map[string]any{"query": map[string]any{"terms": map[string]any{"tag": []string{"only", "t"}}}},
		"/x/_search":               map[string]any{"query": map[string]any{"range": map[string]any{"n": map[string]any{"gte": 2}}}},
	}
	for path, body := range requests {
		want, got := clean.ok(t, "POST", path, body), used.ok(t, "POST", path, body)
		for _, answer := range []any{want, got} {
			delete(answer.(map[string]any), "took")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-never +deleted):\n%s", path, diff)
		}
	}
}

func TestBulkReportsEachItem(t *testing.T) {
	c := newClient(t)
	c.load(t, "b", map[string]any{"n": map[string]any{"type": "long"}})
	answer := c.ok(t, "POST", "/_bulk", `{"index":{"_index":"b","_id":"1"}}
{"n":1}
{"create":{"_index":"b","_id":"1"}}
{"n":2}

{"index":{"_index":"b","_id":"2"}}
{"n":"abc"}
{"delete":{"_index":"b","_id":"9"}}
{"index":{"_index":"made"}}
{"word":"new"}
`)
	var got []string
	items, _ := at(answer, "items").([]any)
	for _, item := range items {
		for action, v := range item.(map[string]any) {
			got = append(got, fmt.Sprint(action, " ", at(v, "status"), " ", at(v, "result"), " ", at(v, "error", "type")))
		}
	}
	want := []string{
		"index 201 created <nil>", "create 409 <nil> version_conflict_engine_exception",
		"index 400 <nil> mapper_parsing_exception", "delete 404 not_found <nil>", "index 201 created <nil>",
	}
	if diff := cmp.Diff(want, got); diff != "" || at(answer, "errors") != true {
		t.Errorf("errors %v, items (-want +got):\n%s", at(answer, "errors"), diff)
	}
	if n := at(c.ok(t, "GET", "/made/_count", nil), "count"); n != 1.0 {
		t.Errorf("made holds %v documents, want 1", n)
	}
}

func TestUnmappedFieldsAreMappedByTheirFirstValue(t *testing.T) {
	c := newClient(t)
	c.ok(t, "PUT", "/d/_doc/1", `{"name":"Red Car","n":3,"f":1.5,"yes":true,"none":null,"in":{"side":["a b","c"]},"dotted.path":"x"}`)
	textWithKeyword := map[string]any{"type": "text", "fields": map[string]any{"keyword": map[string]any{"type": "keyword", "ignore_above": 256.0}}}
	object := func(name string) any { return map[string]any{"properties": map[string]any{name: textWithKeyword}} }
	want := map[string]any{"d": map[string]any{"mappings": map[string]any{"properties": map[string]any{
		"name": textWithKeyword, "n": map[string]any{"type": "long"}, "f": map[string]any{"type": "float"},
		"yes": map[string]any{"type": "boolean"}, "in": object("side"), "dotted": object("path"),
	}}}}
	if diff := cmp.Diff(want, c.ok(t, "GET", "/d/_mapping", nil)); diff != "" {
		t.Errorf("mapping (-want +got):\n%s", diff)
	}
	for query, found := range map[string]float64{
		`{"match":{"name":"CAR"}}`: 1, `{"term":{"name.keyword":"Red Car"}}`: 1, `{"term":{"name.keyword":"red car"}}`: 0,
		`{"match":{"in.side":"b"}}`: 1, `{"exists":{"field":"in"}}`: 1, `{"exists":{"field":"none"}}`: 0,
		`{"term":{"yes":true}}`: 1, `{"term":{"yes":false}}`: 0, `{"range":{"f":{"gt":1.5}}}`: 0, `{"range":{"f":{"gte":1.5,"lt":2}}}`: 1,
	} {
		if got := at(c.ok(t, "POST", "/d/_count", `{"query":`+query+`}`), "count"); got != found {
			t.Errorf("%s finds %v, want %v", query, got, found)
		}
	}
}

func TestIndexExpressions(t *testing.T) {
	c := newClient(t)
	for _, name := range []string{"logs-1", "logs-2", "other"} {
		c.ok(t, "PUT", "/"+name+"/_doc/"+name, `{"v":"x"}`)
	}
	for path, want := range map[string][]string{
		"/_search": {"logs-1", "logs-2", "other"}, "/_all/_search": {"logs-1", "logs-2", "other"}, "/*/_search": {"logs-1", "logs-2", "other"},
		"/logs-*/_search": {"logs-1", "logs-2"}, "/other,logs-1/_search": {"logs-1", "other"}, "/*-2,*r/_search": {"logs-2", "other"},
		"/none-*/_search": {}, "/other,none/_search?ignore_unavailable=true": {"other"},
	} {
		if diff := cmp.Diff(want, ids(c.ok(t, "GET", path, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
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
		{"past the end", "/toy/_search?from=7", `{` + match + `}`, map[string]any{"ids": "[]", "total.value": 3.0}},
		{"no hits wanted", "/toy/_search?size=0", `{` + match + `}`, map[string]any{"ids": "[]", "total.value": 3.0, "max_score": nil}},
		{"no total", "/toy/_search?track_total_hits=false", `{` + match + `}`, map[string]any{"total": nil}},
		{"a counted total", "/toy/_search", `{` + match + `,"track_total_hits":2}`, map[string]any{"total.value": 2.0, "total.relation": "gte"}},
		{"index order", "/toy/_search", `{` + match + `,"sort":["_doc"]}`, map[string]any{"ids": "[1 2 3]", "max_score": nil, "hits.0._score": nil, "hits.1.sort.0": 1.0}},
		{"score order", "/toy/_search?sort=_score:desc", `{` + match + `}`, map[string]any{"ids": "[2 1 3]"}},
		{"terminated early", "/toy/_search?terminate_after=2", `{` + match + `}`, map[string]any{"ids": "[2 1]"}},
		{"least score", "/toy/_search", `{` + match + `,"min_score":0.53}`, map[string]any{"ids": "[2 1]"}},
		{"ties stay in index order", "/toy/_search", `{}`, map[string]any{"ids": "[1 2 3]", "max_score": 1.0}},
		{"no source", "/toy/_search?_source=false", `{}`, map[string]any{"hits.0._source": nil}},
		{"some source", "/toy/_search", `{"_source":["t*"]}`, map[string]any{"hits.0._source.title": "one", "hits.0._source.body": nil}},
		{"source but for", "/toy/_search?_source_excludes=title", `{}`, map[string]any{"hits.0._source.title": nil, "hits.1._source.body": "car park"}},
		{"a word by parameter", "/toy/_search?q=hire&df=body", ``, map[string]any{"ids": "[1]"}},
		{"a word in any field", "/toy/_search?q=one", ``, map[string]any{"ids": "[1]"}},
		{"all words by parameter", "/toy/_search?q=car+park&default_operator=AND&df=body", ``, map[string]any{"ids": "[2]"}},
		{"q overrides the body", "/toy/_search?q=hire", `{` + match + `}`, map[string]any{"ids": "[1]"}},
		{"a body by parameter", "/toy/_search?source_content_type=application/json&source=%7B%22size%22:1%7D", ``, map[string]any{"ids": "[1]"}},
		{"highlights", "/toy/_search", `{"query":{"match":{"body":"hire"}},"highlight":{"fields":{"b*":{}},"pre_tags":["<"],"post_tags":[">"]}}`, map[string]any{"hits.0.highlight.body.0": "car <hire> car now"}},
		{"highlights of another query", "/toy/_search", `{"query":{"match":{"body":"hire"}},"highlight":{"fields":{"body":{"highlight_query":{"match":{"body":"now"}}}}}}`, map[string]any{"hits.0.highlight.body.0": "car hire car <em>now</em>"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := c.ok(t, "POST", tt.path, tt.body)
			for path, want := range tt.want {
				if path == "ids" {
					if got := fmt.Sprint(ids(answer)); got != want {
						t.Errorf("found %s, want %s", got, want)
					}
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
				if got := at(answer, steps...); got != want {
					t.Errorf("%s is %v, want %v", path, got, want)
				}
			}
		})
	}
}

func TestScrollReadsEveryDocumentAsItWas(t *testing.T) {
	e := NewEngine()
	now := time.Unix(1000, 0)
	e.now = func() time.Time { return now }
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	c := &client{server.URL, server.Client()}
	for i := range 7 {
		c.ok(t, "PUT", fmt.Sprintf("/s/_doc/%d", i), `{"v":"old"}`)
	}
	answer := c.ok(t, "POST", "/s/_search?scroll=1m", `{"size":3,"sort":["_doc"]}`)
	got := ids(answer)
	for i := range 7 {
		c.ok(t, "PUT", fmt.Sprintf("/s/_doc/%d", i), `{"v":"new"}`)
	}
	id := at(answer, "_scroll_id")
	for range 3 {
		answer = c.ok(t, "POST", "/_search/scroll", map[string]any{"scroll": "1m", "scroll_id": id})
		got = append(got, ids(answer)...)
		if v := at(answer, "hits", "hits", 0, "_source", "v"); v != nil && v != "old" {
			t.Errorf("a later page shows %v", v)
		}
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6"}, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	now = now.Add(2 * time.Minute)
	if status, _ := c.do(t, "POST", "/_search/scroll", map[string]any{"scroll_id": id}); status != http.StatusNotFound {
		t.Errorf("an expired scroll answers with status %d, want 404", status)
	}
	second := at(c.ok(t, "POST", "/s/_search?scroll=1m", nil), "_scroll_id")
	freed := c.ok(t, "DELETE", "/_search/scroll", map[string]any{"scroll_id": []any{second}})
	if at(freed, "num_freed") != 1.0 {
		t.Errorf("freed %v", freed)
	}
	if status, _ := c.do(t, "DELETE", "/_search/scroll", map[string]any{"scroll_id": second}); status != http.StatusNotFound {
		t.Errorf("freeing twice: status %d, want 404", status)
	}
}

func TestOpenScrollsAreBounded(t *testing.T) {
	c := toy(t)
	for range maxScrolls {
		c.ok(t, "POST", "/toy/_search?scroll=1m&size=1", nil)
	}
	if status, _ := c.do(t, "POST", "/toy/_search?scroll=1m&size=1", nil); status != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429", status)
	}
}

func TestEngineDescribesItsIndices(t *testing.T) {
	c := toy(t)
	answer := c.ok(t, "GET", "/toy", nil)
	if at(answer, "toy", "settings", "index", "number_of_shards") != "1" || at(answer, "toy", "settings", "index", "number_of_replicas") != "0" ||
		at(answer, "toy", "mappings", "properties", "body", "type") != "text" || at(answer, "toy", "aliases") == nil {
		t.Errorf("GET /toy: %v", answer)
	}
	if n := at(c.ok(t, "GET", "/toy?flat_settings=true", nil), "toy", "settings", "index.number_of_shards"); n != "1" {
		t.Errorf("flat settings name %v shards", n)
	}
	if v, _ := at(c.ok(t, "GET", "/", nil), "version", "number").(string); !strings.HasPrefix(v, "8.") {
		t.Errorf("version %q", v)
	}
	if at(c.ok(t, "POST", "/toy/_refresh", nil), "_shards", "successful") != 1.0 {
		t.Error("_refresh reaches no shard")
	}
	c.ok(t, "PUT", "/toy/_mapping", `{"properties":{"extra":{"type":"keyword"}}}`)
	if at(c.ok(t, "GET", "/toy/_mapping", nil), "toy", "mappings", "properties", "extra", "type") != "keyword" {
		t.Error("the field added is not mapped")
	}
}

// A search sees a bulk request completely or not at all.
func TestSearchesDuringWritesSeeWholeBulks(t *testing.T) {
	c := newClient(t)
	c.load(t, "w", map[string]any{"v": text()})
	const pairs = 40
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range pairs {
			c.ok(t, "POST", "/w/_bulk", fmt.Sprintf("{\"index\":{\"_id\":\"a%d\"}}\n{\"v\":\"car\"}\n{\"index\":{\"_id\":\"b%d\"}}\n{\"v\":\"car\"}\n", i, i))
		}
	})
	for range 3 {
		wg.Go(func() {
			for range pairs {
				n, _ := at(c.ok(t, "POST", "/w/_search", `{"query":{"match":{"v":"car"}},"size":100}`), "hits", "total", "value").(float64)
				if int(n)%2 != 0 {
					t.Errorf("a search saw %v documents, half a bulk", n)
				}
			}
		})
	}
	wg.Wait()
	if n := at(c.ok(t, "GET", "/w/_count", nil), "count"); n != 2.0*pairs {
		t.Errorf("%v documents, want %d", n, 2*pairs)
	}
}

func TestFieldCannotBeValueAndObject(t *testing.T) {
	c := newClient(t)
	c.ok(t, "PUT", "/o/_doc/1", `{"a":{"b":1},"v":1}`)
	for _, source := range []string{`{"a":2}`, `{"v":{"x":1}}`, `{"n":1,"n.x":2}`} {
		status, answer := c.do(t, "PUT", "/o/_doc/2", source)
		if status != http.StatusBadRequest || at(answer, "error", "type") != "mapper_parsing_exception" {
			t.Errorf("%s: status %d, %v", source, status, answer)
		}
	}
	if got := at(c.ok(t, "GET", "/o/_mapping", nil), "o", "mappings", "properties", "n"); got != nil {
		t.Errorf("a refused document left the field n: %v", got)
	}
}
