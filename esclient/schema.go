package esclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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
	// dense says that the index analyzer sets a smaller position gap between
	// texts than is usual.
	dense      bool
	similarity Similarity
	// k1 is BM25's. legacy says that the field names LegacyBM25, which
	// multiplies by k1+1 where OpenSearch 3's BM25 does not.
	k1     float64
	legacy bool
	// shards is the number of primary shards of the targets.
	shards int
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

// checkNames returns why an index expression and a field name of a search are
// not even to be asked for, nil if they are.
func checkNames(index, field string) error {
	// No name of an index or an alias starts so: it would be another API.
	if strings.HasPrefix(index, "_") && index != "_all" {
		return fmt.Errorf("%q is no index: %w", index, ErrNotText)
	}
	if field == "" || len(field) > maxFieldName {
		return fmt.Errorf("a field name of %d bytes: %w", len(field), ErrNotText)
	}
	return nil
}

// schema asks for what the indices say of a field. The error wraps
// [ErrNotText] or [ErrMixed] where the field is not one to expand.
func (c *Client) schema(ctx context.Context, index, field string) (*schema, error) {
	if err := checkNames(index, field); err != nil {
		return nil, err
	}
	var answer map[string]indexMapping
	err := c.call(ctx, request{method: http.MethodGet, path: schemaPath(index, field)}, &answer)
	if err != nil {
		return nil, err
	}
	s, err := c.mergeFields(ctx, index, field, answer)
	if err != nil {
		return nil, fmt.Errorf("field %q of %q: %w", field, index, err)
	}
	return s, nil
}

func (c *Client) mergeFields(
	ctx context.Context, index, field string, answer map[string]indexMapping,
) (*schema, error) {
	fields, err := findFields(answer, field)
	if err != nil {
		return nil, err
	}
	if err := c.settleAnalyzers(ctx, index, field, fields); err != nil {
		return nil, err
	}
	return merge(fields)
}

// schemaPath returns the path that asks for the mapping of a field and for the
// settings. The filter keeps what comes back small where the mappings hold
// thousands of fields: it lets through the field's first segment and what
// begins like it, since a mapping without subobjects has keys with dots.
func schemaPath(index, field string) string {
	first, _, _ := strings.Cut(field, ".")
	properties := "*.mappings.properties"
	if !strings.ContainsAny(first, `*,\`) {
		properties += "." + first + "*"
	}
	q := url.Values{
		"flat_settings": {"true"},
		"filter_path":   {"*.settings,*.mappings.runtime,*.mappings.derived," + properties},
	}
	return indexPath(index, "") + "?" + q.Encode()
}

// settleAnalyzers asks for the search analyzers that the mapping leaves open.
// Where the index defines default_search and the field names an analyzer but no
// search analyzer, Elasticsearch 7 and OpenSearch search with default_search
// and Elasticsearch 8 with the field's analyzer.
func (c *Client) settleAnalyzers(ctx context.Context, index, field string, fields []indexField) error {
	open := false
	for i := range fields {
		open = open || fields[i].searchAnalyzer == ""
	}
	if !open {
		return nil
	}
	var answer map[string]struct {
		Mappings map[string]struct {
			Mapping map[string]struct {
				SearchAnalyzer string `json:"search_analyzer"`
			} `json:"mapping"`
		} `json:"mappings"`
	}
	path := indexPath(index, "/_mapping/field/"+url.PathEscape(field)+"?include_defaults=true")
	if err := c.call(ctx, request{method: http.MethodGet, path: path}, &answer); err != nil {
		return err
	}
	for i := range fields {
		f := &fields[i]
		if f.searchAnalyzer != "" {
			continue
		}
		for _, leaf := range answer[f.index].Mappings[field].Mapping {
			f.searchAnalyzer = leaf.SearchAnalyzer // the one entry, named by the last segment
		}
		if f.searchAnalyzer == "" {
			return fmt.Errorf("index %q: the mapping names no search analyzer", f.index)
		}
	}
	return nil
}
