package demo

import (
	"fmt"
	"net/http"
)

// A refusal is an error that a client gets, in the engines' shape. It is raised
// as a panic, and caught by the request, or the item of a bulk request, that it
// belongs to.
type refusal struct {
	status       int
	kind, reason string
}

// caught calls f and returns the refusal that it panics with, nil if none.
func caught(f func()) (refused *refusal) {
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if refused, ok = r.(*refusal); !ok {
				panic(r)
			}
		}
	}()
	f()
	return nil
}

// object returns the error as it stands in an answer.
func (r *refusal) object() map[string]any {
	return map[string]any{"type": r.kind, "reason": r.reason}
}

// body returns the answer to a request that is refused.
func (r *refusal) body() map[string]any {
	whole := r.object()
	whole["root_cause"] = []any{r.object()}
	return map[string]any{"error": whole, "status": r.status}
}

func refuse(status int, kind, format string, args ...any) *refusal {
	return &refusal{status, kind, fmt.Sprintf(format, args...)}
}

func parsingError(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, "parsing_exception", format, args...)
}

func mapperError(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, "mapper_parsing_exception", format, args...)
}

func notJSON(err error) *refusal {
	return refuse(http.StatusBadRequest, "json_parse_exception", "%v", err)
}

func illegal(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, "illegal_argument_exception", format, args...)
}

// unsupported names a feature of the real engines that this one lacks.
func unsupported(format string, args ...any) *refusal {
	return illegal("the embedded engine does not support "+format, args...)
}
