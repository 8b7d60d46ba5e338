package esclient

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient/mapping"
)

// Errors that mean "leave this field alone", not "something is broken".
var (
	// ErrNotText says that the field is not mapped as searchable text in every
	// index that maps it, or is mapped in none.
	ErrNotText = mapping.ErrNotText
	// ErrMixed says that the indices treat the field differently: other
	// analyzers or other similarities.
	ErrMixed = mapping.ErrMixed
	// ErrTooManyFields says that a pattern matches more fields than a search is to
	// be expanded for.
	ErrTooManyFields = mapping.ErrTooManyFields
)

// A Similarity is a kind of scoring that a field is mapped with.
type Similarity = mapping.Similarity

// The similarities, as in the package mapping.
const (
	BM25    = mapping.BM25
	Boolean = mapping.Boolean
	Other   = mapping.Other
)

// maxFieldName bounds the name of a field in bytes. A longer one is found in no
// mapping; it would not fit the line of the request for it either.
const maxFieldName = 1024

// checkField returns why a field name is not even to be asked for.
func checkField(field string) error {
	if field == "" || len(field) > maxFieldName {
		return fmt.Errorf("a field name of %d bytes: %w", len(field), ErrNotText)
	}
	return nil
}

// schema asks for what the indices say of a field. The error wraps
// [ErrNotText], [ErrMixed] or [ErrRemote] where the field is not one to expand.
func (c *Client) schema(ctx context.Context, indices Indices, field string) (*mapping.Schema, error) {
	answer, err := c.fieldMappings(ctx, indices, field)
	if err != nil {
		return nil, err
	}
	return c.readSchema(ctx, indices, field, answer)
}

// readSchema returns what an answer of fieldMappings says of the field.
func (c *Client) readSchema(ctx context.Context, indices Indices, field string, answer map[string]mapping.Index) (*mapping.Schema, error) {
	fields, err := c.readFields(ctx, indices, field, answer)
	if err != nil {
		return nil, err
	}
	s, err := mapping.Merge(fields)
	if err != nil {
		return nil, fmt.Errorf("field %q of %q: %w", field, indices.Expression, err)
	}
	for _, t := range s.Targets {
		m := answer[t.Index]
		s.Routed = s.Routed || m.Routed(indices.mayName)
		s.Filtered = s.Filtered || m.Filtered(indices.mayName)
	}
	return s, nil
}

// indexFields asks for what each of the indices that map a field says of it.
func (c *Client) indexFields(ctx context.Context, indices Indices, field string) ([]mapping.Field, error) {
	answer, err := c.fieldMappings(ctx, indices, field)
	if err != nil {
		return nil, err
	}
	return c.readFields(ctx, indices, field, answer)
}

// fieldMappings asks for the mappings of a field, by index.
func (c *Client) fieldMappings(ctx context.Context, indices Indices, field string) (map[string]mapping.Index, error) {
	if err := indices.check(); err != nil {
		return nil, err
	}
	if err := checkField(field); err != nil {
		return nil, err
	}
	return c.mappings(ctx, indices, field)
}

// readFields returns what each index in an answer of fieldMappings that maps
// the field says of it.
func (c *Client) readFields(ctx context.Context, indices Indices, field string, answer map[string]mapping.Index) ([]mapping.Field, error) {
	fields, err := mapping.Fields(answer, field)
	if err != nil {
		return nil, fmt.Errorf("field %q of %q: %w", field, indices.Expression, err)
	}
	if err := c.settleAnalyzers(ctx, indices, field, fields); err != nil {
		return nil, err
	}
	return fields, nil
}

// maxAliased bounds the fields that an alias stands for in the indices of an
// expression, and with them the request for their mappings.
const maxAliased = 16

// mappings asks for the mappings of a field and of more, once more where it is
// an alias and the answer lacks the field it stands for.
func (c *Client) mappings(ctx context.Context, indices Indices, field string, more ...string) (map[string]mapping.Index, error) {
	var answer map[string]mapping.Index
	all := append([]string{field}, more...)
	if err := c.call(ctx, request{method: http.MethodGet, path: schemaPath(indices, all...)}, &answer); err != nil {
		return nil, err
	}
	missing, err := aliased(answer, field)
	if err != nil || len(missing) == 0 {
		return answer, err
	}
	if len(missing) > maxAliased {
		return nil, fmt.Errorf("field %q of %q is an alias of %d fields: %w",
			field, indices.Expression, len(missing), ErrMixed)
	}
	var full map[string]mapping.Index
	path := schemaPath(indices, append(missing, all...)...)
	err = c.call(ctx, request{method: http.MethodGet, path: path}, &full)
	return full, err
}

// aliased returns the fields that field is an alias of and that are not in the
// answer.
func aliased(answer map[string]mapping.Index, field string) ([]string, error) {
	var missing []string
	for index, m := range answer {
		p, err := mapping.Find(m.Mappings.Properties, field)
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", index, err)
		}
		if p == nil || p.Type != mapping.TypeAlias || len(p.Path) > maxFieldName || slices.Contains(missing, p.Path) {
			continue
		}
		if target, err := mapping.Find(m.Mappings.Properties, p.Path); target == nil && err == nil {
			missing = append(missing, p.Path)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// schemaPath returns the path that asks for the mappings of fields, for the
// settings and for the routing and the filters of aliases. The filter keeps
// what comes back small where the mappings hold thousands of fields: it lets
// through the first segment of each field and what begins like it, since a
// mapping without subobjects has keys with dots.
func schemaPath(indices Indices, fields ...string) string {
	filter := []string{"*.settings", "*.mappings.runtime", "*.mappings.derived", "*.data_stream"}
	if aliases := indices.aliasFilter(); aliases != "" {
		filter = append(filter, aliases+".search_routing", aliases+".filter")
	}
	for _, field := range fields {
		first, _, _ := strings.Cut(field, ".")
		if strings.ContainsAny(first, `*,\`) {
			filter = append(filter, "*.mappings.properties")
		} else {
			filter = append(filter, "*.mappings.properties."+first+"*")
		}
	}
	return indices.path("", url.Values{"flat_settings": {"true"}, "filter_path": {strings.Join(filter, ",")}})
}

// settleAnalyzers asks for the search analyzers that the mapping leaves open.
// Where the index defines default_search and the field names an analyzer but no
// search analyzer, Elasticsearch 7 and OpenSearch search with default_search
// and Elasticsearch 8 with the field's analyzer.
func (c *Client) settleAnalyzers(ctx context.Context, indices Indices, field string, fields []mapping.Field) error {
	var open []string
	for i := range fields {
		if name := cmp.Or(fields[i].AliasOf, field); fields[i].SearchAnalyzer == "" && !slices.Contains(open, name) {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return nil
	}
	var answer map[string]struct {
		Mappings map[string]struct {
			Mapping map[string]struct {
				SearchAnalyzer string `json:"search_analyzer"`
			} `json:"mapping"`
		} `json:"mappings"`
	}
	path := indices.path("/_mapping/field/"+url.PathEscape(strings.Join(open, ",")),
		url.Values{"include_defaults": {"true"}})
	if err := c.call(ctx, request{method: http.MethodGet, path: path}, &answer); err != nil {
		return err
	}
	for i := range fields {
		f := &fields[i]
		if f.SearchAnalyzer != "" {
			continue
		}
		for _, leaf := range answer[f.Index].Mappings[cmp.Or(f.AliasOf, field)].Mapping {
			f.SearchAnalyzer = leaf.SearchAnalyzer // the one entry, named by the last segment
		}
		if f.SearchAnalyzer == "" {
			return fmt.Errorf("index %q: the mapping names no search analyzer", f.Index)
		}
	}
	return nil
}
