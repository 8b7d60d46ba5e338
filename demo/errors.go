package demo

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// An apiError is an error that is answered in the engines' shape.
type apiError struct {
	status       int
	kind, reason string
	detail       map[string]any // further members of the error object
}

// Error returns kind and reason.
func (e *apiError) Error() string { return e.kind + ": " + e.reason }

// body returns the answer that carries e.
func (e *apiError) body() map[string]any {
	object := map[string]any{"type": e.kind, "reason": e.reason}
	maps.Copy(object, e.detail)
	whole := map[string]any{"root_cause": []any{object}}
	maps.Copy(whole, object)
	return map[string]any{"error": whole, "status": e.status}
}

func badRequest(kind, format string, args ...any) error {
	return &apiError{status: http.StatusBadRequest, kind: kind, reason: fmt.Sprintf(format, args...)}
}

func parsingError(format string, args ...any) error {
	return badRequest("parsing_exception", format, args...)
}

func mapperError(format string, args ...any) error {
	return badRequest("mapper_parsing_exception", format, args...)
}

// unsupported names something that the real engines know and this one does not.
func unsupported(format string, args ...any) error {
	return badRequest("illegal_argument_exception", "the embedded engine does not support "+format, args...)
}

func indexNotFound(name string) error {
	return &apiError{
		status: http.StatusNotFound, kind: "index_not_found_exception", reason: "no such index [" + name + "]",
		detail: map[string]any{"index": name, "index_uuid": "_na_", "resource.id": name, "resource.type": "index_or_alias"},
	}
}

// scriptError refuses a script as the engines refuse one that does not compile.
func scriptError(reason, source string) error {
	return &apiError{
		status: http.StatusBadRequest, kind: "script_exception", reason: reason,
		detail: map[string]any{"script": strings.ToValidUTF8(source, "\uFFFD"), "lang": "painless"},
	}
}
