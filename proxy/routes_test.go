package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

// newRecognizer returns what the router makes of a request: a match, or none if
// it forwards the request. That is an error if the request is not the one that
// came.
func newRecognizer() func(tb testing.TB, method string, to *url.URL) (m match, isSearch bool) {
	type handled struct {
		w *relay
		r *http.Request
		m match
	}
	var calls []handled
	e := newRouter(
		func(w *relay, r *http.Request, m match) { calls = append(calls, handled{w, r, m}) },
		func(w *relay, r *http.Request) { calls = append(calls, handled{w, r, match{}}) },
	)
	return func(tb testing.TB, method string, to *url.URL) (match, bool) {
		tb.Helper()
		client, came := &relay{}, &http.Request{Method: method, URL: to}
		calls = calls[:0]
		dispatch(e, client, came)
		check.Must(tb, len(calls) == 1 && calls[0].w == client && calls[0].r == came, "%s %s is handled as %+v", method, to, calls)
		return calls[0].m, calls[0].m.route != nil
	}
}

// target returns the URL of a request as net/http parses it; what it refuses
// becomes a path all the same.
func target(path string) *url.URL {
	if to, err := url.ParseRequestURI(path); err == nil {
		return to
	}
	return &url.URL{Path: path}
}

// Paths of both engines' REST interfaces, with the methods that they are used
// with: everything that looks like a search and is none, writes by query, and
// one path at least of every other family. All pass unread.
func TestOtherRequestsAreNotRecognized(t *testing.T) {
	recognize := newRecognizer()
	for line := range strings.SplitSeq(strings.TrimSpace(`
HEAD /_search /help/_search /help/_count
PUT /help/_search /_scripts/_search /_scripts/shop/_search /_watcher/watch/_search /_plugins/_ml/_search /_search/pipeline/shop /help/_doc/_search
PUT /help/_doc/_count
DELETE /help/_search /_async_search/FmRl= /_search/scroll /_search/point_in_time /_pit /help/_doc/_search
get /help/_search
GET /help/_async_search /_async_search /_async_search/FmRl= /_async_search/status/FmRl= /_search/scroll /_search/scroll/DXF1== /_search_shards
GET /help/_mvt/geometry/13/4207/2692 /help/_graph/explore /_render/template/shop /_all/a,b/_search /_alias/_search /_mapping/_search /_cat/_search
GET /_nodes/_search /_snapshot/_search /_tasks/_search /_template/_search /_security/_search /help/_source/_search /help/_termvectors/_search /help/_mget
GET /help/_doc/_search/template /help/_termvectors/1 /help/type/_percolate/count /_cat/count /_cat/count/help / /help
POST /_plugins/_asynchronous_search /_search/scroll /help/_search/point_in_time /_search/point_in_time/_all /help/_pit /help/_knn_search
POST /help/_search_shards /help/_eql/search /_sql /_sql/translate /_query /_query/async /_esql/query /_plugins/_sql /_plugins/_ppl
POST /help/_fleet/_fleet_search /help/_fleet/_fleet_msearch /help/_rollup_search /_application/search_application/shop/_search /_query_rules/_search
POST /_render/template /help/_delete_by_query /help/type/_delete_by_query /help/type/_search /help/_update_by_query /_reindex
POST /_reindex/r1A2:36619/_rethrottle /_update_by_query/r1A2:36619/_rethrottle /_scripts/_search /_scripts/_count /_scripts/_msearch /%5Fscripts/_search
POST /_ingest/_search /_security/_query/api_key /_security/role/_search /_ml/datafeeds/_search /_ml/anomaly_detectors/_search /_plugins/_ml/models/_search
POST /_plugins/_alerting/monitors/_search /_search/_search /_search/pipeline/_search /help/%5Fsearch /help/_doc/%5Fsearch /help/_doc/1 /help/_doc
POST /help/_create/_search /help/_doc/_search /help/_doc/_count /help/_doc/_msearch /help/_doc/_validate/query /help/_doc/1/_explain /help/_update/_search
POST /help/_update/_count /help/_mapping/_search /help/_alias/_search /help/_bulk /help/_doc/_bulk /_bulk /help/_mget /help/_mtermvectors /help/_field_caps
POST /help/_terms_enum /help/_percolate /help/_validate /_validate/_search /help/_explain /help/_explain/ /_explain/1 /help/_explain/1/_source //_search
POST /help//_search /help//_explain/1 /_search%2F _search _search/0
OPTIONS *
`), "\n") {
		fields := strings.Fields(line)
		for _, path := range fields[1:] {
			m, ok := recognize(t, fields[0], target(path))
			check.That(t, !ok, "%s %s is recognized, %+v", fields[0], path, m)
		}
	}
	if _, ok := recognize(t, http.MethodConnect, &url.URL{Host: "a:1"}); ok {
		t.Error("CONNECT is recognized")
	}
}

// byTheTable returns what routes says of a request, row by row and name by
// name: what the router must find.
func byTheTable(tb testing.TB, method, escapedPath string) (m match, isSearch bool) {
	tb.Helper()
	names := strings.Split(strings.TrimRight(escapedPath, "/"), "/")
	for i := range routes {
		shape, index := strings.Split(routes[i].shape, "/"), ""
		fits := len(shape) == len(names) && slices.Contains(routes[i].methods, method)
		for k := 0; fits && k < len(names); k++ {
			switch shape[k] {
			case "{index}":
				index = check.Got(url.PathUnescape(names[k]))(tb)
				fits = index == "_all" || index != "" && index[0] != '_'
			case "{id}":
				fits = names[k] != ""
			default:
				fits = names[k] == shape[k]
			}
		}
		if fits {
			check.Must(tb, !isSearch, "%s %s fits %s, and another row", method, escapedPath, routes[i].shape)
			m, isSearch = match{&routes[i], index}, true
		}
	}
	return m, isSearch
}

// Every path of at most four of these names, one more than any search has.
func TestRouterFindsWhatTheTableSays(t *testing.T) {
	names := []string{"", "a", "_all", "%5Fall", "_s", "_search", "%5fsearch", "_searches", "_msearch", "_async_search", "_count", "_validate", "query", "_explain", "_rank_eval", "template"}
	recognize := newRecognizer()
	searches := 0
	paths := []string{""}
	for range 4 {
		var longer []string
		for _, path := range paths {
			for _, name := range names {
				longer = append(longer, path+"/"+name)
			}
		}
		for _, path := range longer {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
				want, isSearch := byTheTable(t, method, path)
				got, found := recognize(t, method, target(path))
				check.Must(t, found == isSearch && got == want, "%s %s is %+v, want %+v", method, path, got, want)
				if found {
					searches++
				}
			}
		}
		paths = longer
	}
	check.That(t, searches > 200, "%d searches", searches)
}

func FuzzRouterFindsWhatTheTableSays(f *testing.F) {
	for _, path := range []string{
		"/a/_search", "/_search///", "//_search", "/_all/_search/template", "/_scripts/_search", "/%5Fall/_count", "/<logs-{now/d}>/_search", "/%3Clogs-%7Bnow%2Fd%7D%3E/_search/",
		"/a%2F/_search", "/<a%2F/_search%2F", "/a%00b/_explain/%00", "*", "/", "///", "http://host/_search", "http:///_search", "a:b", "/a/_search?_explain/1", "/a;b/_msearch", "/a%2f%2F//",
	} {
		f.Add(http.MethodGet, path)
		f.Add(http.MethodPost, path)
	}
	f.Add("get", "/a/_search")
	f.Add("", "/a/_search")
	f.Add(http.MethodConnect, "a:80")
	f.Add(http.MethodPost, "/"+strings.Repeat("a,", 4<<10)+"/_search")
	f.Add(http.MethodPost, strings.Repeat("/_search", 1<<10))
	recognize := newRecognizer()
	f.Fuzz(func(t *testing.T, method, path string) {
		to, err := url.ParseRequestURI(path)
		if err != nil {
			t.Skip("no request has such a path: net/http answers 400 before akin sees it")
		}
		want, isSearch := byTheTable(t, method, to.EscapedPath())
		before := *to
		got, found := recognize(t, method, to)
		check.That(t, found == isSearch && got == want, "%s %s is %+v, want %+v", method, path, got, want)
		check.Equal(t, before, *to, "the URL that goes on")
	})
}
