package demo

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// args reads the members of a JSON object one by one, and panics with a
// [refusal] at the first bad one.
type args struct {
	name string // what the object belongs to, for errors
	rest map[string]any
}

func newArgs(name string, v any) *args {
	object, ok := v.(map[string]any)
	if !ok {
		panic(parsingError("[%s] malformed, expected an object", name))
	}
	return &args{name, maps.Clone(object)}
}

func (a *args) done() {
	if len(a.rest) > 0 {
		panic(parsingError("[%s] query does not support [%s]", a.name, strings.Join(slices.Sorted(maps.Keys(a.rest)), "], [")))
	}
}

// take returns a member and marks it as read. A null counts as absent.
func (a *args) take(key string) (any, bool) {
	v, ok := a.rest[key]
	delete(a.rest, key)
	return v, ok && v != nil
}

// ignore accepts members that change no answer of this engine.
func (a *args) ignore(keys ...string) {
	for _, key := range keys {
		delete(a.rest, key)
	}
}

// str returns a string member; numbers and booleans as text.
func (a *args) str(key, absent string) string {
	v, ok := a.take(key)
	if !ok {
		return absent
	}
	text, ok := textOf(v)
	if !ok {
		panic(a.malformed(key, "a string"))
	}
	return text
}

func (a *args) boolean(key string, absent bool) bool {
	text := a.str(key, strconv.FormatBool(absent))
	if text != "true" && text != "false" {
		panic(a.malformed(key, "a boolean"))
	}
	return text == "true"
}

func (a *args) number(key string, absent float64) float64 {
	if a.rest[key] == nil {
		a.ignore(key)
		return absent
	}
	n, err := strconv.ParseFloat(a.str(key, ""), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		panic(a.malformed(key, "a number"))
	}
	return n
}

// integer returns an integer member, not negative.
func (a *args) integer(key string, absent int) int {
	n := a.number(key, float64(absent))
	if n != math.Trunc(n) || n < 0 || n > math.MaxInt32 {
		panic(a.malformed(key, "a whole number that is not negative"))
	}
	return int(n)
}

// boost returns a member as a factor. Engines refuse negative ones since 7.0.
func (a *args) boost(key string) float32 {
	n := a.number(key, 1)
	if n < 0 || n > math.MaxFloat32 {
		panic(a.malformed(key, "a positive number"))
	}
	return float32(n)
}

func (a *args) malformed(key, want string) *refusal {
	return parsingError("[%s] [%s] must be %s", a.name, key, want)
}

func (a *args) object(key string) map[string]any {
	v, ok := a.take(key)
	if !ok {
		return nil
	}
	return newArgs(key, v).rest
}

// list returns the elements of an array; a single value is an array of one.
func (a *args) list(key string) []any {
	v, ok := a.take(key)
	if list, isList := v.([]any); isList || !ok {
		return list
	}
	return []any{v}
}

func (a *args) strings(key string) []string {
	list := a.list(key)
	out := make([]string, len(list))
	for i, v := range list {
		var ok bool
		if out[i], ok = v.(string); !ok {
			panic(a.malformed(key, "a list of strings"))
		}
	}
	return out
}

func (a *args) sole() (key string, value any) {
	if len(a.rest) != 1 {
		panic(parsingError("[%s] malformed, expected one member", a.name))
	}
	for key, value = range a.rest {
		delete(a.rest, key)
	}
	return key, value
}

// textOf returns the text that is indexed for a scalar JSON value.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	default:
		return "", false
	}
}

// decodeJSON decodes one JSON value. It refuses duplicate names, as the real
// engines do since 6.0.
func decodeJSON(data []byte) (v any) {
	if err := json.Unmarshal(data, &v); err != nil {
		panic(notJSON(err))
	}
	return v
}

// A refusal is an error for the client, in the engines' shape. It is raised as
// a panic and caught per request, or per item of a bulk request.
type refusal struct {
	status       int
	kind, reason string
}

// caught calls f and returns the refusal that it panics with, or nil.
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

func (r *refusal) object() map[string]any {
	return map[string]any{"type": r.kind, "reason": r.reason}
}

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

// unsupported refuses a feature of the real engines that this one lacks.
func unsupported(format string, args ...any) *refusal {
	return illegal("the embedded engine does not support "+format, args...)
}
