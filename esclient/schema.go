package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
)

// Errors that mean "leave this field alone", not "something is broken".
var (
	// ErrNotText says that the field is not mapped as searchable text in every
	// index that maps it, or is mapped in none.
	ErrNotText = errors.New("not a text field")
	// ErrMixed says that the indices treat the field differently: other
	// analyzers or other similarities.
	ErrMixed = errors.New("the indices analyze or score the field differently")
)

// A Similarity is a kind of scoring that a field is mapped with.
type Similarity uint8

// The similarities.
const (
	// BM25 multiplies idf in once.
	BM25 Similarity = iota
	// Boolean scores every term with its boost.
	Boolean
	// Other is one whose formula is not known: DFR, IB, language models,
	// scripted ones.
	Other
)

// defaultK1 is the k1 of the BM25 of both engines where a mapping sets none.
const defaultK1 = 1.2

// maxFieldName bounds the name of a field in bytes. A longer one is found in no
// mapping; it would not fit the line of the request for it either.
const maxFieldName = 1024

// A schema is what the indices of an expression say of a field that all of them
// that map it treat alike. It is shared and, its flag apart, not modified.
type schema struct {
	// targets are the concrete indices that map the field, by name, at least
	// one.
	targets []target
	// nested is the path of the innermost nested object above the field, "" if
	// there is none.
	nested string
	// indexAnalyzer and searchAnalyzer are the names that the field's own
	// analyzers have in its indices.
	indexAnalyzer, searchAnalyzer string
	// searchAnalyzers is what [Analysis.Analyzer] says of searchAnalyzer.
	searchAnalyzers string
	// dense says that the index analyzer sets a smaller position gap between
	// texts than is usual.
	dense bool
	// notWords is what [Analysis.NotWords] says.
	notWords   string
	similarity Similarity
	// k1 is BM25's. legacy says that the field names LegacyBM25, which
	// multiplies by k1+1 where OpenSearch 3's BM25 does not.
	k1     float64
	legacy bool
	// shards is the number of primary shards of the targets. routed says that
	// an alias may send a search to some of them only.
	shards int
	routed bool
	// filtered says that an alias of the expression has a filter.
	filtered bool
	// differing names the analyzers that are not defined alike in all targets.
	differing map[string]bool
	// unvectored says that the cluster refused to count the field's terms by
	// _termvectors.
	unvectored atomic.Bool
}

// A target is a concrete index that maps the field of a [schema].
type target struct {
	index  string
	shards int
	// source is the path that a document has the field's text under; it is
	// the parent field's for a multi-field.
	source string
	// field is the full name of the field that an alias stands for, "" where
	// the name asked for is the field's own.
	field string
}

// analyzer returns the name of the analyzer that a clause analyzes its text
// with, named being the one that the clause asks for. It returns [ErrMixed] if
// the indices define that one differently.
func (s *schema) analyzer(named string) (string, error) {
	if named == "" {
		return s.searchAnalyzer, nil
	}
	if s.differing[named] {
		return "", fmt.Errorf("analyzer %q: %w", named, ErrMixed)
	}
	return named, nil
}

// checkField returns why a field name is not even to be asked for.
func checkField(field string) error {
	if field == "" || len(field) > maxFieldName {
		return fmt.Errorf("a field name of %d bytes: %w", len(field), ErrNotText)
	}
	return nil
}

// schema asks for what the indices say of a field. The error wraps
// [ErrNotText], [ErrMixed] or [ErrRemote] where the field is not one to expand.
func (c *Client) schema(ctx context.Context, indices Indices, field string) (*schema, error) {
	answer, err := c.fieldMappings(ctx, indices, field)
	if err != nil {
		return nil, err
	}
	return c.readSchema(ctx, indices, field, answer)
}

// readSchema returns what an answer of fieldMappings says of the field.
func (c *Client) readSchema(ctx context.Context, indices Indices, field string, answer map[string]indexMapping) (*schema, error) {
	fields, err := c.readFields(ctx, indices, field, answer)
	if err != nil {
		return nil, err
	}
	s, err := merge(fields)
	if err != nil {
		return nil, fmt.Errorf("field %q of %q: %w", field, indices.Expression, err)
	}
	return s, nil
}

// indexFields asks for what each of the indices that map a field says of it.
func (c *Client) indexFields(ctx context.Context, indices Indices, field string) ([]indexField, error) {
	answer, err := c.fieldMappings(ctx, indices, field)
	if err != nil {
		return nil, err
	}
	return c.readFields(ctx, indices, field, answer)
}

// fieldMappings asks for the mappings of a field, by index.
func (c *Client) fieldMappings(ctx context.Context, indices Indices, field string) (map[string]indexMapping, error) {
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
func (c *Client) readFields(ctx context.Context, indices Indices, field string, answer map[string]indexMapping) ([]indexField, error) {
	fields, err := findFields(answer, field)
	if err != nil {
		return nil, fmt.Errorf("field %q of %q: %w", field, indices.Expression, err)
	}
	if err := c.settleAnalyzers(ctx, indices, field, fields); err != nil {
		return nil, err
	}
	for i := range fields {
		m := answer[fields[i].index]
		fields[i].routed, fields[i].filtered = m.routed(indices), m.filtered(indices)
	}
	return fields, nil
}

// maxAliased bounds the fields that an alias stands for in the indices of an
// expression, and with them the request for their mappings.
const maxAliased = 16

// mappings asks for the mappings of a field and of more, once more where it is
// an alias and the answer lacks the field it stands for.
func (c *Client) mappings(ctx context.Context, indices Indices, field string, more ...string) (map[string]indexMapping, error) {
	var answer map[string]indexMapping
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
	var full map[string]indexMapping
	path := schemaPath(indices, append(missing, all...)...)
	err = c.call(ctx, request{method: http.MethodGet, path: path}, &full)
	return full, err
}

// aliased returns the fields that field is an alias of and that are not in the
// answer.
func aliased(answer map[string]indexMapping, field string) ([]string, error) {
	var missing []string
	for index, m := range answer {
		p, err := find(m.Mappings.Properties, field, 0, "")
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", index, err)
		}
		if p == nil || p.Type != typeAlias || len(p.Path) > maxFieldName || slices.Contains(missing, p.Path) {
			continue
		}
		if target, err := find(m.Mappings.Properties, p.Path, 0, ""); target == nil && err == nil {
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
func (c *Client) settleAnalyzers(ctx context.Context, indices Indices, field string, fields []indexField) error {
	var open []string
	for i := range fields {
		if name := cmp.Or(fields[i].field, field); fields[i].searchAnalyzer == "" && !slices.Contains(open, name) {
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
		if f.searchAnalyzer != "" {
			continue
		}
		for _, leaf := range answer[f.index].Mappings[cmp.Or(f.field, field)].Mapping {
			f.searchAnalyzer = leaf.SearchAnalyzer // the one entry, named by the last segment
		}
		if f.searchAnalyzer == "" {
			return fmt.Errorf("index %q: the mapping names no search analyzer", f.index)
		}
	}
	return nil
}
