// Package mapping reads what the mappings and settings of indices say of a
// field: what it is, how it is analyzed and scored, and whether several indices
// treat it alike. It makes no calls.
package mapping

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Mappings are the fields of an index.
type Mappings struct {
	Properties map[string]jsontext.Value `json:"properties"`
	// Runtime and Derived are fields computed at search time, in Elasticsearch
	// and OpenSearch; they shadow mapped ones.
	Runtime map[string]jsontext.Value `json:"runtime"`
	Derived map[string]jsontext.Value `json:"derived"`
}

// An Index is what GET /{index} with flat settings tells of an index.
type Index struct {
	Mappings Mappings `json:"mappings"`
	Settings Settings `json:"settings"`
	// DataStream is the stream that the index is behind, "" for none.
	DataStream string `json:"data_stream"`
	// Aliases are those that the expression of the indices may name.
	Aliases map[string]struct {
		SearchRouting string         `json:"search_routing"`
		Filter        jsontext.Value `json:"filter"`
	} `json:"aliases"`
}

// Routed reports whether an alias that a search may name may send it to some of
// the index's shards only.
func (m *Index) Routed(mayName func(alias string) bool) bool {
	for alias, a := range m.Aliases {
		if a.SearchRouting != "" && mayName(alias) {
			return true
		}
	}
	return false
}

// Filtered reports whether an alias that a search may name has a filter.
func (m *Index) Filtered(mayName func(alias string) bool) bool {
	for alias, a := range m.Aliases {
		if len(a.Filter) > 0 && mayName(alias) {
			return true
		}
	}
	return false
}

// Closed reports whether the index is closed.
func (m *Index) Closed() bool { return m.Settings.Text("index.verified_before_close") == "true" }

// Open returns the names of the open indices in an answer, in order:
// that of the data stream where there is one.
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
	IndexOptions   string                    `json:"index_options"`
	DocValues      jsontext.Value            `json:"doc_values"`
	Properties     map[string]jsontext.Value `json:"properties"`
	Fields         map[string]jsontext.Value `json:"fields"`
}

// A Found property is a field's own, with where it stands.
type Found struct {
	Property
	// Nested is the path of the innermost nested object above it.
	Nested string
	// Source is the path of its text in a document.
	Source string
}

// Resolve returns the property of a field, nil if there is none, and where the
// name is an alias the name of the field that it stands for.
func (m *Index) Resolve(field string) (p *Found, alias string, err error) {
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

// TypeAlias is the type of a second name for a field.
const TypeAlias = "alias"

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

// Find returns the property of a field, nil if there is none.
func Find(properties map[string]jsontext.Value, field string) (*Found, error) {
	return find(properties, field, 0, "")
}

// CheckNorm returns why the field is no doc value that holds a norm exactly
// enough.
func (p *Found) CheckNorm() error {
	if p.Type != "float" && p.Type != "double" || string(p.DocValues) == "false" || p.Nested != "" {
		return fmt.Errorf("mapped as %s, wanted is a float with doc values", p.TypeName())
	}
	return nil
}

// find returns the property at path[from:] below properties, nil if there is
// none. nested is the innermost nested object above. A key may span several
// segments of the path, in a mapping without subobjects.
func find(properties map[string]jsontext.Value, path string, from int, nested string) (*Found, error) {
	for end := from; end <= len(path); end++ {
		if end < len(path) && path[end] != '.' {
			continue
		}
		raw, ok := properties[path[from:end]]
		if !ok {
			continue
		}
		p := Found{Nested: nested, Source: path[:end]}
		if err := decode(raw, &p.Property); err != nil {
			return nil, fmt.Errorf("field %q: %w", path[:end], err)
		}
		if end == len(path) {
			return &p, nil
		}
		if below, err := p.find(path, end+1); below != nil || err != nil {
			return below, err
		}
	}
	return nil, nil //nolint:nilnil // an index without the field is no error
}

// find returns the property at path[from:] below p: a multi-field, whose text
// in a document is p's, or one of an object.
func (p *Found) find(path string, from int) (*Found, error) {
	if multi, ok := p.Fields[path[from:]]; ok {
		below := Found{Nested: p.Nested, Source: p.Source}
		if err := decode(multi, &below.Property); err != nil {
			return nil, fmt.Errorf("field %q: %w", path, err)
		}
		return &below, nil
	}
	return find(p.Properties, path, from, p.nestedBelow())
}

// nestedBelow returns the path of the innermost nested object above what is
// below p.
func (p *Found) nestedBelow() string {
	if p.Type == "nested" {
		return p.Source
	}
	return p.Nested
}

// decode decodes JSON of an answer, which may hold a name twice.
func decode(b []byte, out any) error {
	return json.Unmarshal(b, out, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}
