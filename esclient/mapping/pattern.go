package mapping

import (
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

// MaxFields bounds the names that a pattern leads to. The engines themselves
// refuse to search more fields than they allow clauses: 1,024 where nothing
// else is set.
const MaxFields = 1024

// A Tree is what an answer that holds only the types of fields says of an
// index.
type Tree struct {
	Mappings struct {
		Properties map[string]jsontext.Value `json:"properties"`
		Runtime    map[string]jsontext.Value `json:"runtime"`
		Derived    map[string]jsontext.Value `json:"derived"`
	} `json:"mappings"`
	Settings struct {
		Index struct {
			Closed string `json:"verified_before_close"`
		} `json:"index"`
	} `json:"settings"`
}

// Matching returns the names of the fields that match in the open
// indices of an answer.
func Matching(answer map[string]Tree, pattern string) ([]string, error) {
	all := map[string]bool{}
	for index, tree := range answer {
		if tree.Settings.Index.Closed == "true" {
			continue
		}
		f := finder{pattern: NewGlob(pattern), found: map[string]string{}}
		m := &tree.Mappings
		for _, properties := range []map[string]jsontext.Value{m.Properties, m.Runtime, m.Derived} {
			if err := f.visit("", properties); err != nil {
				return nil, fmt.Errorf("mapping of index %q: %w", index, err)
			}
		}
		for name, target := range f.found {
			// The engines search a field once that a pattern leads to twice.
			if _, twice := f.found[target]; !twice {
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
func TextFields(properties map[string]jsontext.Value) (map[string]string, error) {
	f := finder{pattern: NewGlob("*"), textOnly: true, found: map[string]string{}}
	return f.found, f.visit("", properties)
}

// A finder collects the fields of an index that match a pattern.
type finder struct {
	pattern Glob
	// textOnly says that it collects fields of text alone.
	textOnly bool
	// found holds for each name the one that it is an alias of, "" for none.
	found map[string]string
}

// visit adds the fields among the properties of the object whose names start
// with prefix.
func (f *finder) visit(prefix string, properties map[string]jsontext.Value) error {
	for name, raw := range properties {
		var p Property
		if err := decode(raw, &p); err != nil {
			return fmt.Errorf("field %q: %w", prefix+name, err)
		}
		full := prefix + name
		if p.searched() && (!f.textOnly || p.Type == "text") && f.pattern.Matches(full) {
			f.found[full] = ""
			if p.Type == TypeAlias {
				f.found[full] = p.Path
			}
		}
		for _, below := range []map[string]jsontext.Value{p.Fields, p.Properties} {
			if err := f.visit(full+".", below); err != nil {
				return err
			}
		}
	}
	return nil
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

// A Glob is a pattern cut at its asterisks: what a name has to hold, in that
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
