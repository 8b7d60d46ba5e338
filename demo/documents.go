package demo

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"strings"
)

// An operation is one write.
type operation struct {
	action, index, id string // action is index, create or delete
	source            []byte
}

// apply carries out a write and returns its entry in the answer. It creates the
// index if it is missing.
func (e *Engine) apply(op operation) (status int, out map[string]any) {
	ix := e.indices[op.index]
	if ix == nil {
		ix = e.create(op.index, nil)
	}
	out = map[string]any{"_index": op.index, "_id": op.id, "_shards": shards(1, false), "_primary_term": 1, "_seq_no": ix.sequence}
	number, exists := ix.byID[op.id]
	switch {
	case op.action == "delete" && !exists:
		status, out["result"], out["_version"] = http.StatusNotFound, "not_found", 1
		ix.sequence++
		return status, out
	case op.action == "delete":
		status, out["result"], out["_version"] = http.StatusOK, "deleted", ix.docs[number].version+1
		ix.remove(op.id)
		ix.sequence++
		return status, out
	case op.action == "create" && exists:
		panic(&apiError{
			http.StatusConflict, "version_conflict_engine_exception", "[" + op.id + "]: version conflict, document already exists",
			map[string]any{"index": op.index, "version": ix.docs[number].version},
		})
	case len(op.id) > 512:
		panic(badRequest("illegal_argument_exception", "id is too long, must be no longer than 512 bytes but was: %d", len(op.id)))
	}
	out["_version"] = ix.put(op.id, op.source)
	if exists {
		out["result"] = "updated"
		return http.StatusOK, out
	}
	out["result"] = "created"
	return http.StatusCreated, out
}

func (e *Engine) putDocument(c *call) (out any) {
	op := operation{action: "index", index: c.PathValue("index"), id: c.PathValue("id"), source: c.body}
	if op.id == "" {
		op.id = rand.Text()
	}
	if c.params.Get("op_type") == "create" || strings.Contains(c.Pattern, "/_create/") {
		op.action = "create"
	}
	c.status, out = e.apply(op)
	return out
}

func (e *Engine) deleteDocument(c *call) (out any) {
	ix := e.single(c.PathValue("index"))
	c.status, out = e.apply(operation{action: "delete", index: ix.name, id: c.PathValue("id")})
	return out
}

func (e *Engine) getDocument(c *call) any {
	ix, id := e.single(c.PathValue("index")), c.PathValue("id")
	out := map[string]any{"_index": ix.name, "_id": id, "found": false}
	number, ok := ix.byID[id]
	if !ok {
		c.status = http.StatusNotFound
		return out
	}
	doc := ix.docs[number]
	if source := c.sourceFilter(sourceFilter{}).apply(doc.source); source != nil {
		out["_source"] = source
	}
	out["found"], out["_version"], out["_seq_no"], out["_primary_term"] = true, doc.version, doc.sequence, 1
	return out
}

// bulk carries out many writes. A line that is not JSON, or an action that is
// not known, fails the whole request before anything is written.
func (e *Engine) bulk(c *call) any {
	ops := parseBulk(c.body, c.PathValue("index"))
	items := make([]any, len(ops))
	failed := false
	for i, op := range ops {
		var status int
		var item map[string]any
		if refusal := caught(func() { status, item = e.apply(op) }); refusal != nil {
			failed = true
			status = refusal.status
			item = map[string]any{"_index": op.index, "_id": op.id, "error": map[string]any{"type": refusal.kind, "reason": refusal.reason}}
		}
		item["status"] = status
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
		if op.action != "delete" {
			if i++; i == len(lines) {
				panic(badRequest("illegal_argument_exception", "the action in line [%d] has no document", i))
			}
			op.source = bytes.TrimSuffix(lines[i], []byte("\r"))
		}
		ops = append(ops, op)
	}
	return ops
}

func parseAction(line []byte, number int, index string) operation {
	action, meta := newArgs("bulk", decodeJSON(line)).sole()
	if action != "index" && action != "create" && action != "delete" {
		panic(badRequest("illegal_argument_exception",
			"Malformed action/metadata line [%d], expected one of [create, delete, index] but found [%s]", number, action))
	}
	a := newArgs(action, meta)
	op := operation{action: action, index: a.str("_index", index), id: a.str("_id", "")}
	a.ignore("routing")
	a.done()
	switch {
	case op.id == "" && op.action == "delete":
		panic(badRequest("action_request_validation_exception", "id is missing in line [%d]", number))
	case op.index == "":
		panic(badRequest("action_request_validation_exception", "index is missing in line [%d]", number))
	case op.id == "":
		op.id = rand.Text()
	}
	return op
}
