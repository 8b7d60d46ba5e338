package demo

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A fieldType says how the values of one field are indexed. It is immutable.
type fieldType struct {
	name                     string // the type's name in the mapping
	analyzer, searchAnalyzer string // of text and keyword fields
	norms                    bool   // text only
	ignoreAbove              int    // keyword only: longer values are not indexed; 0 is no limit
	subfields                []string
}

// numeric reports whether the values are numbers.
func (t *fieldType) numeric() bool { return t.analyzer == "" && t.name != "boolean" }

// A mapping has the fields of an index by their full dotted names.
type mapping struct {
	fields     map[string]*fieldType
	properties map[string]any // as written and as added, for GET; replaced, never changed
	analyzers  map[string]*analyzer
}

// clone returns a copy that can be changed without changing m.
func (m *mapping) clone() *mapping {
	return &mapping{maps.Clone(m.fields), m.properties, m.analyzers}
}

// merge adds the fields of a mapping definition to m, which is unusable if it
// panics. A field that m has already must keep its type.
func (m *mapping) merge(definition map[string]any) {
	a := newArgs("mapping", definition)
	a.ignore("_meta")
	m.properties = m.add(m.properties, a.object("properties"), "", 0)
	a.done()
}

// maxObjectDepth bounds how deep objects nest in mappings and documents, as
// index.mapping.depth.limit does.
const maxObjectDepth = 20

// add adds the fields of the properties, whose names begin with prefix, and
// returns the old properties with the new ones.
func (m *mapping) add(old, properties map[string]any, prefix string, depth int) map[string]any {
	if depth > maxObjectDepth {
		panic(badRequest("illegal_argument_exception", "the mapping is deeper than [%d] objects", maxObjectDepth))
	}
	out := map[string]any{}
	maps.Copy(out, old)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		path := prefix + name
		definition, ok := properties[name].(map[string]any)
		if !ok || name == "" {
			panic(mapperError("Expected map for property [%s]", path))
		}
		sub, isObject := definition["properties"].(map[string]any)
		before, exists := out[name].(map[string]any)
		fields, wasObject := before["properties"].(map[string]any)
		switch kind := definition["type"]; {
		case isObject && kind != nil && kind != "object":
			panic(mapperError("No handler for type [%v] declared on field [%s]", kind, path))
		case isObject && exists && !wasObject:
			panic(mapperError("can't merge a non object mapping [%s] with an object mapping", path))
		case !isObject && wasObject:
			panic(mapperError("object mapping for [%s] tried to parse field as object, but found a concrete value", path))
		case isObject:
			out[name] = map[string]any{"properties": m.add(fields, sub, path+".", depth+1)}
		default:
			m.define(path, definition)
			out[name] = definition
		}
	}
	return out
}

// define adds the field path and its subfields. It accepts parameters that
// change neither terms nor scores.
func (m *mapping) define(path string, definition any) {
	a := newArgs("field "+path, definition)
	t := &fieldType{name: a.str("type", ""), norms: true}
	switch t.name {
	case "text":
		t.analyzer = a.str("analyzer", "standard")
		t.searchAnalyzer = a.str("search_analyzer", t.analyzer)
		t.norms = a.boolean("norms", true)
		for _, name := range []string{t.analyzer, t.searchAnalyzer} {
			if m.analyzers[name] == nil {
				panic(mapperError("analyzer [%s] has not been configured in mappings", name))
			}
		}
	case "keyword":
		t.analyzer, t.searchAnalyzer = "keyword", "keyword"
		t.ignoreAbove = a.integer("ignore_above", 0)
	case "boolean", "long", "integer", "short", "byte", "double", "float", "half_float":
	default:
		panic(mapperError("No handler for type [%s] declared on field [%s]", t.name, path))
	}
	if old := m.fields[path]; old != nil && (old.name != t.name || old.analyzer != t.analyzer) {
		panic(badRequest("illegal_argument_exception", "mapper [%s] cannot be changed from type [%s] to [%s]", path, old.name, t.name))
	}
	a.ignore("store", "doc_values", "term_vector", "coerce", "meta", "eager_global_ordinals", "fielddata")
	subfields := a.object("fields")
	a.done()
	for _, name := range slices.Sorted(maps.Keys(subfields)) {
		full := path + "." + name
		m.define(full, subfields[name])
		if len(m.fields[full].subfields) > 0 {
			panic(mapperError("Type [%s] of field [%s] can't have fields of its own", m.fields[full].name, full))
		}
		t.subfields = append(t.subfields, full)
	}
	m.fields[path] = t
}

// extended returns m with the unmapped fields of values added.
func (m *mapping) extended(values map[string][]any) *mapping {
	out := m
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if out.fields[path] != nil {
			continue
		}
		if out == m {
			out = m.clone()
		}
		names := strings.Split(path, ".")
		tree := map[string]any{names[len(names)-1]: dynamicType(values[path][0])}
		for _, name := range slices.Backward(names[:len(names)-1]) {
			tree = map[string]any{name: map[string]any{"properties": tree}}
		}
		out.merge(map[string]any{"properties": tree})
	}
	return out
}

// dynamicType returns the definition that a field gets from its first value.
func dynamicType(value any) map[string]any {
	switch v := value.(type) {
	case string:
		return map[string]any{"type": "text", "fields": map[string]any{
			"keyword": map[string]any{"type": "keyword", "ignore_above": 256.0},
		}}
	case bool:
		return map[string]any{"type": "boolean"}
	case float64:
		if v == float64(int64(v)) {
			return map[string]any{"type": "long"}
		}
	}
	return map[string]any{"type": "float"}
}

// matching returns the fields whose names match the pattern and that a text
// can be searched in, sorted. A name without wildcard is returned as it is.
func (m *mapping) matching(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	out := slices.Sorted(maps.Keys(m.fields))
	return slices.DeleteFunc(out, func(name string) bool { return !wildcard(pattern, name) })
}

// wildcard reports whether pattern, in which each * stands for any number of
// characters, matches all of s.
func wildcard(pattern, s string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == s
	}
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	matches, err := regexp.MatchString("(?s)^"+expression+"$", s)
	return matches && err == nil
}
