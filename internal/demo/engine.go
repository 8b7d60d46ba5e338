// Package demo is a small search engine in memory, with a corpus. It serves the
// part of Elasticsearch's HTTP interface that akin and its demo need, with the
// terms and BM25 scores of the real engines: on the same documents its scores
// agree with those of Elasticsearch 7, 8 and OpenSearch 2 to a relative error
// under 1e-4.
//
// # Limits
//
// All fields are of type text. Documents are written in bulk and neither
// replaced nor deleted. It keeps no positions, so there are no phrases. It has
// one shard and no aggregations, highlights or aliases. It runs only akin's own
// scripts: [ScriptInvert], [ScriptSaturate] and [ScriptProbe]. It makes no
// terms of emoji, circled letters, and Thai, Lao, Burmese and Khmer script. It
// refuses what it does not know with status 400 and an error that names it. It
// ignores nothing that would change an answer, except filter_path, which only
// shortens it.
package demo

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/akin-search/akin/internal/glob"
)

// An Engine is a search engine in memory and an [http.Handler] that answers
// like Elasticsearch. Writes are searchable at once. It is safe for concurrent
// use: a request sees other writes completely or not at all, and one bulk
// request is one write.
type Engine struct {
	// NoScripts makes it refuse searches with scripts, like clusters whose
	// script.allowed_types or script.allowed_contexts exclude searches. Set it
	// before the first request.
	NoScripts bool

	uuid string
	mux  *http.ServeMux

	mu      sync.RWMutex // held while a request is answered
	indices map[string]*index
	scrolls map[string]*results
}

// named returns the indices that the path of c names, sorted: names and
// wildcards, separated by commas; "", "_all" and "*" mean all. Missing names
// are refused unless ignore_unavailable is set.
func (e *Engine) named(c *call) []*index {
	expression := c.PathValue("index")
	if expression == "" || expression == "_all" {
		expression = "*"
	}
	found := map[string]*index{}
	for part := range strings.SplitSeq(expression, ",") {
		if !strings.Contains(part, "*") && !c.flag("ignore_unavailable") {
			e.single(part)
		}
		for name, ix := range e.indices {
			if glob.Match(part, name) {
				found[name] = ix
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *index) int { return strings.Compare(a.name, b.name) })
}

func (e *Engine) single(name string) *index {
	if ix := e.indices[name]; ix != nil {
		return ix
	}
	panic(refuse(http.StatusNotFound, "index_not_found_exception", "no such index [%s]", name))
}

func (e *Engine) create(name string, definition map[string]any) *index {
	if e.indices[name] != nil {
		panic(refuse(http.StatusBadRequest, "resource_already_exists_exception", "index [%s] already exists", name))
	}
	if strings.ToLower(name) != name || strings.ContainsAny(name, "\\/*?\"<>| ,#:") || strings.ContainsAny(name[:1], ".-_+") {
		panic(refuse(http.StatusBadRequest, "invalid_index_name_exception", "Invalid index name [%s]", name))
	}
	ix := newIndex(name, newMapping(definition))
	e.indices[name] = ix
	return ix
}
