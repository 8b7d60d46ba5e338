package demo

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// A mistake is the first error in a request. Parsers continue after it and
// return something harmless.
type mistake struct{ err error }

func (m *mistake) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// members returns a reader of the members of the JSON object of name.
func (m *mistake) members(name string, v any) *args {
	object, ok := v.(map[string]any)
	if !ok {
		m.fail(parsingError("[%s] malformed, expected an object", name))
	}
	return &args{name: name, rest: maps.Clone(object), mistake: m}
}

// args reads the members of a JSON object one by one. An unread member is a
// mistake, too, see done.
type args struct {
	name string // what the object belongs to, for errors
	rest map[string]any
	*mistake
}

func newArgs(name string, v any) *args { return new(mistake).members(name, v) }

// take returns a member and counts it as read. A null counts as absent.
func (a *args) take(key string) (any, bool) {
	v, ok := a.rest[key]
	delete(a.rest, key)
	return v, ok && v != nil
}

func (a *args) wrong(key, want string) {
	a.fail(parsingError("[%s] [%s] must be %s", a.name, key, want))
}

// str returns a string member; numbers and booleans count as their text.
func (a *args) str(key, absent string) string {
	v, ok := a.take(key)
	if !ok {
		return absent
	}
	s, ok := textOf(v)
	if !ok {
		a.wrong(key, "a string")
	}
	return s
}

func (a *args) boolean(key string, absent bool) bool {
	v, ok := a.take(key)
	if !ok {
		return absent
	}
	switch v {
	case true, "true":
		return true
	case false, "false":
		return false
	default:
		a.wrong(key, "a boolean")
		return absent
	}
}

func (a *args) number(key string, absent float64) float64 {
	v, ok := a.take(key)
	if !ok {
		return absent
	}
	n, ok := numberOf(v)
	if !ok || math.IsNaN(n) || math.IsInf(n, 0) {
		a.wrong(key, "a number")
		return absent
	}
	return n
}

// integer returns a whole member that is not negative.
func (a *args) integer(key string, absent int) int {
	n := a.number(key, float64(absent))
	if n != math.Trunc(n) || n < 0 || n > math.MaxInt32 {
		a.wrong(key, "a whole number that is not negative")
		return absent
	}
	return int(n)
}

// boost returns a member as a factor of scores. The engines refuse negative
// ones since 7.0.
func (a *args) boost(key string) float32 {
	n := a.number(key, 1)
	if n < 0 || n > math.MaxFloat32 {
		a.wrong(key, "a positive number")
	}
	return float32(n)
}

func (a *args) object(key string) map[string]any {
	v, ok := a.take(key)
	if !ok {
		return nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		a.wrong(key, "an object")
	}
	return object
}

// list returns the elements of an array; a single value is an array of one.
func (a *args) list(key string) []any {
	v, ok := a.take(key)
	if !ok {
		return nil
	}
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

func (a *args) strings(key string) []string {
	list := a.list(key)
	out := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			a.wrong(key, "a list of strings")
		}
		out = append(out, s)
	}
	return out
}

// sole returns the only remaining member of the object, for clauses keyed by a
// field.
func (a *args) sole() (key string, value any) {
	if len(a.rest) != 1 {
		a.fail(parsingError("[%s] query malformed, expected one field", a.name))
		return "", nil
	}
	for key, value = range a.rest {
		delete(a.rest, key)
	}
	return key, value
}

// done returns the first mistake of the request; unread members are one.
func (a *args) done() error {
	if len(a.rest) > 0 {
		names := slices.Sorted(maps.Keys(a.rest))
		a.fail(parsingError("[%s] query does not support [%s]", a.name, strings.Join(names, "], [")))
	}
	return a.err
}
