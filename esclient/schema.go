package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

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
	all := append([]string{q.field}, more...)
	answer, err := q.get(ctx, q.filter(all...)...)
	if err != nil {
		return nil, err
	}
	missing, err := aliased(answer, q.field)
	if err != nil || len(missing) == 0 {
		return answer, err
	}
	if len(missing) > maxAliased {
		return nil, q.wrap(fmt.Errorf("an alias of %d fields: %w", len(missing), mapping.ErrMixed))
	}
	return q.get(ctx, q.filter(append(missing, all...)...)...)
}

// get asks for what filter selects of the indices' mappings, settings and
// aliases, by index.
func (q question) get(ctx context.Context, filter ...string) (map[string]mapping.Index, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	o, err := q.indices.options()
	if err != nil {
		return nil, err
	}
	var answer map[string]mapping.Index
	err = q.client.Do(ctx, Call{Request: esapi.IndicesGetRequest{
		Index: []string{Name(q.indices.Expression)}, FlatSettings: new(true), FilterPath: filter,
		AllowNoIndices: o.allowNone, ExpandWildcards: o.expandWildcards, IgnoreUnavailable: o.ignoreUnavailable,
	}}, &answer)
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

// filter selects the mappings of fields, the settings, and routing and filters
// of aliases. Of thousands of fields it selects those that begin like a field's
// first segment: a mapping without subobjects has keys with dots.
func (q question) filter(fields ...string) []string {
	filter := []string{"*.settings", "*.mappings.runtime", "*.mappings.derived", "*.data_stream"}
	if aliases := q.indices.aliasFilter(); aliases != "" {
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
	return filter
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
	o, err := q.indices.options()
	if err != nil {
		return nil, err
	}
	err = q.client.Do(ctx, Call{Request: esapi.IndicesGetFieldMappingRequest{
		Index: []string{Name(q.indices.Expression)}, Fields: []string{Name(strings.Join(open, ","))}, IncludeDefaults: new(true),
		AllowNoIndices: o.allowNone, ExpandWildcards: o.expandWildcards, IgnoreUnavailable: o.ignoreUnavailable,
	}}, &analyzers)
	if err != nil {
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
	answer, err := q.get(ctx, filter...)
	if err != nil {
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
func search[H, A any](ctx context.Context, c *Client, indices Indices, filter string, body Object) (answer found[H, A], err error) {
	o, err := indices.options()
	if err != nil {
		return answer, err
	}
	body["track_total_hits"], body["_source"] = false, false
	err = c.Do(ctx, Call{Limit: smallAnswer, Request: esapi.SearchRequest{
		Index: []string{Name(indices.Expression)}, FilterPath: []string{filter}, Body: JSON(body),
		AllowNoIndices: o.allowNone, ExpandWildcards: o.expandWildcards,
		IgnoreUnavailable: o.ignoreUnavailable, IgnoreThrottled: o.ignoreThrottled,
	}}, &answer)
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
