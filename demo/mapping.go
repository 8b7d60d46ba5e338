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
	properties map[string]any // as written and as added, for GET
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

// A merger adds fields to a mapping, which is unusable after a mistake.
type merger struct {
	mistake
	*mapping
	known map[string]*analyzer
}

// merge adds the fields of a mapping definition to m. A field that m has
// already must keep its type.
func (m *mapping) merge(definition any, known map[string]*analyzer) error {
	if definition == nil {
		return nil
	}
	g := &merger{mapping: m, known: known}
	a := g.members("mapping", definition)
	if v, ok := a.take("dynamic"); ok {
		m.dynamic = fmt.Sprint(v) == "true"
		if !m.dynamic && fmt.Sprint(v) != "false" {
			g.fail(unsupported("dynamic [%v] of a mapping", v))
		}
	}
	a.take("_meta")
	g.add(m.properties, a.object("properties"), "", 0)
	return a.done()
}

// maxObjectDepth bounds how deep objects nest in mappings and documents, as
// index.mapping.depth.limit does.
const maxObjectDepth = 20

// add adds the properties whose names begin with prefix to into.
func (g *merger) add(into, properties map[string]any, prefix string, depth int) {
	if depth > maxObjectDepth {
		g.fail(badRequest("illegal_argument_exception", "the mapping is deeper than [%d] objects", maxObjectDepth))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		path := prefix + name
		definition, ok := properties[name].(map[string]any)
		if !ok || name == "" {
			g.fail(mapperError("Expected map for property [%s]", path))
			return
		}
		if sub, ok := definition["properties"].(map[string]any); ok {
			g.add(g.child(into, name, path, definition["type"]), sub, path+".", depth+1)
			continue
		}
		if _, ok := objectAt(into, name); ok {
			g.fail(mapperError("object mapping for [%s] tried to parse field as object, but found a concrete value", path))
		}
		g.define(path, definition)
		into[name] = cloneTree(definition)
	}
}

// child returns the fields of the object name among properties, and adds it if
// missing.
func (g *merger) child(properties map[string]any, name, path string, kind any) map[string]any {
	if kind != nil && kind != "object" {
		g.fail(mapperError("No handler for type [%v] declared on field [%s]", kind, path))
	}
	if properties[name] == nil {
		properties[name] = map[string]any{"properties": map[string]any{}}
	}
	child, ok := objectAt(properties, name)
	if !ok {
		g.fail(mapperError("can't merge a non object mapping [%s] with an object mapping", path))
		return map[string]any{}
	}
	return child
}

// objectAt returns the fields of the object name among properties.
func objectAt(properties map[string]any, name string) (map[string]any, bool) {
	node, _ := properties[name].(map[string]any)
	fields, ok := node["properties"].(map[string]any)
	return fields, ok
}

// define adds the field path and its subfields.
func (g *merger) define(path string, definition any) {
	t, subfields := g.field(path, definition)
	if old := g.fields[path]; old != nil && (old.name != t.name || old.analyzer != t.analyzer) {
		g.fail(badRequest("illegal_argument_exception", "mapper [%s] cannot be changed from type [%s] to [%s]", path, old.name, t.name))
	}
	for _, name := range slices.Sorted(maps.Keys(subfields)) {
		t.subfields = append(t.subfields, path+"."+name)
		sub, deeper := g.field(path+"."+name, subfields[name])
		if len(deeper) > 0 {
			g.fail(mapperError("Type [%s] of field [%s.%s] can't have fields of its own", sub.name, path, name))
		}
		g.fields[path+"."+name] = sub
	}
	g.fields[path] = t
}

// field reads the definition of one field. Parameters that change neither terms
// nor scores are accepted.
func (g *merger) field(path string, definition any) (t *fieldType, subfields map[string]any) {
	a := g.members("field "+path, definition)
	t = &fieldType{name: a.str("type", ""), norms: true}
	switch t.name {
	case "text":
		t.kind = textField
		t.analyzer = a.str("analyzer", "standard")
		t.searchAnalyzer = a.str("search_analyzer", t.analyzer)
		t.norms = a.boolean("norms", true)
		for _, name := range []string{t.analyzer, t.searchAnalyzer} {
			if g.known[name] == nil {
				g.fail(mapperError("analyzer [%s] has not been configured in mappings", name))
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
		g.fail(mapperError("No handler for type [%s] declared on field [%s]", t.name, path))
	}
	if similarity := a.str("similarity", "BM25"); similarity != "BM25" {
		g.fail(unsupported("similarity [%s] of field [%s]", similarity, path))
	}
	for _, neutral := range []string{"store", "doc_values", "term_vector", "coerce", "meta", "eager_global_ordinals", "fielddata"} {
		a.take(neutral)
	}
	subfields = a.object("fields")
	_ = a.done() // it stays with g
	return t, subfields
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
	return m.merge(map[string]any{"properties": tree}, known)
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
	first, rest, wild := strings.Cut(pattern, "*")
	s, ok := strings.CutPrefix(s, first)
	if !wild || !ok {
		return ok && s == ""
	}
	for {
		part, more, wild := strings.Cut(rest, "*")
		if !wild {
			return strings.HasSuffix(s, part)
		}
		if _, s, ok = strings.Cut(s, part); !ok {
			return false
		}
		rest = more
	}
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
