package demo

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of request bodies in bytes.
const (
	maxBody     = 1 << 20
	maxBulkBody = 64 << 20
)

// rawJSON is JSON that is passed on as it is.
type rawJSON = jsontext.Value

// A call is one request being answered.
type call struct {
	*http.Request
	params url.Values
	body   []byte
}

// handler answers a call with a status and a body: a string is plain text, nil
// is none, everything else JSON.
type handler func(c *call) (status int, body any, err error)

// indexHandler answers a call that is about the indices that its path names.
type indexHandler func(c *call, indices []*index) (status int, body any, err error)

// reading and writing return handlers that hold the engine's lock.
func (e *Engine) reading(h indexHandler) handler { return e.locked(e.mu.RLocker(), h) }
func (e *Engine) writing(h indexHandler) handler { return e.locked(&e.mu, h) }

func (e *Engine) locked(lock sync.Locker, h indexHandler) handler {
	return func(c *call) (int, any, error) {
		lock.Lock()
		defer lock.Unlock()
		indices, err := e.resolve(c.PathValue("index"), c.flag("ignore_unavailable"))
		if err != nil {
			return 0, nil, err
		}
		return h(c, indices)
	}
}

// parameters are the parameters of the query string that the engine acts on,
// or that cannot change an answer of an engine with one node and one shard.
// Any other is refused, as the real engines do.
func parameters() []string {
	return strings.Fields("q df analyzer default_operator lenient from size sort _source _source_includes _source_excludes " +
		"scroll scroll_id track_total_hits terminate_after explain source source_content_type ignore_unavailable op_type " +
		"flat_settings pretty format v search_type preference routing timeout request_cache allow_no_indices " +
		"expand_wildcards rest_total_hits_as_int typed_keys batched_reduce_size ccs_minimize_roundtrips " +
		"max_concurrent_shard_requests pre_filter_shard_size allow_partial_search_results refresh wait_for_active_shards " +
		"master_timeout cluster_manager_timeout local human error_trace filter_path realtime wait_for_status " +
		"wait_for_no_relocating_shards level ignore_throttled")
}

// routes lists the endpoints.
func (e *Engine) routes() *http.ServeMux {
	mux := http.NewServeMux()
	known := parameters()
	handle := func(limit int64, h handler, patterns ...string) {
		for _, pattern := range patterns {
			mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { serve(w, r, h, limit, known) })
		}
	}
	handle(maxBody, e.info, "GET /{$}")
	handle(maxBody, e.health, "GET /_cluster/health", "GET /_cluster/health/{index}")
	handle(maxBody, e.reading(cat), "GET /_cat/indices", "GET /_cat/indices/{index}")
	handle(maxBody, e.createIndex, "PUT /{index}")
	handle(maxBody, e.writing(e.deleteIndex), "DELETE /{index}")
	handle(maxBody, e.reading(getIndex), "GET /{index}")
	handle(maxBody, e.reading(getMapping), "GET /{index}/_mapping", "GET /_mapping")
	handle(maxBody, e.writing(e.putMapping), "PUT /{index}/_mapping", "POST /{index}/_mapping")
	handle(maxBody, e.reading(getSettings), "GET /{index}/_settings", "GET /_settings")
	handle(maxBody, e.reading(refresh), "POST /{index}/_refresh", "GET /{index}/_refresh", "POST /_refresh", "GET /_refresh")
	handle(maxBody, e.analyze, "POST /{index}/_analyze", "GET /{index}/_analyze", "POST /_analyze", "GET /_analyze")
	handle(maxBody, e.termVectors, "POST /{index}/_termvectors", "GET /{index}/_termvectors")
	handle(maxBulkBody, e.bulk, "POST /_bulk", "PUT /_bulk", "POST /{index}/_bulk", "PUT /{index}/_bulk")
	handle(maxBody, e.putDocument, "PUT /{index}/_doc/{id}", "POST /{index}/_doc/{id}", "POST /{index}/_doc",
		"PUT /{index}/_create/{id}", "POST /{index}/_create/{id}")
	handle(maxBody, e.getDocument, "GET /{index}/_doc/{id}")
	handle(maxBody, e.deleteDocument, "DELETE /{index}/_doc/{id}")
	handle(maxBody, e.reading(e.search), "GET /{index}/_search", "POST /{index}/_search", "GET /_search", "POST /_search")
	handle(maxBody, e.reading(count), "GET /{index}/_count", "POST /{index}/_count", "GET /_count", "POST /_count")
	handle(maxBody, e.scrollOn, "GET /_search/scroll", "POST /_search/scroll")
	handle(maxBody, e.scrollEnd, "DELETE /_search/scroll", "DELETE /_search/scroll/{id}")
	handle(maxBody, noHandler, "/")
	return mux
}

func noHandler(c *call) (int, any, error) {
	return 0, nil, badRequest("illegal_argument_exception",
		"no handler found for uri [%s] and method [%s]: the embedded engine does not serve it", c.URL.RequestURI(), c.Method)
}

// serve reads the body within limit, calls h and writes its answer.
func serve(w http.ResponseWriter, r *http.Request, h handler, limit int64, known []string) {
	status, body, err := answer(w, r, h, limit, known)
	if err != nil {
		e, ok := errors.AsType[*apiError](err)
		if !ok {
			e = &apiError{status: http.StatusInternalServerError, kind: "exception", reason: err.Error()}
		}
		status, body = e.status, e.body()
	}
	if text, ok := body.(string); ok {
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) //nolint:gosec // plain text; and a client that went away needs no answer
		return
	}
	options := []json.Options{json.Deterministic(true)}
	if pretty := r.URL.Query()["pretty"]; len(pretty) > 0 && pretty[0] != "false" {
		options = append(options, jsontext.WithIndent("  "))
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	if body != nil && r.Method != http.MethodHead {
		_ = json.MarshalWrite(w, body, options...) // as above
	}
}

func answer(w http.ResponseWriter, r *http.Request, h handler, limit int64, known []string) (int, any, error) {
	if index := r.PathValue("index"); strings.HasPrefix(index, "_") && index != "_all" {
		h = noHandler
	}
	c := &call{Request: r, params: r.URL.Query()}
	for _, name := range slices.Sorted(maps.Keys(c.params)) {
		if !slices.Contains(known, name) {
			return 0, nil, badRequest("illegal_argument_exception", "request [%s] contains unrecognized parameter: [%s]", r.URL.Path, name)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return 0, nil, &apiError{
				status: http.StatusRequestEntityTooLarge, kind: "content_too_long_exception", reason: "the request body is larger than allowed",
			}
		}
		return 0, nil, badRequest("illegal_argument_exception", "the request body cannot be read: %v", err)
	}
	c.body = body
	if err := checkContentType(r, body); err != nil {
		return 0, nil, err
	}
	return h(c)
}

// checkContentType refuses what a real engine refuses, a body that does not
// say it is JSON, so that a client that works here works there.
func checkContentType(r *http.Request, body []byte) error {
	if len(body) == 0 {
		return nil
	}
	contentType := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(contentType)
	if err == nil && (kind == "application/json" || kind == "application/x-ndjson") && r.Header.Get("Content-Encoding") == "" {
		return nil
	}
	return &apiError{
		status: http.StatusNotAcceptable, kind: "media_type_header_exception",
		reason: "Content-Type header [" + contentType + "] is not supported, or the body is compressed",
	}
}

// decodeJSON reads one JSON value. Duplicate names are refused, as by the real
// engines since 6.0.
func decodeJSON(data []byte) (any, error) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, badRequest("json_parse_exception", "%v", err)
	}
	return v, nil
}

// decoded returns the body as a JSON value, nil where there is none. For GET
// it may stand in the parameter source.
func (c *call) decoded() (any, error) {
	body := c.body
	if len(body) == 0 {
		body = []byte(c.params.Get("source"))
	}
	if len(body) == 0 {
		return nil, nil //nolint:nilnil // no body is no value
	}
	return decodeJSON(body)
}

// members returns a reader of the body, an object that may be missing.
func (c *call) members(name string) *args {
	body, err := c.decoded()
	if body == nil {
		body = map[string]any{}
	}
	a := newArgs(name, body)
	if err != nil {
		a.err = err
	}
	return a
}

// flag reports whether a parameter is set to something other than false.
func (c *call) flag(name string) bool {
	return c.params.Has(name) && c.params.Get(name) != "false"
}

// An apiError is an error that is answered in the engines' shape.
type apiError struct {
	status       int
	kind, reason string
	detail       map[string]any // further members of the error object
}

// Error returns kind and reason.
func (e *apiError) Error() string { return e.kind + ": " + e.reason }

// body returns the answer that carries e.
func (e *apiError) body() map[string]any {
	object := map[string]any{"type": e.kind, "reason": e.reason}
	maps.Copy(object, e.detail)
	whole := map[string]any{"root_cause": []any{object}}
	maps.Copy(whole, object)
	return map[string]any{"error": whole, "status": e.status}
}

func badRequest(kind, format string, args ...any) error {
	return &apiError{status: http.StatusBadRequest, kind: kind, reason: fmt.Sprintf(format, args...)}
}

func parsingError(format string, args ...any) error {
	return badRequest("parsing_exception", format, args...)
}

func mapperError(format string, args ...any) error {
	return badRequest("mapper_parsing_exception", format, args...)
}

// unsupported names a feature of the real engines that this one lacks.
func unsupported(format string, args ...any) error {
	return badRequest("illegal_argument_exception", "the embedded engine does not support "+format, args...)
}

func indexNotFound(name string) error {
	return &apiError{
		status: http.StatusNotFound, kind: "index_not_found_exception", reason: "no such index [" + name + "]",
		detail: map[string]any{"index": name, "index_uuid": "_na_", "resource.id": name, "resource.type": "index_or_alias"},
	}
}

// scriptError refuses a script as the engines refuse one that does not compile.
func scriptError(reason, source string) error {
	return &apiError{
		status: http.StatusBadRequest, kind: "script_exception", reason: reason,
		detail: map[string]any{"script": strings.ToValidUTF8(source, "\uFFFD"), "lang": "painless"},
	}
}
