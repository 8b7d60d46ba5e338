package answer

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
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
		check.Equal(t, want, showsShards(filter), filter)
	}
}

// A search whose answer would not show that shards failed is sent such that the
// cluster refuses it then.
func TestSearchWhoseFailuresAreHiddenIsStrict(t *testing.T) {
	const (
		search, strict = expand.EndpointSearch, "allow_partial_search_results=false"
		yaml           = "application/yaml"
	)
	for _, tt := range []struct {
		endpoint            expand.Endpoint
		query, accept, want string
	}{
		{search, "", "application/json", ""},
		{search, "", "application/cbor", strict},
		{search, "pretty", "", "pretty"},
		{search, "filter_path=_shards,hits", "", "filter_path=_shards,hits"},
		{search, "filter_path=hits", "", "filter_path=hits&" + strict},
		{search, "format=yaml&", "", "format=yaml&" + strict},
		{search, "allow_partial_search_results=true&filter_path=hits", "", "allow_partial_search_results=true&filter_path=hits"},
		{search, "filter_path=hits;allow%5Fpartial_search_results=false", "", "filter_path=hits;allow%5Fpartial_search_results=false"},
		{expand.EndpointCount, "filter_path=count&format=yaml", "", "filter_path=count&format=yaml"},
		{expand.EndpointExplain, "filter_path=matched", yaml, "filter_path=matched"},
		{expand.EndpointMultiSearch, "filter_path=x", "", "filter_path=x"},
	} {
		out, err := http.NewRequest(http.MethodPost, "http://a/_search?"+tt.query, http.NoBody)
		check.OK(t, err)
		out.Header.Set("Accept-Encoding", "deflate, gzip;q=0.5")
		if tt.accept != "" {
			out.Header.Set("Accept", tt.accept)
		}
		is := MakeVisible(tt.endpoint, out)
		check.That(t, out.URL.RawQuery == tt.want && is == (tt.query != tt.want), "%q becomes %q, strict %v, want %q", tt.query, out.URL.RawQuery, is, tt.want)
		whole := out.Header.Get("Accept-Encoding") != "gzip"
		check.That(t, whole == (tt.endpoint == expand.EndpointExplain), "%q accepts %s", tt.query, out.Header["Accept-Encoding"])
	}
}

// filter_path must not hide what failed, nor show more than was asked for.
func TestFilteredAnswersShowFailures(t *testing.T) {
	const items = "%2Cresponses.error.type%2Cresponses._shards.failures.reason.type"
	for _, tt := range []struct {
		endpoint     expand.Endpoint
		query, added string
	}{
		{expand.EndpointMultiSearch, "", ""},
		{expand.EndpointMultiSearch, "filter_path=", ""},
		{expand.EndpointMultiSearch, "filter_path=responses.hits,took", "&filter_path=responses.hits%2Ctook" + items},
		{expand.EndpointMultiSearch, "filter_path=a&filter_path=responses.hits%2Etotal", "&filter_path=responses.hits.total" + items},
		{expand.EndpointRankEval, "pretty&filter_path=metric_score", "&filter_path=metric_score%2Cfailures.%2A.error.type"},
		{expand.EndpointSearch, "filter_path=hits", ""},
		{expand.EndpointCount, "filter_path=-_shards", ""},
	} {
		got, changed := ShowFailures(tt.endpoint, tt.query)
		check.That(t, got == tt.query+tt.added && changed == (tt.added != ""), "%q becomes %q, %v", tt.query, got, changed)
	}
}

// Searches whose failures stand inside of answers, and could not be read there,
// are not rewritten.
func TestWhatHidesFailures(t *testing.T) {
	const (
		search, multi  = expand.EndpointSearch, expand.EndpointMultiSearch
		rank, validate = expand.EndpointRankEval, expand.EndpointValidate
		yaml           = "application/yaml"
	)
	for _, tt := range []struct {
		endpoint              expand.Endpoint
		async                 bool
		query, accept, reason string
	}{
		{search, false, "format=yaml&filter_path=hits", yaml, ""},
		{multi, false, "format=yaml", "", HiddenByFormat},
		{multi, false, "", yaml, HiddenByFormat},
		{multi, false, "filter_path=-responses.error", "", HiddenByFilter},
		{multi, false, "filter_path=responses.hits", "application/json", ""},
		{rank, false, "", yaml, HiddenByFormat},
		{rank, false, "filter_path=metric_score%2c-failures", "", HiddenByFilter},
		{rank, false, "format=json", "", ""},
		{validate, false, "format=cbor", "", HiddenByFormat},
		{validate, false, "filter_path=_shards", "", HiddenByFilter},
		{search, true, "", yaml, HiddenByFormat},
		{search, true, "filter_path=response.hits", "", HiddenByFilter},
		{search, true, "", "*/*", ""},
	} {
		h := http.Header{}
		if tt.accept != "" {
			h.Set("Accept", tt.accept)
		}
		got := Hidden(tt.endpoint, tt.async, tt.query, h)
		check.That(t, got == tt.reason, "%d?%s, %s: %q, want %q", tt.endpoint, tt.query, tt.accept, got, tt.reason)
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
		check.OK(t, err)
		out.URL.RawQuery = query
		out.Header = http.Header{"Accept": {accept}, "Accept-Encoding": {encoding}}
		strict := MakeVisible(expand.EndpointSearch, out)
		rest, added := strings.CutSuffix(out.URL.RawQuery, "allow_partial_search_results=false")
		if !strict {
			rest, added = out.URL.RawQuery, false
		}
		check.That(t, added == strict && strings.TrimSuffix(rest, "&") == strings.TrimSuffix(query, "&") && (strict || rest == query), "%q becomes %q", query, out.URL.RawQuery)
		switch hidden := !AnswersJSON(query, out.Header) || !showsShards(FilterPath(query)); {
		case strict && !hidden:
			t.Errorf("%q, %q: nothing is hidden", query, accept)
		case hidden && !strict && !strings.Contains(query, "%") && !strings.Contains(query, partialParameter):
			t.Errorf("%q, %q: it is not strict", query, accept)
		}
		once := slices.Clone(out.Header["Accept-Encoding"])
		AskForGzip(out.Header)
		if !slices.Equal(once, out.Header["Accept-Encoding"]) {
			t.Errorf("%q becomes %q, then %q", encoding, once, out.Header["Accept-Encoding"])
		}
	})
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
		check.Equal(t, tt.want, AnswersJSON(tt.query, http.Header{"Accept": tt.accept}), tt.query, tt.accept)
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
		AskForGzip(h)
		if !slices.Equal(h["Accept-Encoding"], tt.want) || h.Get("X") != "y" {
			t.Errorf("%q becomes %q, want %q", tt.sent, h["Accept-Encoding"], tt.want)
		}
	}
}

func TestUnknownParametersAreKeptAsTheyCame(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{"", ""},
		{"size=3&q=car&pretty", ""},
		{"jwt_token=a.b%2Ec&size=3", "jwt_token=a.b%2Ec"},
		{"size=3&jwt_token=a&akin=off&Access-Token=b&q=x", "jwt_token=a&Access-Token=b"},
		{"%73ize=3&%6awt_token=a", "%6awt_token=a"}, // names are compared as the engines read them
		{"size=3;jwt_token=a;from=1", "jwt_token=a"},
		{"&&=x&jwt_token", "jwt_token"},
		{"filter_path=x&terminate_after=9&allow_partial_search_results=false", ""}, // the check has its own
	} {
		check.Equal(t, tt.want, Unknown(tt.query), tt.query)
		check.Equal(t, "", Unknown(Known(tt.query)), tt.query)
	}
}
