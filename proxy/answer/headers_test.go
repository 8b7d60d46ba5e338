package answer

import (
	"net/http"
	"slices"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

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
		if AskForGzip(h); !slices.Equal(h["Accept-Encoding"], tt.want) || h.Get("X") != "y" {
			t.Errorf("%q becomes %q, want %q", tt.sent, h["Accept-Encoding"], tt.want)
		}
	}
}
