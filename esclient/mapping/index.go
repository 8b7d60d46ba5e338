// Package mapping reads mappings and settings of indices: what a field is, how
// it is analyzed and scored, and whether indices treat it alike. It has no I/O.
package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/internal/glob"
)

const (
	// MaxFields limits the fields that a pattern matches. The engines refuse to
	// search more fields than they allow clauses, by default as many.
	MaxFields = 1024
	// maxDepth limits the nesting of fields. The engines refuse more than 20
	// levels by default.
	maxDepth = 100
	// TypeAlias is the type of a second name for a field.
	TypeAlias = "alias"
)

// Errors that mean "do not expand this field", not "something is broken".
var (
	// ErrNotText says that an index maps the field as something other than
	// searchable text, or that none maps it.
	ErrNotText = errors.New("not a text field")
	// ErrMixed says that indices differ in the field's analyzers or similarity.
	ErrMixed = errors.New("the indices analyze or score the field differently")
	// ErrTooManyFields says that a pattern matches more than [MaxFields].
	ErrTooManyFields = errors.New("the pattern matches too many fields")
)

// Mappings are the fields of an index. Runtime (Elasticsearch) and Derived
// (OpenSearch) are computed at search time and shadow mapped ones.
type Mappings struct {
	Properties map[string]jsontext.Value `json:"properties"`
	Runtime    map[string]jsontext.Value `json:"runtime"`
	Derived    map[string]jsontext.Value `json:"derived"`
	// Templates map future fields. Kept says what is kept of documents' source.
	Templates jsontext.Value `json:"dynamic_templates"`
	Kept      jsontext.Value `json:"_source"`
}

// computed reports whether a field is computed at search time.
func (m *Mappings) computed(field string) bool {
	return m.Runtime[field] != nil || m.Derived[field] != nil
}

// An Index is the answer of GET /{index} with flat settings.
type Index struct {
	Mappings Mappings `json:"mappings"`
	Settings Settings `json:"settings"`
	// DataStream is the data stream of the index, or "".
	DataStream string `json:"data_stream"`
	// Aliases are those that the index expression may name.
	Aliases map[string]struct {
		SearchRouting string         `json:"search_routing"`
		Filter        jsontext.Value `json:"filter"`
	} `json:"aliases"`
}

// Pipeline returns the name of the index's own search pipeline, "" for none.
func (m *Index) Pipeline() string {
	if name := m.Settings.Text("index.search.default_pipeline"); name != "_none" {
		return name
	}
	return ""
}

// Restricted reports whether an alias that a search may name sends it to only
// some of the index's shards, and whether one has a filter, as the index's own
// search pipeline may have.
func (m *Index) Restricted(mayName func(alias string) bool) (routed, filtered bool) {
	filtered = m.Pipeline() != ""
	for alias, a := range m.Aliases {
		if (a.SearchRouting != "" || len(a.Filter) > 0) && mayName(alias) {
			routed, filtered = routed || a.SearchRouting != "", filtered || len(a.Filter) > 0
		}
	}
	return routed, filtered
}

// Closed reports whether the index is closed.
func (m *Index) Closed() bool { return m.Settings.Text("index.verified_before_close") == "true" }

// Open returns the sorted names of open indices, or of their data streams.
func Open(answer map[string]Index) []string {
	names := make([]string, 0, len(answer))
	for index, m := range answer {
		if !m.Closed() {
			names = append(names, cmp.Or(m.DataStream, index))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A Property is a field's entry in a mapping.
type Property struct {
	Type           string                    `json:"type"`
	Analyzer       string                    `json:"analyzer"`
	SearchAnalyzer string                    `json:"search_analyzer"`
	Similarity     string                    `json:"similarity"`
	Path           string                    `json:"path"`
	Index          jsontext.Value            `json:"index"`
	IndexOptions   jsontext.Value            `json:"index_options"`
	DocValues      jsontext.Value            `json:"doc_values"`
	Dims           jsontext.Value            `json:"dims"`      // of a dense_vector
	Dimension      jsontext.Value            `json:"dimension"` // of a knn_vector
	Properties     map[string]jsontext.Value `json:"properties"`
	Fields         map[string]jsontext.Value `json:"fields"`

	// Nested is the path of the innermost nested object above it, or "". Source is
	// the path of its text in a document; for a multi-field, of its parent field.
	Nested string `json:"-"`
	Source string `json:"-"`
}

// walk calls fn with the full name of each field, object and multi-field below
// some properties that enter allows. Keys may have several segments, in a
// mapping without subobjects.
func walk(properties map[string]jsontext.Value, enter func(name string) bool, fn func(name string, p *Property)) error {
	return (&Property{Properties: properties}).walk("", maxDepth, enter, fn)
}

// walk is the walk below p, whose fields' names start with prefix.
func (p *Property) walk(prefix string, depth int, enter func(name string) bool, fn func(name string, p *Property)) error {
	if depth < 0 {
		return errors.New("nested too deep")
	}
	visit := func(fields map[string]jsontext.Value, source, nested string) error {
		for key, raw := range fields {
			name := prefix + key
			if !enter(name) {
				continue
			}
			below := Property{Nested: nested, Source: cmp.Or(source, name)}
			if err := decode(raw, &below); err != nil {
				return fmt.Errorf("field %q: %w", name, err)
			}
			fn(name, &below)
			if err := below.walk(name+".", depth-1, enter, fn); err != nil {
				return err
			}
		}
		return nil
	}
	if err := visit(p.Fields, p.Source, p.Nested); err != nil {
		return err
	}
	nested := p.Nested
	if p.Type == "nested" {
		nested = p.Source
	}
	return visit(p.Properties, "", nested)
}

// all allows all fields in a walk.
func all(string) bool { return true }

// Find returns the property of a field, or nil.
func Find(properties map[string]jsontext.Value, field string) (found *Property, err error) {
	err = walk(properties, func(name string) bool {
		return name == field || strings.HasPrefix(field, name) && field[len(name)] == '.'
	}, func(name string, p *Property) {
		if name == field {
			found = p
		}
	})
	return found, err
}

// Resolve returns the property of a field or nil, and, for an alias, its
// target.
func (m *Index) Resolve(field string) (p *Property, alias string, err error) {
	p, err = Find(m.Mappings.Properties, field)
	if p == nil || err != nil || p.Type != TypeAlias {
		return p, "", err
	}
	alias = p.Path
	p, err = Find(m.Mappings.Properties, alias)
	if p == nil && err == nil {
		err = fmt.Errorf("no field %q for the alias: %w", alias, ErrNotText)
	}
	return p, alias, err
}

// TypeName returns the type for a message.
func (p *Property) TypeName() string {
	switch p.Type {
	case "":
		return "object"
	case "text":
		return "text that is not indexed"
	default:
		return p.Type
	}
}

// Matching returns the names of matching fields in open indices of an answer.
func Matching(answer map[string]Index, pattern string) ([]string, error) {
	names := map[string]bool{}
	for index, m := range answer {
		if m.Closed() {
			continue
		}
		found, err := m.Mappings.matching(pattern)
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", index, err)
		}
		for name, target := range found {
			// Engines search a field once even if the pattern matches it twice.
			if _, twice := found[target]; !twice {
				names[name] = true
			}
		}
		if len(names) > MaxFields {
			return nil, fmt.Errorf("more than %d: %w", MaxFields, ErrTooManyFields)
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// matching returns the matching fields with their alias targets, "" for none.
func (m *Mappings) matching(pattern string) (map[string]string, error) {
	found := map[string]string{}
	for _, properties := range []map[string]jsontext.Value{m.Properties, m.Runtime, m.Derived} {
		err := walk(properties, all, func(name string, p *Property) {
			if p.searched() && glob.Match(pattern, name) {
				found[name] = ""
				if p.Type == TypeAlias {
					found[name] = p.Path
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// searched reports whether a field of this type is searched by text queries
// whose field name is a pattern.
func (p *Property) searched() bool {
	switch p.Type {
	case "", "object", "nested", "passthrough",
		"binary", "percolator", "histogram", "dense_vector", "knn_vector",
		"geo_point", "geo_shape", "point", "shape", "xy_point", "xy_shape":
		return false
	default:
		return true
	}
}

// TextFields returns the full names of the text fields in some properties.
func TextFields(properties map[string]jsontext.Value) (names []string, err error) {
	err = walk(properties, all, func(name string, p *Property) {
		if p.Type == "text" {
			names = append(names, name)
		}
	})
	return names, err
}

// OwnTexts returns the fields that index text of the documents themselves, not
// those in nested objects or filled by copy_to.
func (m *Mappings) OwnTexts() (names []string, err error) {
	copied := m.copied()
	err = walk(m.Properties, all, func(name string, p *Property) {
		if p.Type == "text" && string(p.Index) != "false" && p.Nested == "" && !slices.Contains(copied, p.Source) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names, err
}

// Uncountable returns why the terms of a field, with its text at source, cannot
// be counted from documents, or "".
func (m *Mappings) Uncountable(source string) string {
	var kept struct {
		Enabled  *bool          `json:"enabled"`
		Mode     string         `json:"mode"`
		Includes jsontext.Value `json:"includes"`
		Excludes jsontext.Value `json:"excludes"`
	}
	switch {
	case len(m.Kept) > 0 && decode(m.Kept, &kept) != nil:
		return "its mapping cannot be read"
	case kept.Enabled != nil && !*kept.Enabled, kept.Mode == "disabled":
		return "the index keeps no _source"
	case len(kept.Includes) > 0 || len(kept.Excludes) > 0:
		return "the index keeps a part of the _source only, and an update would lose the rest"
	case slices.Contains(m.copied(), source):
		return "other fields are copied to it by copy_to"
	default:
		return ""
	}
}

// copied returns the fields that copy_to fills.
func (m *Mappings) copied() []string {
	names := copyTargets(m.Templates)
	for _, property := range m.Properties {
		names = append(names, copyTargets(property)...)
	}
	return names
}

// copyTargets returns the fields that copy_to names anywhere in v.
func copyTargets(v jsontext.Value) (names []string) {
	var list []jsontext.Value
	var members map[string]jsontext.Value
	switch {
	case v.Kind() == jsontext.KindBeginArray && decode(v, &list) == nil:
		for _, element := range list {
			names = append(names, copyTargets(element)...)
		}
	case v.Kind() == jsontext.KindBeginObject && decode(v, &members) == nil:
		names = stringsOf(members["copy_to"])
		for _, member := range members {
			names = append(names, copyTargets(member)...)
		}
	}
	return names
}
