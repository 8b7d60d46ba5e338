package esclient

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/akin-search/akin/esclient/mapping"
)

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
	names, warm, err := c.analysis.patterns.Get(k)
	if !warm {
		own := k.clone()
		names, err = c.analysis.patterns.Load(ctx, own, func(ctx context.Context) ([]string, error) {
			return c.client.fields(ctx, own.Indices, own.field)
		})
	}
	c.tally(&c.analysis.Counters, warm, err)
	return names, err
}

func (c *Client) fields(ctx context.Context, indices Indices, pattern string) ([]string, error) {
	if err := indices.check(); err != nil {
		return nil, err
	}
	if err := checkField(pattern); err != nil {
		return nil, err
	}
	var answer map[string]mapping.Tree
	if err := c.call(ctx, request{method: http.MethodGet, path: fieldsPath(indices, pattern)}, &answer); err != nil {
		return nil, err
	}
	names, err := mapping.Matching(answer, pattern)
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
