package demo

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A fieldType says how the values of one field are indexed. It is immutable.
type fieldType struct {
	name      string // of the type: text or keyword
	analyzer  string
	bm25      bm25
	subfields []string // by their full names
}

// A mapping has the fields of an index by their full names. It is immutable.
type mapping struct {
	fields     map[string]*fieldType
	properties map[string]any // as written
	analyzers  map[string]*analyzer
	loaded     bool // by [Engine.Load]: a document may have other fields, too
}

// newMapping reads a mapping definition.
func newMapping(definition map[string]any, known map[string]*analyzer) *mapping {
	a := newArgs("mapping", definition)
	m := &mapping{fields: map[string]*fieldType{}, properties: a.object("properties"), analyzers: known}
	a.done()
	for name, field := range m.properties {
		m.define(name, field)
	}
	return m
}

// define adds the field of that name and its subfields.
func (m *mapping) define(name string, definition any) *fieldType {
	a := newArgs("field "+name, definition)
	t := &fieldType{name: a.str("type", ""), bm25: defaultBM25()}
	switch t.name {
	case "text":
		t.analyzer = a.str("analyzer", "standard")
	case "keyword":
		t.analyzer = "keyword"
	default:
		panic(mapperError("No handler for type [%s] declared on field [%s]", t.name, name))
	}
	if m.analyzers[t.analyzer] == nil {
		panic(mapperError("analyzer [%s] has not been configured in mappings", t.analyzer))
	}
	subfields := a.object("fields")
	a.done()
	for _, sub := range slices.Sorted(maps.Keys(subfields)) {
		full := name + "." + sub
		if len(m.define(full, subfields[sub]).subfields) > 0 {
			panic(mapperError("Field [%s] can't have fields of its own", full))
		}
		t.subfields = append(t.subfields, full)
	}
	m.fields[name] = t
	return t
}

// matching returns the fields whose names match the pattern, sorted. A name
// without wildcard is returned as it is.
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
	expression := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	matches, err := regexp.MatchString("(?s)^"+expression+"$", s)
	return matches && err == nil
}
