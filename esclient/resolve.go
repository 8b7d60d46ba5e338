package esclient

import (
	"context"
	"maps"
	"slices"

	"github.com/akin-search/akin/esclient/mapping"
)

// maxResolved bounds the indices that an expression is said to stand for: their
// names are looked at for each search.
const maxResolved = 1024

// Resolve returns the names of the open indices that an expression stands for,
// in order; the backing indices of a data stream stand under its name. There
// are none where they are more than 1,024, and where an alias of the expression
// has a filter: who searches by it may not see all that is behind it. field is
// one that is asked about next, as what an index says of it comes in the same
// call. The names must not be modified.
//
// The error wraps [ErrNotText] or [ErrRemote] where the indices are none to ask
// for. What is not remembered takes one round trip.
func (c *Cached) Resolve(ctx context.Context, indices Indices, field string) ([]string, error) {
	k := c.key(indices, field)
	names, warm, err := c.analysis.names.Get(k.ofIndices())
	if !warm {
		own := k.clone()
		names, err = c.analysis.names.Load(ctx, own.ofIndices(), func(ctx context.Context) ([]string, error) {
			return c.resolve(ctx, own)
		})
	}
	c.tally(&c.analysis.Counters, warm, err)
	return names, err
}

// resolve asks for the schema of the field, and takes the names from its
// answer.
func (c *Cached) resolve(ctx context.Context, k key) ([]string, error) {
	var answer map[string]mapping.Index
	_, err := c.analysis.schemas.Load(ctx, k, func(ctx context.Context) (s *mapping.Schema, err error) {
		all, err := c.client.fieldMappings(ctx, k.Indices, k.field)
		if err != nil {
			return nil, err
		}
		answer = all
		return c.client.readSchema(ctx, k.Indices, k.field, all)
	})
	if ctx.Err() != nil { // the load may go on
		return nil, ctx.Err()
	}
	if answer == nil {
		if err != nil && !telling(err) {
			return nil, err
		}
		// The schema was known, or was loaded by somebody else.
		if answer, err = c.client.fieldMappings(ctx, k.Indices, k.field); err != nil {
			return nil, err
		}
	}
	filtered := slices.ContainsFunc(slices.Collect(maps.Values(answer)), func(m mapping.Index) bool { return m.Filtered(k.mayName) })
	names := mapping.Open(answer)
	if len(names) > maxResolved || filtered {
		return nil, nil
	}
	return names, nil
}
