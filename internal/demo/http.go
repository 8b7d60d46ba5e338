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
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const maxBody, maxBulkBody = 1 << 20, 64 << 20

type call struct {
	*http.Request
	params  url.Values
	body    []byte
	started time.Time
	status  int // of the answer
}

// A handler returns the body of the answer, which becomes JSON, or panics with
// an [apiError] to refuse the request.
type handler func(c *call) any

// routes lists the endpoints: methods, paths, handler.
func (e *Engine) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for endpoints, h := range map[string]handler{
		"GET /{$}":                             e.info,
		"PUT /{index}":                         e.createIndex,
		"GET /{index}":                         e.describe("aliases", "mappings", "settings"),
		"GET /{index}/_mapping /_mapping":      e.describe("mappings"),
		"GET /{index}/_settings /_settings":    e.describe("settings"),
		"GET POST /{index}/_analyze /_analyze": e.analyze,
		"GET POST /{index}/_termvectors":       e.termVectors,
		"GET POST /_mtermvectors":              e.manyTermVectors,
		"PUT POST /{index}/_bulk /_bulk":       e.bulk,
		"PUT POST /{index}/_doc/{id}":          e.putDocument,
		"GET POST /{index}/_search /_search":   e.search,
		"GET POST /{index}/_count /_count":     e.count,
		"GET POST /_search/scroll":             e.nextPage,
		"DELETE /_search/scroll":               e.closeScrolls,
	} {
		words := strings.Fields(endpoints)
		firstPath := slices.IndexFunc(words, func(w string) bool { return w[0] == '/' })
		for _, path := range words[firstPath:] {
			for _, method := range words[:firstPath] {
				mux.Handle(method+" "+path, e.serve(h))
			}
		}
	}
	mux.Handle("/", e.serve(noHandler))
	return mux
}

func noHandler(c *call) any {
	panic(badRequest("illegal_argument_exception",
		"no handler found for uri [%s] and method [%s]: the embedded engine does not serve it", c.URL.RequestURI(), c.Method))
}

// serve answers requests by h: searches at the same time, others one by one.
func (e *Engine) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, params: r.URL.Query(), status: http.StatusOK}
		var body any
		if refusal := caught(func() {
			c.read(w)
			if strings.HasSuffix(r.Pattern, "/_search") && !c.params.Has("scroll") { // of the path a document may be the end
				e.mu.RLock()
				defer e.mu.RUnlock()
			} else {
				e.mu.Lock()
				defer e.mu.Unlock()
			}
			c.started = e.now()
			if index := r.PathValue("index"); strings.HasPrefix(index, "_") && index != "_all" {
				noHandler(c)
			}
			body = h(c)
		}); refusal != nil {
			c.status, body = refusal.status, refusal.body()
		}
		options := []json.Options{json.Deterministic(true)}
		if c.flag("pretty") {
			options = append(options, jsontext.WithIndent("  "))
		}
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(c.status)
		_ = json.MarshalWrite(w, body, options...) // a client that went away needs no answer
	}
}

// knownParameters are the parameters of the query string that the engine acts
// on, or that cannot change an answer of an engine with one node and one shard.
// It refuses any other, as the real engines do.
const knownParameters = "q df default_operator from size scroll track_total_hits terminate_after explain ignore_unavailable " +
	"flat_settings pretty search_type preference routing timeout request_cache allow_no_indices " +
	"expand_wildcards rest_total_hits_as_int typed_keys batched_reduce_size ccs_minimize_roundtrips " +
	"max_concurrent_shard_requests pre_filter_shard_size allow_partial_search_results refresh wait_for_active_shards " +
	"master_timeout cluster_manager_timeout local human error_trace filter_path realtime ignore_throttled"

// read checks the parameters and reads the body. Like a real engine it refuses
// a body that does not say it is JSON: a client that works here works there.
func (c *call) read(w http.ResponseWriter) {
	known := strings.Fields(knownParameters)
	if c.URL.Path == "/_mtermvectors" {
		known = append(known, vectorParameters()...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.params)) {
		if !slices.Contains(known, name) {
			panic(badRequest("illegal_argument_exception", "request [%s] contains unrecognized parameter: [%s]", c.URL.Path, name))
		}
	}
	limit := int64(maxBody)
	if strings.HasSuffix(c.URL.Path, "/_bulk") {
		limit = maxBulkBody
	}
	var err error
	c.body, err = io.ReadAll(http.MaxBytesReader(w, c.Body, limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		panic(&apiError{http.StatusRequestEntityTooLarge, "content_too_long_exception", "the request body is larger than allowed", nil})
	} else if err != nil {
		panic(badRequest("illegal_argument_exception", "the request body cannot be read: %v", err))
	}
	kind, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	isJSON := err == nil && (kind == "application/json" || kind == "application/x-ndjson") && c.Header.Get("Content-Encoding") == ""
	if len(c.body) > 0 && !isJSON {
		panic(&apiError{
			http.StatusNotAcceptable, "media_type_header_exception",
			"Content-Type header [" + c.Header.Get("Content-Type") + "] is not supported, or the body is compressed", nil,
		})
	}
}

// decodeJSON reads one JSON value. Duplicate names are refused, as by the real
// engines since 6.0.
func decodeJSON(data []byte) (v any) {
	if err := json.Unmarshal(data, &v); err != nil {
		panic(badRequest("json_parse_exception", "%v", err))
	}
	return v
}

// decoded returns the body as a JSON value; none is an empty object.
func (c *call) decoded() any {
	if len(c.body) == 0 {
		return map[string]any{}
	}
	return decodeJSON(c.body)
}

// flag reports whether a parameter is set to something other than false.
func (c *call) flag(name string) bool { return c.params.Has(name) && c.params.Get(name) != "false" }

// An apiError refuses a request in the engines' shape. It is raised as a panic,
// and caught by the request, or the item of a bulk request, that it belongs to.
type apiError struct {
	status       int
	kind, reason string
	detail       map[string]any // further members of the error object
}

// caught calls f and returns the apiError that it panics with, nil if none.
func caught(f func()) (refusal *apiError) {
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if refusal, ok = r.(*apiError); !ok {
				panic(r)
			}
		}
	}()
	f()
	return nil
}

func (e *apiError) body() map[string]any {
	object := map[string]any{"type": e.kind, "reason": e.reason}
	maps.Copy(object, e.detail)
	whole := maps.Clone(object)
	whole["root_cause"] = []any{object}
	return map[string]any{"error": whole, "status": e.status}
}

func badRequest(kind, format string, args ...any) *apiError {
	return &apiError{http.StatusBadRequest, kind, fmt.Sprintf(format, args...), nil}
}

func parsingError(format string, args ...any) *apiError {
	return badRequest("parsing_exception", format, args...)
}

func mapperError(format string, args ...any) *apiError {
	return badRequest("mapper_parsing_exception", format, args...)
}

// unsupported names a feature of the real engines that this one lacks.
func unsupported(format string, args ...any) *apiError {
	return badRequest("illegal_argument_exception", "the embedded engine does not support "+format, args...)
}
