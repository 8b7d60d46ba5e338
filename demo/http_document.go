package demo

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
)

// An operation is one write.
type operation struct {
	action, index, id string // action is index, create or delete
	source            []byte
}

// apply carries out a write and returns its entry in the answer. The caller
// holds the lock.
func (e *Engine) apply(op operation) (int, map[string]any, error) {
	ix, err := e.writable(op.index)
	if err != nil {
		return 0, nil, err
	}
	out := map[string]any{"_index": op.index, "_id": op.id, "_shards": shards(1, false), "_primary_term": 1}
	if op.action == "delete" {
		return ix.applyDelete(op, out)
	}
	if old, exists := ix.byID[op.id]; exists && op.action == "create" {
		return 0, nil, &apiError{
			status: http.StatusConflict, kind: "version_conflict_engine_exception",
			reason: "[" + op.id + "]: version conflict, document already exists",
			detail: map[string]any{"index": op.index, "version": ix.docs[old].version},
		}
	}
	if len(op.id) > 512 {
		return 0, nil, badRequest("illegal_argument_exception", "id is too long, must be no longer than 512 bytes but was: %d", len(op.id))
	}
	created, err := ix.put(op.id, op.source)
	if err != nil {
		return 0, nil, err
	}
	doc := ix.docs[ix.byID[op.id]]
	out["_version"], out["_seq_no"] = doc.version, doc.sequence
	if created {
		out["result"] = "created"
		return http.StatusCreated, out, nil
	}
	out["result"] = "updated"
	return http.StatusOK, out, nil
}

func (ix *index) applyDelete(op operation, out map[string]any) (int, map[string]any, error) {
	out["_version"], out["_seq_no"] = 1, ix.sequence
	ix.sequence++
	doc, exists := ix.byID[op.id]
	if !exists {
		out["result"] = "not_found"
		return http.StatusNotFound, out, nil
	}
	out["_version"], out["result"] = ix.docs[doc].version+1, "deleted"
	ix.remove(op.id)
	return http.StatusOK, out, nil
}

func (e *Engine) putDocument(c *call) (int, any, error) {
	op := operation{action: "index", index: c.PathValue("index"), id: c.PathValue("id"), source: c.body}
	if op.id == "" {
		op.id = rand.Text()
	}
	if c.params.Get("op_type") == "create" || strings.Contains(c.Pattern, "/_create/") {
		op.action = "create"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.apply(op)
}

func (e *Engine) deleteDocument(c *call) (int, any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := e.single(c.PathValue("index")); err != nil {
		return 0, nil, err
	}
	return e.apply(operation{action: "delete", index: c.PathValue("index"), id: c.PathValue("id")})
}

func (e *Engine) getDocument(c *call) (int, any, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	ix, err := e.single(c.PathValue("index"))
	if err != nil {
		return 0, nil, err
	}
	id := c.PathValue("id")
	out := map[string]any{"_index": ix.name, "_id": id, "found": false}
	number, ok := ix.byID[id]
	if !ok {
		return http.StatusNotFound, out, nil
	}
	doc := ix.docs[number]
	source, err := new(mistake).source(c.sourceParameter()).apply(doc.source) // parameters are texts and lists of them
	if err != nil {
		return 0, nil, err
	}
	if source != nil {
		out["_source"] = source
	}
	out["found"], out["_version"], out["_seq_no"], out["_primary_term"] = true, doc.version, doc.sequence, 1
	return http.StatusOK, out, nil
}

// bulk carries out many writes. A line that is not JSON, or an action that is
// not known, fails the whole request before anything is written.
func (e *Engine) bulk(c *call) (int, any, error) {
	started := e.now()
	ops, err := parseBulk(c.body, c.PathValue("index"))
	if err != nil {
		return 0, nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	items := make([]any, len(ops))
	failed := false
	for i, op := range ops {
		status, item, err := e.apply(op)
		if err != nil {
			api, ok := errors.AsType[*apiError](err)
			if !ok {
				return 0, nil, err
			}
			failed = true
			status = api.status
			item = map[string]any{"_index": op.index, "_id": op.id, "error": map[string]any{"type": api.kind, "reason": api.reason}}
		}
		item["status"] = status
		items[i] = map[string]any{op.action: item}
	}
	return http.StatusOK, map[string]any{"took": e.now().Sub(started).Milliseconds(), "errors": failed, "items": items}, nil
}

// parseBulk reads pairs of lines, an action and its document. The last line
// ends in a newline too.
func parseBulk(body []byte, index string) ([]operation, error) {
	if len(body) == 0 {
		return nil, parsingError("request body is required")
	}
	if body[len(body)-1] != '\n' {
		return nil, badRequest("illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]")
	}
	lines := bytes.Split(body[:len(body)-1], []byte("\n"))
	var ops []operation
	for i := 0; i < len(lines); i++ {
		if len(bytes.TrimSpace(lines[i])) == 0 {
			continue
		}
		op, err := parseAction(lines[i], i+1)
		if err != nil {
			return nil, err
		}
		if op.index == "" {
			op.index = index
		}
		if op.index == "" {
			return nil, badRequest("action_request_validation_exception", "index is missing in line [%d]", i+1)
		}
		if op.action != "delete" {
			if i++; i == len(lines) {
				return nil, badRequest("illegal_argument_exception", "the action in line [%d] has no document", i)
			}
			op.source = bytes.TrimSuffix(lines[i], []byte("\r"))
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func parseAction(line []byte, number int) (operation, error) {
	v, err := decodeJSON(line)
	if err != nil {
		return operation{}, err
	}
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		return operation{}, badRequest("illegal_argument_exception", "Malformed action/metadata line [%d], expected an object with one action", number)
	}
	var op operation
	for action, meta := range object {
		if action != "index" && action != "create" && action != "delete" {
			return op, badRequest("illegal_argument_exception",
				"Malformed action/metadata line [%d], expected one of [create, delete, index] but found [%s]", number, action)
		}
		a := newArgs(action, meta)
		op = operation{action: action, index: a.str("_index", ""), id: a.str("_id", "")}
		a.take("routing")
		if err := a.done(); err != nil {
			return op, err
		}
	}
	if op.id == "" {
		if op.action == "delete" {
			return op, badRequest("action_request_validation_exception", "id is missing in line [%d]", number)
		}
		op.id = rand.Text()
	}
	return op, nil
}
