package answer

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
		strict := MakeVisible(expand.EndpointSearch, out)
		rest, added := strings.CutSuffix(out.URL.RawQuery, "allow_partial_search_results=false")
		if !strict {
			rest, added = out.URL.RawQuery, false
		}
		if added != strict || strings.TrimSuffix(rest, "&") != strings.TrimSuffix(query, "&") || !strict && rest != query {
			t.Errorf("%q becomes %q", query, out.URL.RawQuery)
		}
		switch hidden := !AnswersJSON(query, out.Header) || !showsShards(FilterPath(query)); {
		case strict && !hidden:
			t.Errorf("%q, %q: nothing is hidden", query, accept)
		case hidden && !strict && !strings.Contains(query, "%") && !strings.Contains(query, partialParameter):
			t.Errorf("%q, %q: it is not strict", query, accept)
		}
		once := slices.Clone(out.Header["Accept-Encoding"])
		if AskForGzip(out.Header); !slices.Equal(once, out.Header["Accept-Encoding"]) {
			t.Errorf("%q becomes %q, then %q", encoding, once, out.Header["Accept-Encoding"])
		}
	})
}
