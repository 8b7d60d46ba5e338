// Package demo is a small search engine in memory, and a corpus to try it on.
// It serves the part of Elasticsearch's HTTP interface that akin and its
// demonstration need, with the terms and the BM25 scores of the real engines:
// on the same documents its scores agree with those of Elasticsearch 7, 8 and
// OpenSearch 2 to a relative error under 1e-4.
//
// # What it is not
//
// It has fields of type text and keyword only. Documents are written in bulk
// and neither replaced nor deleted. It keeps no positions, so there are no
// phrases; it has one shard, no aggregations, highlights or aliases, and of
// scripts it knows akin's own, by their text: [ScriptInvert], [ScriptSaturate]
// and [ScriptProbe]. It makes no terms of emoji, of circled letters and of
// Thai, Lao, Burmese and Khmer script. It refuses what it does not know with
// status 400 and an error that names it: it ignores nothing that would change
// an answer, except filter_path, which only shortens it.
package demo

import (
	"context"
	"crypto/rand"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const clusterName, nodeName = "akin-demo", "akin-demo-node"

// An Engine is a search engine in memory and an [http.Handler] that answers
// like Elasticsearch. What is written is searchable at once. It is safe for
// concurrent use: a request sees other writes completely or not at all, and
// one bulk request counts as one write.
type Engine struct {
	// NoScripts has searches with scripts refused, as clusters do whose
	// script.allowed_types or script.allowed_contexts leave searches out. It is
	// set before the first request.
	NoScripts bool

	analyzers map[string]*analyzer
	uuid      string
	now       func() time.Time
	mux       *http.ServeMux

	mu      sync.RWMutex // held while a request is being answered
	indices map[string]*index
	scrolls map[string]*scroll
}

// NewEngine returns an engine without indices.
func NewEngine() *Engine {
	e := &Engine{
		analyzers: analyzers(), uuid: rand.Text(), now: time.Now, indices: map[string]*index{}, scrolls: map[string]*scroll{},
	}
	e.mux = e.routes()
	return e
}

// ServeHTTP answers one request. Bodies are bounded: 64 MiB for _bulk, 1 MiB
// for everything else.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(w, r) }

// Serve answers on a free port until stop is called.
func (e *Engine) Serve(ctx context.Context) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with ErrServerClosed
	}()
	return "http://" + l.Addr().String(), func() {
		_ = server.Close()
		<-done
	}, nil
}

// took returns the milliseconds since c arrived.
func (e *Engine) took(c *call) int64 { return e.now().Sub(c.started).Milliseconds() }

// named returns the indices that the path of c names, sorted: names and
// wildcards, separated by commas; "", "_all" and "*" are all of them. A name
// that does not exist is an error unless ignore_unavailable is set.
func (e *Engine) named(c *call) []*index {
	expression := c.PathValue("index")
	if expression == "" || expression == "_all" {
		expression = "*"
	}
	found := map[string]*index{}
	for part := range strings.SplitSeq(expression, ",") {
		switch ix := e.indices[part]; {
		case ix != nil:
			found[part] = ix
		case strings.Contains(part, "*"):
			for name, ix := range e.indices {
				if wildcard(part, name) {
					found[name] = ix
				}
			}
		case !c.flag("ignore_unavailable"):
			e.single(part)
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *index) int { return strings.Compare(a.name, b.name) })
}

func (e *Engine) single(name string) *index {
	if ix := e.indices[name]; ix != nil {
		return ix
	}
	panic(&apiError{http.StatusNotFound, "index_not_found_exception", "no such index [" + name + "]", map[string]any{
		"index": name, "index_uuid": "_na_", "resource.id": name, "resource.type": "index_or_alias",
	}})
}

func (e *Engine) create(name string, definition map[string]any) *index {
	if e.indices[name] != nil {
		panic(&apiError{
			http.StatusBadRequest, "resource_already_exists_exception", "index [" + name + "] already exists", map[string]any{"index": name},
		})
	}
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ToLower(name) != name ||
		strings.ContainsAny(name, "\\/*?\"<>| ,#:") || strings.ContainsAny(name[:1], "-_+") {
		panic(badRequest("invalid_index_name_exception", "Invalid index name [%s]", name))
	}
	ix := newIndex(name, e.now(), newMapping(definition, e.analyzers))
	e.indices[name] = ix
	return ix
}

// info does not claim to be Elasticsearch; the version says to clients which
// interface to expect.
func (e *Engine) info(*call) any {
	return map[string]any{
		"name": nodeName, "cluster_name": clusterName, "cluster_uuid": e.uuid,
		"version": map[string]any{"distribution": clusterName, "number": "8.0.0"},
		"tagline": "An engine in memory to try akin on",
	}
}

// createIndex refuses settings that would change terms, scores or shards. The
// number of replicas is only reported.
func (e *Engine) createIndex(c *call) any {
	a := newArgs("create_index", c.decoded())
	definition, settings := a.object("mappings"), newArgs("settings", a.object("settings"))
	a.done()
	if n := settings.integer("number_of_shards", 1); n != 1 {
		panic(unsupported("[%d] shards, but one", n))
	}
	replicas := settings.str("number_of_replicas", "1")
	settings.done()
	ix := e.create(c.PathValue("index"), definition)
	ix.replicas = replicas
	return map[string]any{"acknowledged": true, "shards_acknowledged": true, "index": ix.name}
}

func (e *Engine) describe(members ...string) handler {
	return func(c *call) any {
		out := map[string]any{}
		for _, ix := range e.named(c) {
			object := map[string]any{"aliases": struct{}{}, "settings": ix.settings(c.flag("flat_settings")), "mappings": struct {
				Properties map[string]any `json:"properties,omitempty"`
			}{ix.mapping.properties}}
			maps.DeleteFunc(object, func(name string, _ any) bool { return !slices.Contains(members, name) })
			out[ix.name] = object
		}
		return out
	}
}

// settings returns the settings of an index, flat as "index.uuid" or nested.
func (ix *index) settings(flat bool) map[string]any {
	prefix := ""
	if flat {
		prefix = "index."
	}
	settings := map[string]any{
		prefix + "number_of_shards": "1", prefix + "number_of_replicas": ix.replicas, prefix + "provided_name": ix.name,
		prefix + "uuid": ix.uuid, prefix + "creation_date": strconv.FormatInt(ix.created.UnixMilli(), 10),
	}
	if flat {
		return settings
	}
	return map[string]any{"index": settings}
}

func shards(n int, search bool) map[string]any {
	out := map[string]any{"total": n, "successful": n, "failed": 0}
	if search {
		out["skipped"] = 0
	}
	return out
}
