package demo

import (
	"bytes"
	"crypto/rand"
	"net/http"
)

// An operation is one write: an index or a create, which here are the same,
// since documents are never replaced.
type operation struct {
	action, index, id string
	source            []byte
}

// apply carries out a write and returns its entry in the answer.
func (e *Engine) apply(op operation) map[string]any {
	ix := e.single(op.index)
	if _, known := ix.known[op.id]; known {
		panic(&apiError{
			http.StatusConflict, "version_conflict_engine_exception", "[" + op.id + "]: the document exists already; this engine replaces none",
			map[string]any{"index": op.index},
		})
	}
	out := map[string]any{
		"_index": op.index, "_id": op.id, "_shards": shards(1, false), "_primary_term": 1, "_seq_no": len(ix.docs), "_version": 1,
		"result": "created", "status": http.StatusCreated,
	}
	ix.put(op.id, op.source)
	return out
}

func (e *Engine) putDocument(c *call) any {
	c.status = http.StatusCreated
	return e.apply(operation{"index", c.PathValue("index"), c.PathValue("id"), c.body})
}

// bulk carries out many writes. A line that is not JSON, or an action that is
// not known, fails the whole request before anything is written.
func (e *Engine) bulk(c *call) any {
	ops := parseBulk(c.body, c.PathValue("index"))
	items := make([]any, len(ops))
	failed := false
	for i, op := range ops {
		var item map[string]any
		if refusal := caught(func() { item = e.apply(op) }); refusal != nil {
			failed = true
			item = map[string]any{
				"_index": op.index, "_id": op.id, "status": refusal.status,
				"error": map[string]any{"type": refusal.kind, "reason": refusal.reason},
			}
		}
		items[i] = map[string]any{op.action: item}
	}
	return map[string]any{"took": e.took(c), "errors": failed, "items": items}
}

// parseBulk reads pairs of lines, an action and its document. The last line
// ends in a newline too.
func parseBulk(body []byte, index string) (ops []operation) {
	if !bytes.HasSuffix(body, []byte("\n")) {
		panic(badRequest("illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]"))
	}
	lines := bytes.Split(body[:len(body)-1], []byte("\n"))
	for i := 0; i < len(lines); i++ {
		if len(bytes.TrimSpace(lines[i])) == 0 {
			continue
		}
		op := parseAction(lines[i], i+1, index)
		if i++; i == len(lines) {
			panic(badRequest("illegal_argument_exception", "the action in line [%d] has no document", i))
		}
		op.source = bytes.TrimSuffix(lines[i], []byte("\r"))
		ops = append(ops, op)
	}
	return ops
}

func parseAction(line []byte, number int, index string) operation {
	action, meta := newArgs("bulk", decodeJSON(line)).sole()
	if action != "index" && action != "create" {
		panic(badRequest("illegal_argument_exception",
			"Malformed action/metadata line [%d], expected one of [create, index] but found [%s]", number, action))
	}
	a := newArgs(action, meta)
	op := operation{action: action, index: a.str("_index", index), id: a.str("_id", rand.Text())}
	a.done()
	if op.index == "" {
		panic(badRequest("action_request_validation_exception", "index is missing in line [%d]", number))
	}
	return op
}
