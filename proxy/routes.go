package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand"
)

// A route is a row of the table of what is recognised.
type route struct {
	// methods are the HTTP methods.
	methods []string
	// shape is the escaped path: literal segments, and {index} for an index
	// expression. Slashes at the end of a path do not count, as in
	// Elasticsearch.
	shape string
	// endpoint is what the expander is told.
	endpoint expand.Endpoint
	// serve does what is done with it.
	serve func(s *Server, w http.ResponseWriter, r *http.Request, m match)
}

// routes lists every kind of request that is not simply forwarded. Paths are
// compared in their escaped form, as Elasticsearch does: /i/%5Fsearch is no
// search.
var routes = []route{
	{[]string{http.MethodGet, http.MethodPost}, "/_search", expand.EndpointSearch, (*Server).search},
	{[]string{http.MethodGet, http.MethodPost}, "/{index}/_search", expand.EndpointSearch, (*Server).search},
}

// A match is a route with what the path says for it.
type match struct {
	*route
	// index is the index expression, unescaped; "" is all indices.
	index string
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
		if index, ok := fit(r.shape, path); ok {
			return match{route: r, index: index}, true
		}
	}
	return match{}, false
}

// fit compares path with a shape of as many slashes and returns the index
// expression.
func fit(shape, path string) (index string, ok bool) {
	for shape != "" {
		var want, got string
		want, shape = cutSegment(shape)
		got, path = cutSegment(path)
		switch {
		case want == "{index}":
			if index, ok = indexOf(got); !ok {
				return "", false
			}
		case want != got:
			return "", false
		}
	}
	return index, true
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
