package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The index of the tests with users. Documents of the kind "hidden" are those
// that userOwn may not see, and userAlias neither: "automobile" stands in them
// only. userFields may not see the field notes, which userMasked sees masked:
// "bribe" stands in it only.
const (
	securedIndex, securedAlias = "akin-e2e-secured", "akin-e2e-visible"

	securedDefinition = `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{
		"body":{"type":"text"},"notes":{"type":"text"},"kind":{"type":"keyword"},"n":{"type":"integer"},
		"parts":{"type":"nested","properties":{"body":{"type":"text"}}}}}}`

	securedVectors = `car 1 0 0 0 0
automobile 0.9 0.1 0 0 0
boat 0 0 1 0 0
ship 0 0 0.9 0.1 0
price 0 0 0 0.1 1
bribe 0 0 0 0 1
`
)

func securedDocuments() []document {
	var docs []document
	add := func(kind, body, notes string) {
		n := len(docs)
		docs = append(docs, document{strconv.Itoa(n), map[string]any{
			"body": body, "notes": notes, "kind": kind, "n": n, "parts": []section{{"body": body}},
		}})
	}
	add("visible", "boat ship", "price bribe")
	for range 3 {
		add("visible", "car red", "price")
		add("visible", "car", "price list")
		add("visible", "boat blue", "bribe")
		add("visible", "ship", "bribe list")
		add("hidden", "automobile", "price")
		add("hidden", "car automobile", "list")
	}
	for i := range 60 {
		add("visible", fmt.Sprintf("filler %d", i), fmt.Sprintf("filler %d", i))
	}
	return docs
}

// makeSecured makes the index of the tests with users, and its alias.
func makeSecured(t *testing.T, e *engine) {
	t.Helper()
	e.shareIndex(t, securedIndex, func() {
		e.remakeIndex(t, securedIndex, securedDefinition)
		e.index(t, securedIndex, securedDocuments())
		e.must(t, http.MethodPut, "/"+securedIndex+"/_alias/"+securedAlias, `{"filter":{"term":{"kind":"visible"}}}`)
	})
}

// securedConfig is the configuration of an akin before the secured engine with
// TLS on both sides and the role of akin, or other access to the cluster.
func securedConfig(t *testing.T, e *engine, expansion, access section) section {
	t.Helper()
	dir := certificates(t, "akin")
	options := section{"budget": widePatience, "templates": true, "default_fields": []string{"body"}}
	maps.Copy(options, expansion)
	to := section{"urls": []string{e.as("").url}, "tls": section{"ca_file": filepath.Join(dir, "ca.crt")}}
	if access == nil {
		access = section{"auth": section{"username": userAkin, "password_file": writeFile(t, "password", password)}}
	}
	maps.Copy(to, access)
	return section{
		"listen":    section{"address": "127.0.0.1:0", "tls": section{"cert_file": filepath.Join(dir, "akin.crt"), "key_file": filepath.Join(dir, "akin.key")}},
		"cluster":   to,
		"expansion": options,
		"matrices":  []section{{"name": "main", "indices": []string{securedIndex, securedAlias}, "file": relatedFile(t, securedVectors)}},
	}
}

// setupSecured is setup with securedConfig, or a configuration like it.
func setupSecured(t *testing.T, e *engine, config section) *akin {
	t.Helper()
	a := setupWide(t, e, config)
	a.url = strings.Replace(a.url, "http:", "https:", 1)
	return a
}

// A securedRequest is a way to search for a word in a field. INDEX, FIELD and
// WORD stand for these.
type securedRequest struct {
	name, path, body string
	lines            bool // the body is lines of JSON
	shows            bool // the answer shows the terms of the rewritten query
}

// on returns the path and the body for a word in a field of an index.
func (r securedRequest) on(index, field, word string) (path, body string) {
	fill := strings.NewReplacer("INDEX", index, "FIELD", field, "WORD", word)
	if body = fill.Replace(r.body); r.lines {
		body += "\n"
	}
	return fill.Replace(r.path), body
}

const (
	securedMatch = `"query":{"match":{"FIELD":"WORD"}}`
	securedPage  = `"size":50,` + securedMatch
)

// securedRequests are the ways to search that akin expands, with all that can
// show the words of a query.
var securedRequests = []securedRequest{
	{name: "explain", path: "/INDEX/_search", body: `{"explain":true,` + securedPage + `}`, shows: true},
	{name: "explain as a text", path: "/INDEX/_search", body: `{"\u0065xplain":"true",` + securedPage + `}`, shows: true},
	{name: "explain by a parameter", path: "/INDEX/_search?explain=true", body: `{` + securedPage + `}`, shows: true},
	{name: "explain with q", path: "/INDEX/_search?q=WORD&df=FIELD&explain=true&size=50", shows: true},
	{name: "explain in a bool", path: "/INDEX/_search", body: `{"explain":true,"size":50,"query":{"bool":{"must":[{"match":{"FIELD":"WORD"}}]}}}`, shows: true},
	{name: "explain with a scroll", path: "/INDEX/_search?scroll=1s&explain=true", body: `{` + securedPage + `}`, shows: true},
	{name: "explain with filter_path", path: "/INDEX/_search?filter_path=_shards,hits.hits._explanation&explain=true", body: `{` + securedPage + `}`, shows: true},
	{name: "profile", path: "/INDEX/_search", body: `{"profile":true,` + securedMatch + `}`, shows: true},
	{name: "top_hits", path: "/INDEX/_search", body: `{"size":0,` + securedMatch + `,"aggs":{"a":{"top_hits":{"size":50,"explain":true}}}}`, shows: true},
	{name: "top_hits in a bucket", path: "/INDEX/_search", body: `{"size":0,` + securedMatch + `,"aggs":{"a":{"terms":{"field":"kind"},"aggs":{"b":{"top_hits":{"size":50,"explain":true}}}}}}`, shows: true},
	{name: "inner hits of a collapse", path: "/INDEX/_search", body: `{` + securedMatch + `,"collapse":{"field":"kind","inner_hits":{"name":"x","size":50,"explain":true}}}`, shows: true},
	{name: "_explain", path: "/INDEX/_explain/0", body: `{` + securedMatch + `}`, shows: true},
	{name: "_explain with q", path: "/INDEX/_explain/0?q=WORD&df=FIELD", shows: true},
	{name: "_validate with explain", path: "/INDEX/_validate/query?explain=true", body: `{` + securedMatch + `}`, shows: true},
	{name: "_validate with rewrite", path: "/INDEX/_validate/query?rewrite=true", body: `{` + securedMatch + `}`, shows: true},
	{name: "_validate of all shards", path: "/INDEX/_validate/query?all_shards=true&explain=true", body: `{` + securedMatch + `}`, shows: true},
	{name: "_validate with q", path: "/INDEX/_validate/query?q=WORD&df=FIELD&explain=true", shows: true},
	{name: "_msearch with explain", path: "/INDEX/_msearch", body: "{}\n" + `{"explain":true,` + securedPage + `}`, lines: true, shows: true},
	{name: "_msearch with profile", path: "/INDEX/_msearch", body: "{}\n" + `{"profile":true,` + securedMatch + `}`, lines: true, shows: true},
	{name: "template with explain", path: "/INDEX/_search/template", body: `{"explain":true,"source":{` + securedPage + `}}`, shows: true},
	{name: "template that explains", path: "/INDEX/_search/template", body: `{"source":{"explain":true,` + securedPage + `}}`, shows: true},
	{name: "template with profile", path: "/INDEX/_search/template", body: `{"profile":true,"source":{` + securedMatch + `}}`, shows: true},
	{name: "_msearch/template", path: "/INDEX/_msearch/template", body: "{}\n" + `{"explain":true,"source":{` + securedPage + `}}`, lines: true, shows: true},

	{name: "plain", path: "/INDEX/_search", body: `{` + securedPage + `}`},
	{name: "q", path: "/INDEX/_search?q=WORD&df=FIELD&size=50"},
	{name: "highlights", path: "/INDEX/_search", body: `{` + securedPage + `,"highlight":{"fields":{"*":{}}}}`},
	{name: "aggregations", path: "/INDEX/_search", body: `{"size":0,` + securedMatch + `,"aggs":{"a":{"terms":{"field":"kind"}}}}`},
	{name: "suggestions", path: "/INDEX/_search", body: `{` + securedMatch + `,"suggest":{"s":{"text":"WORDD","term":{"field":"FIELD"}}}}`},
	{name: "named queries", path: "/INDEX/_search", body: `{"query":{"match":{"FIELD":{"query":"WORD","_name":"x"}}}}`},
	{name: "_count", path: "/INDEX/_count", body: `{` + securedMatch + `}`},
	{name: "_validate", path: "/INDEX/_validate/query", body: `{` + securedMatch + `}`},
	{name: "_msearch", path: "/INDEX/_msearch", body: "{}\n" + `{` + securedPage + `}` + "\n{}\n" + `{"query":{"match_all":{}}}`, lines: true},
	{name: "_rank_eval", path: "/INDEX/_rank_eval", body: `{"requests":[{"id":"a","request":{` + securedMatch + `},"ratings":[{"_index":"akin-e2e-secured","_id":"1","rating":1}]}],"metric":{"precision":{"k":10}}}`},
	{name: "another index", path: "/akin-e2e-nowhere/_search", body: `{` + securedMatch + `}`},
	{name: "a pattern", path: "/akin-e2e-sec*/_search", body: `{` + securedPage + `}`},
	{name: "broken", path: "/INDEX/_search", body: `{"query":{"match":{"FIELD":{"query":"WORD","no_such_option":1}}}}`},
	{name: "too many hits", path: "/INDEX/_search", body: `{"size":100000,` + securedMatch + `}`},
}
