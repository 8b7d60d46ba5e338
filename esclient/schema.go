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

	"github.com/akin-search/akin/esclient/mapping"
)

// A question is about a field of some indices.
type question struct {
	client  *Client
	indices Indices
	field   string
}

func (c *Client) about(index, field string) question {
	return question{c, Indices{Expression: index}, field}
}

// Schema asks for the common schema of a field in the indices of an expression.
// The error wraps [mapping.ErrNotText], [mapping.ErrMixed] or [ErrRemote] if it
// cannot be expanded.
func (c *Client) Schema(ctx context.Context, index, field string) (*mapping.Schema, error) {
	return c.about(index, field).schema(ctx)
}

// Fields asks for the field in each index that maps it.
func (c *Client) Fields(ctx context.Context, index, field string) ([]mapping.Field, error) {
	q := c.about(index, field)
	answer, err := q.mappings(ctx)
	if err != nil {
		return nil, err
	}
	return q.readFields(ctx, answer)
}

func (q question) schema(ctx context.Context) (*mapping.Schema, error) {
	answer, err := q.mappings(ctx)
	if err != nil {
		return nil, err
	}
	return q.readSchema(ctx, answer)
}

const (
	// maxFieldName limits a field's name in bytes; mappings have no longer ones.
	maxFieldName = 1024
	// maxAliased limits the fields that an alias stands for in the indices, and so
	// the request for their mappings.
	maxAliased = 16
)

// check returns why the cluster must not be asked.
func (q question) check() error {
	if err := q.indices.check(); err != nil {
		return err
	}
	if q.field == "" || len(q.field) > maxFieldName {
		return fmt.Errorf("a field name of %d bytes: %w", len(q.field), mapping.ErrNotText)
	}
	return nil
}

// wrap adds field and indices to an error.
func (q question) wrap(err error) error {
	return fmt.Errorf("field %q of %q: %w", q.field, q.indices.Expression, err)
}

// mappings asks for the mappings of the field and of more, by index. It asks
// again if the field is an alias whose target is missing.
func (q question) mappings(ctx context.Context, more ...string) (map[string]mapping.Index, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	var answer map[string]mapping.Index
	all := append([]string{q.field}, more...)
	if err := q.client.Do(ctx, Call{Path: schemaPath(q.indices, all...)}, &answer); err != nil {
		return nil, err
	}
	missing, err := aliased(answer, q.field)
	if err != nil || len(missing) == 0 {
		return answer, err
	}
	if len(missing) > maxAliased {
		return nil, q.wrap(fmt.Errorf("an alias of %d fields: %w", len(missing), mapping.ErrMixed))
	}
	answer = nil
	err = q.client.Do(ctx, Call{Path: schemaPath(q.indices, append(missing, all...)...)}, &answer)
	return answer, err
}

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

// schemaPath returns the path that asks for the mappings of fields, the
// settings, and routing and filters of aliases. Of thousands of fields it
// selects those that begin like a field's first segment: a mapping without
// subobjects has keys with dots.
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

func (q question) readSchema(ctx context.Context, answer map[string]mapping.Index) (*mapping.Schema, error) {
	fields, err := q.readFields(ctx, answer)
	if err != nil {
		return nil, err
	}
	s, err := mapping.Merge(fields)
	if err != nil {
		return nil, q.wrap(err)
	}
	for _, t := range s.Targets {
		m := answer[t.Index]
		routed, filtered := m.Restricted(q.indices.mayName)
		s.Routed, s.Filtered = s.Routed || routed, s.Filtered || filtered
		if name := m.Pipeline(); name != "" && !slices.Contains(s.Pipelines, name) {
			s.Pipelines = append(s.Pipelines, name)
		}
	}
	// OpenSearch 2 refuses nested queries if the path is another kind of object in
	// one index, even with ignore_unmapped.
	for index, m := range answer {
		if at, err := mapping.Find(m.Mappings.Properties, s.Nested); err == nil && at != nil && at.TypeName() == "object" && !m.Closed() {
			return nil, q.wrap(fmt.Errorf("index %q maps %q as an object that is not nested: %w", index, s.Nested, mapping.ErrMixed))
		}
	}
	return s, nil
}

// readFields reads the field in each index of an answer of mappings. It asks
// for search analyzers that the mapping leaves open: between default_search and
// the analyzer that the field names, Elasticsearch 7 and OpenSearch choose the
// former, Elasticsearch 8 the latter.
func (q question) readFields(ctx context.Context, answer map[string]mapping.Index) ([]mapping.Field, error) {
	fields, err := mapping.Fields(answer, q.field)
	if err != nil {
		return nil, q.wrap(err)
	}
	var open []string
	for i := range fields {
		if name := cmp.Or(fields[i].AliasOf, q.field); fields[i].SearchAnalyzer == "" && !slices.Contains(open, name) {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return fields, nil
	}
	var analyzers map[string]struct {
		Mappings map[string]struct {
			Mapping map[string]struct {
				SearchAnalyzer string `json:"search_analyzer"`
			} `json:"mapping"`
		} `json:"mappings"`
	}
	api := "/_mapping/field/" + url.PathEscape(strings.Join(open, ","))
	if err := q.client.Do(ctx, Call{Path: q.indices.path(api, url.Values{"include_defaults": {"true"}})}, &analyzers); err != nil {
		return nil, err
	}
	for i := range fields {
		f := &fields[i]
		if f.SearchAnalyzer != "" {
			continue
		}
		for _, m := range analyzers[f.Index].Mappings[cmp.Or(f.AliasOf, q.field)].Mapping {
			f.SearchAnalyzer = m.SearchAnalyzer // the only entry, keyed by the last segment
		}
		if f.SearchAnalyzer == "" {
			return nil, fmt.Errorf("index %q: the mapping names no search analyzer", f.Index)
		}
	}
	return fields, nil
}

// closedFilter selects, from flat settings, whether indices are closed.
const closedFilter = "*.settings.*verified_before_close"

// matching asks for the names of the fields that match the pattern, see
// [Cached.Fields], and only for types.
func (q question) matching(ctx context.Context) ([]string, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(q.field, ".")
	first, _, _ = strings.Cut(first, "*")
	filter := []string{closedFilter, "*.mappings.runtime.*.type", "*.mappings.derived.*.type"}
	for _, member := range []string{"type", "path"} {
		if first == "" || strings.ContainsAny(first, `,\`) {
			filter = append(filter, "*.mappings.properties.**."+member)
		} else { // ** takes at least one segment
			properties := "*.mappings.properties." + first + "*."
			filter = append(filter, properties+member, properties+"**."+member)
		}
	}
	var answer map[string]mapping.Index
	path := q.indices.path("", url.Values{"flat_settings": {"true"}, "filter_path": {strings.Join(filter, ",")}})
	if err := q.client.Do(ctx, Call{Path: path}, &answer); err != nil {
		return nil, err
	}
	names, err := mapping.Matching(answer, q.field)
	if err != nil {
		return nil, fmt.Errorf("fields %q of %q: %w", q.field, q.indices.Expression, err)
	}
	return names, nil
}

// An Object is a JSON object in a request.
type Object = map[string]any

// A found is the answer to a search, with hits H and aggregations A.
type found[H, A any] struct {
	Shards struct {
		Successful int `json:"successful"`
		Failed     int `json:"failed"`
	} `json:"_shards"`
	Hits struct {
		Hits []H `json:"hits"`
	} `json:"hits"`
	Aggregations A `json:"aggregations"`
}

// none is for what a search does not ask for.
type none struct{}

// documents is the count of an aggregation.
type documents struct {
	DocCount int64 `json:"doc_count"`
}

// errShards says that an answer is incomplete.
var errShards = errors.New("shards failed")

// search searches the indices; filter is its filter_path.
func search[H, A any](ctx context.Context, c *Client, indices Indices, filter string, body Object) (found[H, A], error) {
	body["track_total_hits"], body["_source"] = false, false
	var answer found[H, A]
	err := c.Do(ctx, Call{
		Method: http.MethodPost, Path: indices.path("/_search", url.Values{"filter_path": {filter}}), Body: body, Limit: smallAnswer,
	}, &answer)
	if n := answer.Shards.Failed; err == nil && n > 0 {
		err = fmt.Errorf("%d %w", n, errShards)
	}
	return answer, err
}

// TermQuery returns a query for one term of a field.
func TermQuery(field, term string) Object {
	return Object{"term": Object{field: Object{"value": term}}}
}

// ExistsQuery returns a query for documents with a field.
func ExistsQuery(field string) Object { return Object{"exists": Object{"field": field}} }
