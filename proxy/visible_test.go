package proxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/proxy/answer"
	"github.com/akin-search/akin/proxy/report"
)

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
					return answerWith(400, jsonType, `{"error":{"reason":"Partial shards failure"}}`)
				}
				return answerWith(200, jsonType, searchAnswer(wholeShards))
			})
			addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
			got := exchangeRaw(t, addr, searchOf(tt.target, jsonType+tt.header, lines))
			if !strings.HasSuffix(got, "\r\n\r\n"+searchAnswer(wholeShards)) {
				t.Errorf("the client got %q", got)
			}
			sent := node.all()
			if len(sent) != 2 || sent[0].line != "POST "+tt.sent+" HTTP/1.1" || sent[0].body != rewrittenLines || sent[1].line != "POST "+tt.target+" HTTP/1.1" || sent[1].body != lines {
				t.Errorf("the node got %q", sent)
			}
			if n := counter(t, registry, "akin_rejected_searches_total", "original", "accepted"); n != 1 {
				t.Errorf("%v refusals are counted", n)
			}
		})
	}
}

// Where the cluster refuses what fails, a good answer needs no look.
func TestAnswerToAStrictSearchIsNotCountedAsUnchecked(t *testing.T) {
	const yaml = "---\nhits: {}\n"
	node := startRawNode(t, func(int, rawRequest) string { return answerWith(200, "Content-Type: application/yaml\n", yaml) })
	addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
	if got := exchangeRaw(t, addr, searchOf("/_search?format=yaml", jsonType, lines)); !strings.HasSuffix(got, yaml) || len(node.all()) != 1 {
		t.Errorf("the client got %q after %d requests", got, len(node.all()))
	}
	if n := counter(t, registry, "akin_unchecked_responses_total"); n != 0 {
		t.Errorf("counted %v times", n)
	}
}

// Searches whose failures stand inside of answers, and could not be read there,
// go out as they came.
func TestSearchWhoseAnswerCannotBeReadIsLeftAlone(t *testing.T) {
	const yaml = "Accept: application/yaml\n"
	for _, tt := range []struct{ target, header, reason string }{
		{"/_msearch?format=yaml", "", answer.HiddenByFormat},
		{"/a/_msearch", yaml, answer.HiddenByFormat},
		{"/_rank_eval", yaml, answer.HiddenByFormat},
		{"/_validate/query?format=cbor", "", answer.HiddenByFormat},
		{"/_validate/query?filter_path=valid", "", answer.HiddenByFilter},
		{"/_async_search", yaml, answer.HiddenByFormat},
		{"/a/_async_search?filter_path=response.hits", "", answer.HiddenByFilter},
		{"/_msearch", "Accept: application/json\n", ""},
		{"/_async_search", "Accept: */*\n", ""},
		{"/_rank_eval?format=json", "", ""},
	} {
		node := startRawNode(t, nil)
		addr, registry := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
		exchangeRaw(t, addr, searchOf(tt.target, jsonType+tt.header, lines))
		got := node.only(t)
		if got.line != "POST "+tt.target+" HTTP/1.1" || (got.body == lines) != (tt.reason != "") {
			t.Errorf("%s: the node got %q", tt.target, got)
		}
		if n := counter(t, registry, "akin_requests_total", "outcome", report.Unchanged, "reason", tt.reason); (n == 1) != (tt.reason != "") {
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
				return answerWith(400, jsonType, "{}")
			}
			return emptyAnswer
		})
		addr, _ := startProxy(t, Options{Nodes: nodesAt(node.URL), Expander: expander(rewriteFirstAndLast)})
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
