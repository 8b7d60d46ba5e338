package demo

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A sourceFilter says which members of a document's source are returned.
type sourceFilter struct {
	none               bool
	includes, excludes []string // patterns over dotted paths
}

// parseSource reads a _source member: a boolean, a pattern, a list of patterns,
// or an object of includes and excludes.
func parseSource(v any) sourceFilter {
	switch wanted := v.(type) {
	case nil:
		return sourceFilter{}
	case bool:
		return sourceFilter{none: !wanted}
	case string, []any:
		v = map[string]any{"includes": v}
	}
	a := newArgs("_source", v)
	defer a.done()
	return sourceFilter{
		includes: append(a.strings("includes"), a.strings("include")...),
		excludes: append(a.strings("excludes"), a.strings("exclude")...),
	}
}

// sourceFilter returns the filter that the parameters say, or else that of the
// body.
func (c *call) sourceFilter(body sourceFilter) sourceFilter {
	split := func(parameter string) []string {
		return strings.FieldsFunc(c.params.Get(parameter), func(r rune) bool { return r == ',' })
	}
	f := sourceFilter{includes: split("_source_includes"), excludes: split("_source_excludes")}
	switch wanted := c.params.Get("_source"); wanted {
	case "true", "false":
		return sourceFilter{none: wanted == "false"}
	case "":
		if len(f.includes)+len(f.excludes) == 0 {
			return body
		}
	}
	f.includes = append(f.includes, split("_source")...)
	return f
}

// apply returns the source as it came if nothing is filtered, nil if it is not
// wanted.
func (f sourceFilter) apply(source []byte) any {
	if f.none {
		return nil
	}
	if len(f.includes) == 0 && len(f.excludes) == 0 {
		return jsontext.Value(source)
	}
	object, _ := decodeJSON(source).(map[string]any)
	return f.filter("", object)
}

func (f sourceFilter) filter(prefix string, object map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range object {
		path := prefix + name
		covered := func(pattern string) bool { return covers(pattern, path) }
		if slices.ContainsFunc(f.excludes, covered) {
			continue
		}
		if sub, ok := v.(map[string]any); ok {
			if kept := f.filter(path+".", sub); len(kept) > 0 {
				out[name] = kept
			}
		} else if len(f.includes) == 0 || slices.ContainsFunc(f.includes, covered) {
			out[name] = v
		}
	}
	return out
}

// covers reports whether pattern matches path or an object that contains it.
func covers(pattern, path string) bool {
	return strings.HasPrefix(path, pattern+".") || wildcard(pattern, path) ||
		strings.Contains(pattern, "*") && wildcard(pattern+".*", path)
}
