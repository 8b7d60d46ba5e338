package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand"
)

// A route is one row of the table of recognized requests.
type route struct {
	// methods are the HTTP methods.
	methods []string
	// shape is the escaped path; {index} stands for an index expression, {id} for
	// a document. Trailing slashes are ignored, as in Elasticsearch.
	shape string
	// endpoint is the expander's, and says where failures are in an answer.
	endpoint expand.Endpoint
}

// HTTP methods of searches. Both engines answer 405 to HEAD.
var (
	getOrPost = []string{http.MethodGet, http.MethodPost}
	post      = []string{http.MethodPost}
)

// routes lists all requests that are not simply forwarded. Paths are compared
// in escaped form, as in Elasticsearch: /i/%5Fsearch is not a search. Paths
// with a mapping type (Elasticsearch 7) are not searches here, because in later
// engines some of them store documents, such as POST /i/_doc/_search.
var routes = []route{
	{getOrPost, "/_search", expand.EndpointSearch},
	{getOrPost, "/{index}/_search", expand.EndpointSearch},

	{post, "/_async_search", expand.EndpointSearch},
	{post, "/{index}/_async_search", expand.EndpointSearch},

	{getOrPost, "/_msearch", expand.EndpointMultiSearch},
	{getOrPost, "/{index}/_msearch", expand.EndpointMultiSearch},

	{getOrPost, "/_count", expand.EndpointCount},
	{getOrPost, "/{index}/_count", expand.EndpointCount},

	{getOrPost, "/_validate/query", expand.EndpointValidate},
	{getOrPost, "/{index}/_validate/query", expand.EndpointValidate},

	{getOrPost, "/{index}/_explain/{id}", expand.EndpointExplain},

	{getOrPost, "/_rank_eval", expand.EndpointRankEval},
	{getOrPost, "/{index}/_rank_eval", expand.EndpointRankEval},

	{getOrPost, "/_search/template", expand.EndpointSearch},
	{getOrPost, "/{index}/_search/template", expand.EndpointSearch},
	{getOrPost, "/_msearch/template", expand.EndpointMultiSearch},
	{getOrPost, "/{index}/_msearch/template", expand.EndpointMultiSearch},
}

// A match is a route and the index in the path.
type match struct {
	*route
	// index is the unescaped index expression; "" means all indices.
	index string
}

// recognize returns the route of a request, or false if none matches.
func recognize(method, escapedPath string) (match, bool) {
	path := strings.TrimRight(escapedPath, "/")
	if !strings.HasPrefix(path, "/") { // such as OPTIONS *
		return match{}, false
	}
	slashes := strings.Count(path, "/")
	for i := range routes {
		r := &routes[i]
		if strings.Count(r.shape, "/") != slashes || !slices.Contains(r.methods, method) {
			continue
		}
		if m, ok := r.fit(path); ok {
			return m, true
		}
	}
	return match{}, false
}

// fit matches path against the shape, which has as many slashes.
func (r *route) fit(path string) (m match, ok bool) {
	m.route, ok = r, true
	for shape, more := r.shape, true; ok && more; {
		var want, segment string
		want, shape, more = strings.Cut(shape, "/")
		segment, path, _ = strings.Cut(path, "/")
		switch want {
		case "{index}":
			// Other names begin with "_": POST /_scripts/_search stores a script.
			index, err := url.PathUnescape(segment)
			if ok = err == nil && index != "" && (index[0] != '_' || index == "_all"); ok {
				m.index = index
			}
		case "{id}":
			ok = segment != ""
		default:
			ok = segment == want
		}
	}
	return m, ok
}

// isAsync reports whether the answer may come later and in parts.
func (r *route) isAsync() bool { return strings.HasSuffix(r.shape, "/_async_search") }

// isTemplate reports whether the cluster has to render the search.
func (r *route) isTemplate() bool { return strings.HasSuffix(r.shape, "/template") }
