package demo

import (
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const maxBody, maxBulkBody = 1 << 20, 64 << 20

type call struct {
	*http.Request
	params  url.Values
	body    []byte
	started time.Time
	status  int // of the answer
}

// knownParameters are the query parameters that the engine acts on, or that
// change no answer of an engine with one node and one shard. It refuses others,
// as the real engines do.
const knownParameters = "q size scroll track_total_hits terminate_after explain ignore_unavailable " +
	"flat_settings pretty search_type preference routing timeout request_cache allow_no_indices " +
	"expand_wildcards rest_total_hits_as_int typed_keys batched_reduce_size ccs_minimize_roundtrips " +
	"max_concurrent_shard_requests pre_filter_shard_size allow_partial_search_results refresh wait_for_active_shards " +
	"master_timeout cluster_manager_timeout local human error_trace filter_path realtime ignore_throttled " +
	"positions offsets payloads term_statistics field_statistics index"

// read checks the parameters and reads the body. Like a real engine it refuses
// a body not said to be JSON: a client that works here works there.
func (c *call) read(w http.ResponseWriter) {
	known := strings.Fields(knownParameters)
	for _, name := range slices.Sorted(maps.Keys(c.params)) {
		if !slices.Contains(known, name) {
			panic(illegal("request [%s] contains unrecognized parameter: [%s]", c.URL.Path, name))
		}
	}
	limit := int64(maxBody)
	if strings.HasSuffix(c.URL.Path, "/_bulk") {
		limit = maxBulkBody
	}
	var err error
	c.body, err = io.ReadAll(http.MaxBytesReader(w, c.Body, limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		panic(refuse(http.StatusRequestEntityTooLarge, "content_too_long_exception", "the request body is larger than allowed"))
	} else if err != nil {
		panic(illegal("the request body cannot be read: %v", err))
	}
	kind, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	isJSON := err == nil && (kind == "application/json" || kind == "application/x-ndjson") && c.Header.Get("Content-Encoding") == ""
	if len(c.body) > 0 && !isJSON {
		panic(refuse(http.StatusNotAcceptable, "media_type_header_exception",
			"Content-Type header [%s] is not supported, or the body is compressed", c.Header.Get("Content-Type")))
	}
}

// decoded returns the body as a JSON value, an empty object if there is none.
func (c *call) decoded() any {
	if len(c.body) == 0 {
		return map[string]any{}
	}
	return decodeJSON(c.body)
}

// flag reports whether a parameter is set to something other than false.
func (c *call) flag(name string) bool { return c.params.Has(name) && c.params.Get(name) != "false" }

func (c *call) took() int64 { return time.Since(c.started).Milliseconds() }
