package demo

import (
	"maps"
	"slices"
	"strings"

	"github.com/akin-search/akin/internal/glob"
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
	analyzers  map[string]analyzer
	loaded     bool // by [Engine.Load]: a document may have other fields, too
}

func newMapping(definition map[string]any) *mapping {
	a := newArgs("mapping", definition)
	m := &mapping{fields: map[string]*fieldType{}, properties: a.object("properties"), analyzers: analyzers()}
	a.done()
	for name, field := range m.properties {
		m.define(name, field)
	}
	return m
}

func (m *mapping) define(name string, definition any) *fieldType {
	a := newArgs("field "+name, definition)
	// Elasticsearch and OpenSearch up to 2 multiply each score by k1+1 (Lucene's
	// LegacyBM25Similarity), and so does this engine.
	t := &fieldType{name: a.str("type", ""), bm25: bm25{k1: 1.2, b: 0.75, scale: 2.2}}
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
	return slices.DeleteFunc(out, func(name string) bool { return !glob.Match(pattern, name) })
}

// count returns how often a field with those values has each term. A keyword is
// a term that a document has once.
func (m *mapping) count(field string, values []string) map[string]int {
	t, freqs := m.fields[field], map[string]int{}
	for _, text := range values {
		if t.name != "text" {
			freqs[text] = 1
			continue
		}
		tokens, _ := m.analyzers[t.analyzer](text)
		for _, token := range tokens {
			freqs[token.Term]++
		}
	}
	return freqs
}
