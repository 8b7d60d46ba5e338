package demo

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// info does not claim to be Elasticsearch; the version tells clients which
// interface to expect.
func (e *Engine) info(*call) any {
	return map[string]any{
		"name": "akin-demo-node", "cluster_name": "akin-demo", "cluster_uuid": e.uuid,
		"version": map[string]any{"distribution": "akin-demo", "number": "8.0.0"},
		"tagline": "An engine in memory to try akin on",
	}
}

// createIndex refuses settings that would change terms, scores or shards. It
// ignores the number of replicas.
func (e *Engine) createIndex(c *call) any {
	a := newArgs("create_index", c.decoded())
	definition, settings := a.object("mappings"), newArgs("settings", a.object("settings"))
	a.done()
	if n := settings.integer("number_of_shards", 1); n != 1 {
		panic(unsupported("[%d] shards, but one", n))
	}
	settings.ignore("number_of_replicas")
	settings.done()
	ix := e.create(c.PathValue("index"), definition)
	return map[string]any{"acknowledged": true, "shards_acknowledged": true, "index": ix.name}
}

// describe answers with the settings of indices, flat as "index.uuid" or
// nested, and, except for _settings, with their mappings.
func (e *Engine) describe(c *call) any {
	out := map[string]any{}
	for _, ix := range e.named(c) {
		var settings any = map[string]any{"index": map[string]any{"number_of_shards": "1", "uuid": ix.uuid}}
		if c.flag("flat_settings") {
			settings = map[string]any{"index.number_of_shards": "1", "index.uuid": ix.uuid}
		}
		if strings.HasSuffix(c.Pattern, "/_settings") {
			out[ix.name] = map[string]any{"settings": settings}
			continue
		}
		out[ix.name] = map[string]any{"settings": settings, "aliases": struct{}{}, "mappings": struct {
			Properties map[string]any `json:"properties,omitempty"`
		}{ix.mapping.properties}}
	}
	return out
}

type operation struct {
	id     string
	source []byte
}

// bulk writes many documents. A line that is not JSON, or an unknown action,
// fails the whole request before anything is written.
func (e *Engine) bulk(c *call) any {
	ix, ops := e.single(c.PathValue("index")), parseBulk(c.body)
	items := make([]any, len(ops))
	failed := false
	for i, op := range ops {
		item := map[string]any{"_index": ix.name, "_id": op.id, "status": http.StatusCreated, "result": "created"}
		if refused := caught(func() { ix.put(op.id, op.source) }); refused != nil {
			failed = true
			item = map[string]any{"_index": ix.name, "_id": op.id, "status": refused.status, "error": refused.object()}
		}
		items[i] = map[string]any{"index": item}
	}
	return map[string]any{"took": c.took(), "errors": failed, "items": items}
}

func parseBulk(body []byte) (ops []operation) {
	values := jsontext.NewDecoder(bytes.NewReader(body))
	next := func() jsontext.Value {
		v, err := values.ReadValue()
		if err != nil && !errors.Is(err, io.EOF) {
			panic(notJSON(err))
		}
		return v.Clone()
	}
	for line := next(); line != nil; line = next() {
		action, meta := newArgs("bulk", decodeJSON(line)).sole()
		if action != "index" {
			panic(illegal("Malformed action/metadata line, expected [index] but found [%s]", action))
		}
		a := newArgs(action, meta)
		op := operation{a.str("_id", rand.Text()), next()}
		a.done()
		if op.source == nil {
			panic(illegal("the last action has no document"))
		}
		ops = append(ops, op)
	}
	return ops
}
