// Package demo is a small search engine held in memory, and a corpus to try it
// on. It serves the part of Elasticsearch's HTTP interface that akin and its
// demonstration need, with the terms and the BM25 scores of the real engines:
// on the same documents its scores agree with those of Elasticsearch 7, 8 and
// OpenSearch 2 to a relative error under 1e-4.
//
// # What it is not
//
// It keeps no positions, so there are no phrases; it has one shard, no
// aggregations, no aliases, and of scripts it knows akin's own, by their text:
// [ScriptInvert], [ScriptSaturate] and [ScriptProbe]. It makes no terms of
// emoji and of Thai, Lao, Burmese and Khmer script. It refuses what it does not
// know with status 400 and an error that names it: it ignores nothing that
// would change an answer, except filter_path, which only shortens it.
package demo

import (
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The engine's answer to GET /. It does not claim to be Elasticsearch; the
// version tells clients which interface to expect.
const (
	distribution = "akin-demo"
	version      = "8.0.0"
	nodeName     = "akin-demo-node"
)

// indexEpoch dates the index that queries over no index are parsed against.
var indexEpoch = time.Unix(0, 0)

// An Engine is a search engine in memory and an [http.Handler] that answers
// like Elasticsearch. What is written is searchable at once. It is safe for
// concurrent use: a request sees other writes completely or not at all, and
// one bulk request counts as one write.
type Engine struct {
	analyzers map[string]*analyzer
	uuid      string
	now       func() time.Time
	mux       *http.ServeMux

	mu      sync.RWMutex
	indices map[string]*index

	scrolls scrolls
}

// NewEngine returns an engine without indices.
func NewEngine() *Engine {
	e := &Engine{analyzers: analyzers(), uuid: rand.Text(), now: time.Now, indices: map[string]*index{}}
	e.scrolls.open = map[string]*scroll{}
	e.mux = e.routes()
	return e
}

// ServeHTTP answers one request. Bodies are bounded: 64 MiB for _bulk, 1 MiB
// for everything else.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(w, r) }

// resolve returns the indices that an index expression names, sorted: names
// and wildcards, separated by commas; "", "_all" and "*" are all of them. A
// name that does not exist is an error unless lenient.
func (e *Engine) resolve(expression string, lenient bool) ([]*index, error) {
	if expression == "" || expression == "_all" {
		expression = "*"
	}
	found := map[string]*index{}
	for part := range strings.SplitSeq(expression, ",") {
		if strings.Contains(part, "*") {
			for name, ix := range e.indices {
				if wildcard(part, name) {
					found[name] = ix
				}
			}
			continue
		}
		ix := e.indices[part]
		if ix == nil && lenient {
			continue
		}
		if ix == nil {
			return nil, indexNotFound(part)
		}
		found[part] = ix
	}
	out := make([]*index, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out, nil
}

// single returns the one index of that name.
func (e *Engine) single(name string) (*index, error) {
	ix := e.indices[name]
	if ix == nil {
		return nil, indexNotFound(name)
	}
	return ix, nil
}

// create makes an index. The caller holds the lock.
func (e *Engine) create(name string) (*index, error) {
	if e.indices[name] != nil {
		return nil, &apiError{
			status: http.StatusBadRequest, kind: "resource_already_exists_exception",
			reason: "index [" + name + "] already exists", detail: map[string]any{"index": name},
		}
	}
	bad := name == "" || name == "." || name == ".." || len(name) > 255 || strings.ToLower(name) != name ||
		strings.ContainsAny(name, "\\/*?\"<>| ,#:") || strings.ContainsAny(name[:1], "-_+")
	if bad {
		return nil, badRequest("invalid_index_name_exception", "Invalid index name [%s]", name)
	}
	ix := newIndex(name, rand.Text(), e.now(), e.analyzers)
	e.indices[name] = ix
	return ix, nil
}

// writable returns the index of that name and makes it where it is missing.
func (e *Engine) writable(name string) (*index, error) {
	if ix := e.indices[name]; ix != nil {
		return ix, nil
	}
	return e.create(name)
}
