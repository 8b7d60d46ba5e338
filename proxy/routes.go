package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand"
)

// A treatment is what is done with the requests of a route.
type treatment uint8

const (
	// rewriteBody has the expander rewrite the body, or the parameters that
	// stand for one.
	rewriteBody treatment = iota
	// renderTemplate has the cluster render the template and the expander
	// rewrite the search that comes out, where [Options.Templates] is set.
	renderTemplate
)

// A route is a row of the table of what is recognised.
type route struct {
	// methods are the HTTP methods.
	methods []string
	// shape is the escaped path: literal segments, {index} for an index
	// expression, {type} for a mapping type and {id} for a document. Slashes at
	// the end of a path do not count, as in Elasticsearch.
	shape string
	// endpoint is what the expander is told, and says where in an answer it
	// stands that a search failed.
	endpoint expand.Endpoint
	// how is what is done with the request.
	how treatment
}

// The methods by which a search is read. Both engines answer 405 to HEAD.
var (
	getOrPost = []string{http.MethodGet, http.MethodPost}
	post      = []string{http.MethodPost}
)

// routes lists every kind of request that is not simply forwarded. Paths are
// compared in their escaped form, as Elasticsearch does: /i/%5Fsearch is no
// search. The paths with a type are Elasticsearch 7's; see [Server.knowsTypes].
var routes = []route{
	{getOrPost, "/_search", expand.EndpointSearch, rewriteBody},
	{getOrPost, "/{index}/_search", expand.EndpointSearch, rewriteBody},
	{getOrPost, "/{index}/{type}/_search", expand.EndpointSearch, rewriteBody},

	{post, "/_async_search", expand.EndpointSearch, rewriteBody},
	{post, "/{index}/_async_search", expand.EndpointSearch, rewriteBody},

	{getOrPost, "/_msearch", expand.EndpointMultiSearch, rewriteBody},
	{getOrPost, "/{index}/_msearch", expand.EndpointMultiSearch, rewriteBody},
	{getOrPost, "/{index}/{type}/_msearch", expand.EndpointMultiSearch, rewriteBody},

	{getOrPost, "/_count", expand.EndpointCount, rewriteBody},
	{getOrPost, "/{index}/_count", expand.EndpointCount, rewriteBody},
	{getOrPost, "/{index}/{type}/_count", expand.EndpointCount, rewriteBody},

	{getOrPost, "/_validate/query", expand.EndpointValidate, rewriteBody},
	{getOrPost, "/{index}/_validate/query", expand.EndpointValidate, rewriteBody},
	{getOrPost, "/{index}/{type}/_validate/query", expand.EndpointValidate, rewriteBody},

	{getOrPost, "/{index}/_explain/{id}", expand.EndpointExplain, rewriteBody},
	{getOrPost, "/{index}/{type}/{id}/_explain", expand.EndpointExplain, rewriteBody},

	{getOrPost, "/_rank_eval", expand.EndpointRankEval, rewriteBody},
	{getOrPost, "/{index}/_rank_eval", expand.EndpointRankEval, rewriteBody},

	{getOrPost, "/_search/template", expand.EndpointSearch, renderTemplate},
	{getOrPost, "/{index}/_search/template", expand.EndpointSearch, renderTemplate},
	{getOrPost, "/_msearch/template", expand.EndpointMultiSearch, renderTemplate},
	{getOrPost, "/{index}/_msearch/template", expand.EndpointMultiSearch, renderTemplate},
}

// A match is a route with what the path says for it.
type match struct {
	*route
	// index is the index expression, unescaped; "" is all indices.
	index string
	// typed says that the path names a mapping type.
	typed bool
}

// recognise returns the route of a request, false where it has none.
func recognise(method, escapedPath string) (match, bool) {
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

// fit compares path with the shape, which has as many slashes.
func (r *route) fit(path string) (m match, ok bool) {
	m.route = r
	ok = fits(r.shape, path, func(place, segment string) (ok bool) {
		switch place {
		case "{index}":
			m.index, ok = indexOf(segment)
		case "{type}":
			m.typed, ok = true, isType(segment)
		case "{id}":
			ok = segment != ""
		}
		return ok
	})
	return m, ok
}

// fits compares path with a shape that has as many slashes. Literal segments
// have to be equal; take is called for each of the others, such as {id}, with
// what stands in its place, and reports whether that may stand there.
func fits(shape, path string, take func(place, segment string) bool) bool {
	for shape != "" {
		var want, got string
		want, shape = cutSegment(shape)
		got, path = cutSegment(path)
		ok := want == got
		if strings.HasPrefix(want, "{") {
			ok = take(want, got)
		}
		if !ok {
			return false
		}
	}
	return true
}

// cutSegment returns the first segment of path, without its slash, and what
// follows.
func cutSegment(path string) (segment, rest string) {
	path = strings.TrimPrefix(path, "/")
	if at := strings.IndexByte(path, '/'); at >= 0 {
		return path[:at], path[at:]
	}
	return path, ""
}

// indexOf unescapes a segment that stands where an index expression can stand,
// and reports whether it is one. Names of indices do not begin with an
// underscore, names of other things do: POST /_scripts/_search stores a script.
func indexOf(segment string) (string, bool) {
	index, err := url.PathUnescape(segment)
	if err != nil || index == "" || index[0] == '_' && index != "_all" {
		return "", false
	}
	return index, true
}

// isType reports whether a segment can name mapping types. No type but _doc
// begins with an underscore.
func isType(segment string) bool {
	name, err := url.PathUnescape(segment)
	return err == nil && name != "" && (name[0] != '_' || name == "_doc")
}
