package proxy

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/expand"
)

func TestShowsShards(t *testing.T) {
	for filter, want := range map[string]bool{
		"": true, ",": true, "-took": true, "-hits.hits._source,-took": true,
		"_shards": true, "hits, _shards.failed": true, "_shards.failures,hits": true, "_shards.*": true, "*": true, "**": true, "_shards.**": true,
		"hits": false, "hits.hits._id,took": false, "_shards.total": false, "_shards.f*": false, "shards": false, "_sh*": false,
		"-_shards": false, "-_shards.failures": false, "-*": false, "-**._id": false, "-_s*": false, "_shards,-**.reason": false, "hits,-took": false,
		"_shards,-took": true,
	} {
		if got := showsShards(filter); got != want {
			t.Errorf("showsShards(%q) = %v", filter, got)
		}
	}
}

// The types are those that OpenSearch 2.19, Elasticsearch 7.10 and 8.19 answer
// in that way, but for some that are JSON and not taken for certain.
func TestAnswersJSON(t *testing.T) {
	for _, tt := range []struct {
		query  string
		accept []string
		want   bool
	}{
		{"", nil, true},
		{"q=format", []string{"*/*"}, true},
		{"", []string{"application/json"}, true},
		{"", []string{"Application/JSON; charset=utf-8"}, true},
		{"", []string{"application/vnd.elasticsearch+json; compatible-with=8"}, true},
		{"", []string{"application/json, text/plain, */*"}, true},
		{"", []string{"application/*;q=0.5"}, true},
		{"", []string{"application/yaml"}, false},
		{"", []string{"application/vnd.elasticsearch+cbor;compatible-with=8"}, false},
		{"", []string{"application/smile, application/json"}, false},
		{"", []string{"application/json", "application/yaml"}, false},
		{"", []string{""}, false},
		{"format=json", nil, true},
		{"pretty&format=JSON", nil, true},
		{"format=yaml", []string{"application/json"}, false},
		{"format=cbor;pretty", nil, false},
		{"f%6Frmat=smile", nil, false},
		{"format=yaml&format=json", nil, true},
		{"format=json&format=yaml", nil, false},
		{"format=xyz", nil, false},
	} {
		if got := answersJSON(tt.query, http.Header{"Accept": tt.accept}); got != tt.want {
			t.Errorf("answersJSON(%q, %q) = %v", tt.query, tt.accept, got)
		}
	}
}

func TestAskForGzip(t *testing.T) {
	for _, tt := range []struct{ sent, want []string }{
		{nil, nil},
		{[]string{"gzip"}, []string{"gzip"}},
		{[]string{"gzip;q=0.5, identity"}, []string{"gzip;q=0.5, identity"}},
		{[]string{"identity"}, []string{"identity"}},
		{[]string{""}, []string{""}},
		{[]string{"gzip, deflate, br"}, []string{"gzip"}},
		{[]string{"deflate, GZIP;q=0.1"}, []string{"gzip"}},
		{[]string{"br", "x-gzip"}, []string{"gzip"}},
		{[]string{"*"}, []string{"gzip"}},
		{[]string{"*;q=0"}, nil},
		{[]string{"deflate"}, nil},
		{[]string{"zstd, identity"}, nil},
		{[]string{"deflate, gzip; Q=0.000"}, nil},
		{[]string{"deflate, gzip;q=x"}, []string{"gzip"}},
	} {
		h := http.Header{"X": {"y"}}
		if tt.sent != nil {
			h["Accept-Encoding"] = tt.sent
		}
		if askForGzip(h); !slices.Equal(h["Accept-Encoding"], tt.want) || h.Get("X") != "y" {
			t.Errorf("%q becomes %q, want %q", tt.sent, h["Accept-Encoding"], tt.want)
		}
	}
}

// A search whose answer would not show that shards failed is sent such that the
// cluster refuses it then; the original is sent as it came.
func TestSearchWhoseFailuresAreHiddenIsStrict(t *testing.T) {
	const strict = "allow_partial_search_results=false"
	for _, tt := range []struct {
		name, target, header, sent string
	}{
		{"shown", "/a/_search?pretty", "", "/a/_search?pretty"},
		{"shown by the filter", "/_search?filter_path=_shards,hits", "", "/_search?filter_path=_shards,hits"},
		{"filtered", "/_search?filter_path=hits", "", "/_search?filter_path=hits&" + strict},
		{"a format", "/_search?format=yaml", "", "/_search?format=yaml&" + strict},
		{"a type", "/a/_search", "Accept: application/cbor\n", "/a/_search?" + strict},
		{"JSON", "/a/_search", "Accept: application/json\n", "/a/_search"},
		{"the client allows it", "/_search?allow_partial_search_results=true&filter_path=hits", "", "/_search?allow_partial_search_results=true&filter_path=hits"},
		{"the client does not", "/_search?filter_path=hits;allow%5Fpartial_search_results=false", "", "/_search?filter_path=hits;allow%5Fpartial_search_results=false"},
		{"a count", "/_count?filter_path=count&format=yaml", "", "/_count?filter_path=count&format=yaml"},
		{"an explanation", "/a/_explain/1?filter_path=matched", "Accept: application/yaml\n", "/a/_explain/1?filter_path=matched"},
		{"several", "/_msearch?filter_path=responses.hits", "", "/_msearch?filter_path=responses.hits&filter_path=responses.hits%2Cresponses.error.type%2Cresponses._shards.failures.reason.type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := startRawNode(t, func(n int, _ rawRequest) string {
				if n == 1 {
					return answer(400, jsonType, `{"error":{"reason":"Partial shards failure"}}`)
				}
				return answer(200, jsonType, searchAnswer(wholeShards))
			})
			addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}, Expander: expander(rewriteFirstAndLast)})
			got := exchangeRaw(t, addr, searchOf(tt.target, jsonType+tt.header, lines))
			if !strings.HasSuffix(got, "\r\n\r\n"+searchAnswer(wholeShards)) {
				t.Errorf("the client got %q", got)
			}
			sent := node.all()
			if len(sent) != 2 || sent[0].line != "POST "+tt.sent+" HTTP/1.1" || sent[0].body != rewrittenLines || sent[1].line != "POST "+tt.target+" HTTP/1.1" || sent[1].body != lines {
				t.Errorf("the node got %q", sent)
			}
			if n := counter(t, registry, "akin_refused_searches_total", "original", "taken"); n != 1 {
				t.Errorf("%v refusals are counted", n)
			}
		})
	}
}

// Where the cluster refuses what fails, a good answer needs no look.
func TestAnswerToAStrictSearchIsNotCountedAsUnchecked(t *testing.T) {
	const yaml = "---\nhits: {}\n"
	node := startRawNode(t, func(int, rawRequest) string { return answer(200, "Content-Type: application/yaml\n", yaml) })
	addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}, Expander: expander(rewriteFirstAndLast)})
	if got := exchangeRaw(t, addr, searchOf("/_search?format=yaml", jsonType, lines)); !strings.HasSuffix(got, yaml) || len(node.all()) != 1 {
		t.Errorf("the client got %q after %d requests", got, len(node.all()))
	}
	if n := counter(t, registry, "akin_unchecked_answers_total"); n != 0 {
		t.Errorf("counted %v times", n)
	}
}

// Searches whose failures stand inside of answers, and could not be read there,
// go out as they came.
func TestSearchWhoseAnswerCannotBeReadIsLeftAlone(t *testing.T) {
	const yaml = "Accept: application/yaml\n"
	for _, tt := range []struct{ target, header, reason string }{
		{"/_msearch?format=yaml", "", reasonFormat},
		{"/a/_msearch", yaml, reasonFormat},
		{"/_rank_eval", yaml, reasonFormat},
		{"/_validate/query?format=cbor", "", reasonFormat},
		{"/_validate/query?filter_path=valid", "", reasonFilterPath},
		{"/_async_search", yaml, reasonFormat},
		{"/a/_async_search?filter_path=response.hits", "", reasonFilterPath},
		{"/_msearch", "Accept: application/json\n", ""},
		{"/_async_search", "Accept: */*\n", ""},
		{"/_rank_eval?format=json", "", ""},
	} {
		node := startRawNode(t, nil)
		addr, registry := startProxy(t, Options{Upstreams: []string{node.URL}, RankEval: true, Expander: expander(rewriteFirstAndLast)})
		exchangeRaw(t, addr, searchOf(tt.target, jsonType+tt.header, lines))
		got := node.only(t)
		if got.line != "POST "+tt.target+" HTTP/1.1" || (got.body == lines) != (tt.reason != "") {
			t.Errorf("%s: the node got %q", tt.target, got)
		}
		if n := counter(t, registry, "akin_requests_total", "outcome", outcomeUnchanged, "reason", tt.reason); (n == 1) != (tt.reason != "") {
			t.Errorf("%s: counted %v times under %q", tt.target, n, tt.reason)
		}
	}
}

// Rewritten searches ask for answers that can be looked at; the original asks
// as the client did.
func TestRewrittenSearchesAskForGzip(t *testing.T) {
	const sent = "Accept-Encoding: deflate, gzip;q=0.5\n"
	for target, cut := range map[string]bool{"/_search": true, "/_count": true, "/_msearch": true, "/_rank_eval": true, "/_validate/query": true, "/a/_explain/1": false} {
		node := startRawNode(t, func(n int, _ rawRequest) string {
			if n == 1 {
				return answer(400, jsonType, "{}")
			}
			return emptyAnswer
		})
		addr, _ := startProxy(t, Options{Upstreams: []string{node.URL}, RankEval: true, Expander: expander(rewriteFirstAndLast)})
		exchangeRaw(t, addr, searchOf(target, jsonType+sent, lines))
		whole, first := []string{"deflate, gzip;q=0.5"}, []string{"gzip"}
		if !cut {
			first = whole
		}
		if got := node.all(); len(got) != 2 || !slices.Equal(got[0].get("Accept-Encoding"), first) || !slices.Equal(got[1].get("Accept-Encoding"), whole) {
			t.Errorf("%s: the node got %q", target, got)
		}
	}
}

// Whatever the query string and the headers, what is added stands at its end,
// once, and never where the client has said it.
func FuzzAskForFailures(f *testing.F) {
	f.Add("", "", "")
	f.Add("filter_path=hits&pretty", "application/yaml", "deflate, gzip")
	f.Add("allow_partial_search_results&format=yaml;", "*/*", "*;q=0")
	f.Add("&", "0", "")
	f.Fuzz(func(t *testing.T, query, accept, encoding string) {
		out, err := http.NewRequest(http.MethodPost, "http://a/_search", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		out.URL.RawQuery = query
		out.Header = http.Header{"Accept": {accept}, "Accept-Encoding": {encoding}}
		ex := &exchange{endpoint: expand.EndpointSearch}
		ex.askForFailures(out)
		rest, added := strings.CutSuffix(out.URL.RawQuery, "allow_partial_search_results=false")
		if !ex.strict {
			rest, added = out.URL.RawQuery, false
		}
		if added != ex.strict || strings.TrimSuffix(rest, "&") != strings.TrimSuffix(query, "&") || !ex.strict && rest != query {
			t.Errorf("%q becomes %q", query, out.URL.RawQuery)
		}
		switch hidden := !answersJSON(query, out.Header) || !showsShards(filterPath(query)); {
		case ex.strict && !hidden:
			t.Errorf("%q, %q: nothing is hidden", query, accept)
		case hidden && !ex.strict && !strings.Contains(query, "%") && !strings.Contains(query, partialParameter):
			t.Errorf("%q, %q: it is not strict", query, accept)
		}
		once := slices.Clone(out.Header["Accept-Encoding"])
		if askForGzip(out.Header); !slices.Equal(once, out.Header["Accept-Encoding"]) {
			t.Errorf("%q becomes %q, then %q", encoding, once, out.Header["Accept-Encoding"])
		}
	})
}
