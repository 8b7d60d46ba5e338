package demo

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// An operation is one write, of a new document.
type operation struct {
	id     string
	source []byte
}

// apply carries out a write and returns its entry in the answer.
func (op operation) apply(ix *index) map[string]any {
	if _, known := ix.known[op.id]; known {
		panic(refuse(http.StatusConflict, "version_conflict_engine_exception",
			"[%s]: the document exists already; this engine replaces none", op.id))
	}
	ix.put(op.id, op.source)
	return map[string]any{
		"_index": ix.name, "_id": op.id, "_primary_term": 1, "_seq_no": len(ix.docs) - 1, "_version": 1,
		"_shards": map[string]any{"total": 1, "successful": 1, "failed": 0}, "result": "created", "status": http.StatusCreated,
	}
}

func (e *Engine) putDocument(c *call) any {
	c.status = http.StatusCreated
	return operation{c.PathValue("id"), c.body}.apply(e.single(c.PathValue("index")))
}

// bulk carries out many writes. A line that is not JSON, or an action that is
// not known, fails the whole request before anything is written.
func (e *Engine) bulk(c *call) any {
	ix, ops := e.single(c.PathValue("index")), parseBulk(c.body)
	items := make([]any, len(ops))
	failed := false
	for i, op := range ops {
		var item map[string]any
		if refused := caught(func() { item = op.apply(ix) }); refused != nil {
			failed = true
			item = map[string]any{"_index": ix.name, "_id": op.id, "status": refused.status, "error": refused.object()}
		}
		items[i] = map[string]any{"index": item}
	}
	return map[string]any{"took": c.took(), "errors": failed, "items": items}
}

// parseBulk reads pairs of an action and its document.
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
