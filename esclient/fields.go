package esclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrTooManyFields says that a pattern matches more fields than a search is to
// be expanded for.
var ErrTooManyFields = errors.New("the pattern matches too many fields")

// maxFields bounds the names that a pattern leads to. The engines themselves
// refuse to search more fields than they allow clauses: 1,024 where nothing
// else is set.
const maxFields = 1024

// Fields returns the full names, in order, of the mapped fields that a query
// goes to whose field name is the pattern: all that match it in one of the
// indices, be they text or not, multi-fields and those of objects and nested
// objects among them. Fields that hold no terms (binary, geo shapes, vectors),
// fields that an engine makes itself (_id, the subfields of search_as_you_type)
// and aliases whose field matches too are left out. An asterisk stands for any
// number of any characters, dots too. The names must not be modified.
//
// The error wraps [ErrTooManyFields] where there are more than 1,024, and
// [ErrNotText] or [ErrRemote] where the indices are none to ask for. What is
// not remembered takes one round trip.
func (c *Cached) Fields(ctx context.Context, indices Indices, pattern string) ([]string, error) {
	k := c.key(indices, pattern)
	names, warm, err := c.analysis.patterns.get(k)
	if !warm {
		own := k.clone()
		names, err = c.analysis.patterns.load(ctx, own, func(ctx context.Context) ([]string, error) {
			return c.client.fields(ctx, own.Indices, own.field)
		})
	}
	c.tally(&c.analysis.counters, warm, err)
	return names, err
}

// A fieldTree is what the filter of fieldsPath lets through of an index.
type fieldTree struct {
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

func (c *Client) fields(ctx context.Context, indices Indices, pattern string) ([]string, error) {
	if err := indices.check(); err != nil {
		return nil, err
	}
	if err := checkField(pattern); err != nil {
		return nil, err
	}
	var answer map[string]fieldTree
	if err := c.call(ctx, request{method: http.MethodGet, path: fieldsPath(indices, pattern)}, &answer); err != nil {
		return nil, err
	}
	names, err := matchingFields(answer, pattern)
	if err != nil {
		return nil, fmt.Errorf("fields %q of %q: %w", pattern, indices.Expression, err)
	}
	return names, nil
}

// fieldsPath returns the path that asks for the types of the fields that may
// match a pattern, and for nothing else of them.
func fieldsPath(indices Indices, pattern string) string {
	first, _, _ := strings.Cut(pattern, ".")
	first, _, _ = strings.Cut(first, "*")
	filter := []string{"*.settings.index.verified_before_close", "*.mappings.runtime.*.type", "*.mappings.derived.*.type"}
	for _, member := range []string{"type", "path"} {
		if first == "" || strings.ContainsAny(first, `,\`) {
			filter = append(filter, "*.mappings.properties.**."+member)
		} else { // ** takes at least one segment
			properties := "*.mappings.properties." + first + "*."
			filter = append(filter, properties+member, properties+"**."+member)
		}
	}
	return indices.path("", url.Values{"filter_path": {strings.Join(filter, ",")}})
}

// matchingFields returns the names of the fields that match in the open
// indices of an answer.
func matchingFields(answer map[string]fieldTree, pattern string) ([]string, error) {
	all := map[string]bool{}
	for index, tree := range answer {
		if tree.Settings.Index.Closed == "true" {
			continue
		}
		f := finder{pattern: newGlob(pattern), found: map[string]string{}}
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
		if len(all) > maxFields {
			return nil, fmt.Errorf("more than %d: %w", maxFields, ErrTooManyFields)
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// A finder collects the fields of an index that match a pattern.
type finder struct {
	pattern glob
	// textOnly says that it collects fields of text alone.
	textOnly bool
	// found holds for each name the one that it is an alias of, "" for none.
	found map[string]string
}

// visit adds the fields among the properties of the object whose names start
// with prefix.
func (f *finder) visit(prefix string, properties map[string]jsontext.Value) error {
	for name, raw := range properties {
		var p property
		if err := decode(raw, &p); err != nil {
			return fmt.Errorf("field %q: %w", prefix+name, err)
		}
		full := prefix + name
		if p.searched() && (!f.textOnly || p.Type == "text") && f.pattern.matches(full) {
			f.found[full] = ""
			if p.Type == typeAlias {
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
func (p *property) searched() bool {
	switch p.Type {
	case "", "object", "nested", "passthrough",
		"binary", "percolator", "histogram", "dense_vector", "knn_vector",
		"geo_point", "geo_shape", "point", "shape", "xy_point", "xy_shape":
		return false
	default:
		return true
	}
}

// A glob is a pattern cut at its asterisks: what a name has to hold, in that
// order, the first and the last at its ends.
type glob []string

func newGlob(pattern string) glob { return strings.Split(pattern, "*") }

// matches reports whether a name matches.
func (g glob) matches(name string) bool {
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
