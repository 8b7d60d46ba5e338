package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrTooManyFields says that a pattern matches more fields than a search is to
// be expanded for.
var ErrTooManyFields = errors.New("the pattern matches too many fields")

const (
	// MaxFields bounds the names that a pattern leads to. The engines themselves
	// refuse to search more fields than they allow clauses: 1,024 where nothing
	// else is set.
	MaxFields = 1024
	// maxDepth is the deepest nesting of fields that is followed. The engines
	// refuse more than 20 levels, unless told otherwise.
	maxDepth = 100
)

// A Tree is what an answer that has only the types of fields says of an index.
type Tree struct {
	Mappings Mappings `json:"mappings"`
	Settings struct {
		Index struct {
			Closed string `json:"verified_before_close"`
		} `json:"index"`
	} `json:"settings"`
}

// walk calls fn with all fields below some properties, objects and multi-fields
// too, by their full names.
func walk(properties map[string]jsontext.Value, fn func(name string, p *Found)) error {
	return (&Found{Property: Property{Properties: properties}}).walk("", maxDepth, fn)
}

// walk calls fn with the fields below p, whose names start with prefix.
func (p *Found) walk(prefix string, depth int, fn func(name string, p *Found)) error {
	if depth < 0 {
		return errors.New("nested too deep")
	}
	visit := func(fields map[string]jsontext.Value, source, nested string) error {
		for key, raw := range fields {
			name := prefix + key
			below := Found{Nested: nested, Source: cmp.Or(source, name)}
			if err := decode(raw, &below.Property); err != nil {
				return fmt.Errorf("field %q: %w", name, err)
			}
			fn(name, &below)
			if err := below.walk(name+".", depth-1, fn); err != nil {
				return err
			}
		}
		return nil
	}
	if err := visit(p.Fields, p.Source, p.Nested); err != nil {
		return err
	}
	return visit(p.Properties, "", p.nestedBelow())
}

// Matching returns the names of the fields that match in the open indices of an
// answer.
func Matching(answer map[string]Tree, pattern string) ([]string, error) {
	glob := NewGlob(pattern)
	all := map[string]bool{}
	for index, tree := range answer {
		if tree.Settings.Index.Closed == "true" {
			continue
		}
		found := map[string]string{} // the field that each is an alias of, "" for none
		m := &tree.Mappings
		for _, properties := range []map[string]jsontext.Value{m.Properties, m.Runtime, m.Derived} {
			err := walk(properties, func(name string, p *Found) {
				if p.searched() && glob.Matches(name) {
					found[name] = ""
					if p.Type == TypeAlias {
						found[name] = p.Path
					}
				}
			})
			if err != nil {
				return nil, fmt.Errorf("mapping of index %q: %w", index, err)
			}
		}
		for name, target := range found {
			// The engines search a field once that a pattern leads to twice.
			if _, twice := found[target]; !twice {
				all[name] = true
			}
		}
		if len(all) > MaxFields {
			return nil, fmt.Errorf("more than %d: %w", MaxFields, ErrTooManyFields)
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// TextFields returns the full names of the text fields among some properties.
func TextFields(properties map[string]jsontext.Value) (names []string, err error) {
	err = walk(properties, func(name string, p *Found) {
		if p.Type == "text" {
			names = append(names, name)
		}
	})
	return names, err
}

// OwnTexts returns the names of the fields that index text of the documents
// themselves: without those in nested objects and those that copy_to fills.
// mappings are those of an index, whole.
func OwnTexts(mappings jsontext.Value) ([]string, error) {
	var m Mappings
	if err := decode(mappings, &m); err != nil {
		return nil, err
	}
	copied := copyTargets(mappings)
	var names []string
	err := walk(m.Properties, func(name string, p *Found) {
		if p.Type == "text" && string(p.Index) != "false" && p.Nested == "" && !slices.Contains(copied, p.Source) {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names, err
}

// searched reports whether a query for a text whose field name is a pattern
// goes to the field, as far as its type decides.
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

// Uncountable returns why a mapping does not let the terms of a field be
// counted, whose text documents have at source; "" if it does.
func Uncountable(mappings jsontext.Value, source string) string {
	var m struct {
		Source struct {
			Enabled  *bool          `json:"enabled"`
			Mode     string         `json:"mode"`
			Includes jsontext.Value `json:"includes"`
			Excludes jsontext.Value `json:"excludes"`
		} `json:"_source"`
	}
	if len(mappings) == 0 {
		return ""
	}
	switch err := decode(mappings, &m); {
	case err != nil:
		return "its mapping cannot be read"
	case m.Source.Enabled != nil && !*m.Source.Enabled, m.Source.Mode == "disabled":
		return "the index keeps no _source"
	case len(m.Source.Includes) > 0 || len(m.Source.Excludes) > 0:
		return "the index keeps a part of the _source only, and an update would lose the rest"
	case slices.Contains(copyTargets(mappings), source):
		return "other fields are copied to it by copy_to"
	default:
		return ""
	}
}

// copyTargets returns the fields that copy_to names somewhere in v.
func copyTargets(v jsontext.Value) []string {
	var names []string
	var list []jsontext.Value
	var members map[string]jsontext.Value
	switch {
	case v.Kind() == jsontext.KindBeginArray && decode(v, &list) == nil:
		for _, element := range list {
			names = append(names, copyTargets(element)...)
		}
	case v.Kind() == jsontext.KindBeginObject && decode(v, &members) == nil:
		for name, member := range members {
			if name == "copy_to" {
				names = append(names, stringsOf(member)...)
			}
			names = append(names, copyTargets(member)...)
		}
	}
	return names
}

// stringsOf returns the strings of an array of them, or the one that v is.
func stringsOf(v jsontext.Value) []string {
	var list []string
	if decode(v, &list) == nil {
		return list
	}
	var one string
	if decode(v, &one) == nil {
		return []string{one}
	}
	return nil
}

// A Glob is a pattern cut at its asterisks: what a name has to have, in that
// order, the first and the last at its ends.
type Glob []string

// NewGlob returns the glob of a pattern.
func NewGlob(pattern string) Glob { return strings.Split(pattern, "*") }

// Matches reports whether a name matches.
func (g Glob) Matches(name string) bool {
	if len(g) == 1 {
		return name == g[0]
	}
	rest, ok := strings.CutPrefix(name, g[0])
	if !ok {
		return false
	}
	last := len(g) - 1
	for _, part := range g[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, g[last])
}
