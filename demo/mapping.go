package demo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The kinds of fields that differ in how they are indexed and searched.
type fieldKind uint8

const (
	textField fieldKind = iota
	keywordField
	booleanField
	numberField
)

// A fieldType says how the values of one field are indexed. It is immutable.
type fieldType struct {
	kind                     fieldKind
	name                     string // the type's name in the mapping
	analyzer, searchAnalyzer string // text only
	norms                    bool   // text only
	ignoreAbove              int    // keyword only: longer values are not indexed; 0 is no limit
	subfields                []string
}

// A mapping holds the fields of an index by their full dotted names.
type mapping struct {
	fields     map[string]*fieldType
	properties map[string]any // as given and as added, for GET
	dynamic    bool           // whether unmapped fields of a document are added
}

func newMapping() *mapping {
	return &mapping{fields: map[string]*fieldType{}, properties: map[string]any{}, dynamic: true}
}

// clone returns a copy that can be changed without changing m.
func (m *mapping) clone() *mapping {
	return &mapping{maps.Clone(m.fields), cloneTree(m.properties), m.dynamic}
}

func cloneTree(tree map[string]any) map[string]any {
	out := maps.Clone(tree)
	for k, v := range out {
		if sub, ok := v.(map[string]any); ok {
			out[k] = cloneTree(sub)
		}
	}
	return out
}

// rendered returns m as the mapping endpoints answer it.
func (m *mapping) rendered() map[string]any {
	out := map[string]any{}
	if len(m.properties) > 0 {
		out["properties"] = m.properties
	}
	if !m.dynamic {
		out["dynamic"] = "false"
	}
	return out
}

// merge adds the fields of a mapping definition to m. A field that m has
// already must keep its type.
func (m *mapping) merge(definition any, known map[string]*analyzer) error {
	if definition == nil {
		return nil
	}
	a := newArgs("mapping", definition)
	if v, ok := a.take("dynamic"); ok {
		switch fmt.Sprint(v) {
		case "true":
			m.dynamic = true
		case "false":
			m.dynamic = false
		default:
			return unsupported("dynamic [%v] of a mapping", v)
		}
	}
	a.take("_meta")
	properties := a.object("properties")
	if err := a.done(); err != nil {
		return err
	}
	return m.mergeProperties(m.properties, properties, "", known, 0)
}

// maxObjectDepth bounds how deep objects nest in mappings and documents, as
// index.mapping.depth.limit does.
const maxObjectDepth = 20

func (m *mapping) mergeProperties(into, properties map[string]any, prefix string, known map[string]*analyzer, depth int) error {
	if depth > maxObjectDepth {
		return badRequest("illegal_argument_exception", "the mapping is deeper than [%d] objects", maxObjectDepth)
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		path := prefix + name
		definition, ok := properties[name].(map[string]any)
		if !ok || name == "" {
			return mapperError("Expected map for property [%s]", path)
		}
		if sub, ok := definition["properties"].(map[string]any); ok {
			child, err := childOf(into, name, path, definition["type"])
			if err != nil {
				return err
			}
			if err := m.mergeProperties(child, sub, path+".", known, depth+1); err != nil {
				return err
			}
			continue
		}
		if _, ok := objectAt(into, name); ok {
			return mapperError("object mapping for [%s] tried to parse field as object, but found a concrete value", path)
		}
		if err := m.define(path, definition, known); err != nil {
			return err
		}
		into[name] = cloneTree(definition)
	}
	return nil
}

// childOf returns the fields of the object name among properties, which it
// makes where there is none.
func childOf(properties map[string]any, name, path string, kind any) (map[string]any, error) {
	if kind != nil && kind != "object" {
		return nil, mapperError("No handler for type [%v] declared on field [%s]", kind, path)
	}
	if properties[name] == nil {
		properties[name] = map[string]any{"properties": map[string]any{}}
	}
	child, ok := objectAt(properties, name)
	if !ok {
		return nil, mapperError("can't merge a non object mapping [%s] with an object mapping", path)
	}
	return child, nil
}

// objectAt returns the fields of the object name among properties.
func objectAt(properties map[string]any, name string) (map[string]any, bool) {
	node, _ := properties[name].(map[string]any)
	fields, ok := node["properties"].(map[string]any)
	return fields, ok
}

// define adds the field path and its subfields to m.
func (m *mapping) define(path string, definition map[string]any, known map[string]*analyzer) error {
	t, subfields, err := parseField(path, definition, known)
	if err != nil {
		return err
	}
	if old := m.fields[path]; old != nil && (old.name != t.name || old.analyzer != t.analyzer) {
		return badRequest("illegal_argument_exception", "mapper [%s] cannot be changed from type [%s] to [%s]", path, old.name, t.name)
	}
	for _, name := range slices.Sorted(maps.Keys(subfields)) {
		sub, ok := subfields[name].(map[string]any)
		if !ok {
			return mapperError("Expected map for property [%s.%s]", path, name)
		}
		t.subfields = append(t.subfields, path+"."+name)
		subType, deeper, err := parseField(path+"."+name, sub, known)
		if err != nil {
			return err
		}
		if len(deeper) > 0 {
			return mapperError("Type [%s] of field [%s.%s] can't have fields of its own", subType.name, path, name)
		}
		m.fields[path+"."+name] = subType
	}
	m.fields[path] = t
	return nil
}

// parseField reads the definition of one field. Parameters that change neither
// terms nor scores are accepted.
func parseField(path string, definition map[string]any, known map[string]*analyzer) (*fieldType, map[string]any, error) {
	a := newArgs("field "+path, definition)
	t := &fieldType{name: a.str("type", ""), norms: true}
	switch t.name {
	case "text":
		t.kind = textField
		t.analyzer = a.str("analyzer", "standard")
		t.searchAnalyzer = a.str("search_analyzer", t.analyzer)
		t.norms = a.boolean("norms", true)
		for _, name := range []string{t.analyzer, t.searchAnalyzer} {
			if known[name] == nil {
				return nil, nil, mapperError("analyzer [%s] has not been configured in mappings", name)
			}
		}
	case "keyword":
		t.kind = keywordField
		t.ignoreAbove = a.integer("ignore_above", 0)
	case "boolean":
		t.kind = booleanField
	case "long", "integer", "short", "byte", "double", "float", "half_float":
		t.kind = numberField
	default:
		return nil, nil, mapperError("No handler for type [%s] declared on field [%s]", t.name, path)
	}
	if similarity := a.str("similarity", "BM25"); similarity != "BM25" {
		return nil, nil, unsupported("similarity [%s] of field [%s]", similarity, path)
	}
	for _, neutral := range []string{"store", "doc_values", "term_vector", "coerce", "meta", "eager_global_ordinals", "fielddata"} {
		a.take(neutral)
	}
	subfields := a.object("fields")
	return t, subfields, a.done()
}

// dynamicDefinition returns the mapping that a field gets from its first value,
// nil where the value gives none.
func dynamicDefinition(value any) map[string]any {
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
		return map[string]any{"type": "float"}
	default:
		return nil
	}
}

// addDynamic maps the field path by a value of it.
func (m *mapping) addDynamic(path string, value any, known map[string]*analyzer) error {
	definition := dynamicDefinition(value)
	if definition == nil {
		return nil
	}
	names := strings.Split(path, ".")
	tree := map[string]any{names[len(names)-1]: definition}
	for _, name := range slices.Backward(names[:len(names)-1]) {
		tree = map[string]any{name: map[string]any{"properties": tree}}
	}
	return m.mergeProperties(m.properties, tree, "", known, 0)
}

// matching returns the fields whose names match the pattern and that a text
// can be searched in, sorted. A name without wildcard is returned as it is.
func (m *mapping) matching(pattern string) []string {
	if !strings.Contains(pattern, "*") {
		return []string{pattern}
	}
	var out []string
	for name := range m.fields {
		if wildcard(pattern, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// wildcard reports whether pattern, in which each * stands for any number of
// characters, matches all of s.
func wildcard(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == s
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, part := range parts[1:last] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[last])
}

// textOf returns a scalar JSON value as the text that is indexed for it.
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

// numberOf returns a scalar JSON value as a number.
func numberOf(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	default:
		return 0, false
	}
}
