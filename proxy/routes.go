package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/akin-search/akin/expand"
)

// A route is one row of the table of searches.
type route struct {
	// methods are the HTTP methods.
	methods []string
	// shape is the escaped path; {index} stands for an index expression, {id} for
	// a document. Slashes at the end are ignored, as in Elasticsearch.
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

// isAsync reports whether the answer may come later and in parts.
func (r *route) isAsync() bool { return strings.HasSuffix(r.shape, "/_async_search") }

// isTemplate reports whether the cluster has to render the search.
func (r *route) isTemplate() bool { return strings.HasSuffix(r.shape, "/template") }

// A match is a route and the index in the path.
type match struct {
	*route
	// index is the unescaped index expression; "" means all indices.
	index string
}

// newEngine returns a gin engine without routes, logs and redirects, which lets
// panics through.
func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // else gin prints its routes to stdout
	e := gin.New()
	e.RedirectTrailingSlash = false
	return e
}

// ginNames turns a shape into a path of gin.
var ginNames = strings.NewReplacer("{index}", ":index", "{id}", ":id")

// newRouter returns the engine of the clients' port. It calls search for what
// fits a row of routes, and forward for all else. [dispatch] gives it requests.
func newRouter(search func(w *relay, r *http.Request, m match), forward func(w *relay, r *http.Request)) *gin.Engine {
	e := newEngine()
	e.UseEscapedPath, e.UnescapePathValues = true, false // %2F, as in date math, belongs to a name
	for i := range routes {
		handle := func(c *gin.Context) {
			a := arrivalOf(c)
			if index, ok := indexOf(c); ok {
				search(a.client, a.request, match{&routes[i], index})
			} else {
				forward(a.client, a.request)
			}
		}
		e.Match(routes[i].methods, ginNames.Replace(routes[i].shape), handle)
	}
	e.NoRoute(func(c *gin.Context) {
		a := arrivalOf(c)
		forward(a.client, a.request)
	})
	return e
}

// indexOf returns the index in the path, if any, or false if it is none: other
// names begin with "_", as in POST /_scripts/_search, which stores a script.
func indexOf(c *gin.Context) (index string, ok bool) {
	escaped, named := c.Params.Get("index")
	if !named {
		return "", true
	}
	index, err := url.PathUnescape(escaped)
	return index, err == nil && index != "" && (index[0] != '_' || index == "_all")
}

// An arrival is a request on its way through gin, which takes it for the writer
// of the answer. gin's own writer keeps 1xx answers back, and gin adds a 404 to
// what NoRoute has answered. So handlers write to the client, and what gin
// writes goes nowhere.
type arrival struct {
	client  *relay
	request *http.Request // as it came
}

// dispatch has e handle a request. Slashes at the end of the path do not count.
func dispatch(e *gin.Engine, w *relay, r *http.Request) {
	routed := r
	if strings.HasSuffix(r.URL.Path, "/") {
		escaped := strings.TrimRight(r.URL.EscapedPath(), "/")
		path, err := url.PathUnescape(escaped)
		if err == nil {
			routed = r.WithContext(r.Context())
			routed.URL = &url.URL{Path: path, RawPath: escaped}
		}
	}
	e.ServeHTTP(&arrival{w, r}, routed)
}

// arrivalOf returns the request that gin handles.
func arrivalOf(c *gin.Context) *arrival {
	c.Writer.WriteHeaderNow() // so that gin does not add a 404
	return c.Writer.(interface{ Unwrap() http.ResponseWriter }).Unwrap().(*arrival)
}

// Header returns a header that is not sent.
func (*arrival) Header() http.Header { return http.Header{} }

// WriteHeader does nothing.
func (*arrival) WriteHeader(int) {}

// Write does nothing.
func (*arrival) Write(p []byte) (int, error) { return len(p), nil }
