package esclient

import (
	"context"
	"errors"
	"slices"
)

// sourcePaths returns the paths that documents have the texts of the fields
// under, by index, each once and in the order of the fields.
func (c *Client) sourcePaths(ctx context.Context, index string, fields []string) (map[string][]string, error) {
	if len(fields) == 0 {
		return nil, errors.New("no field to read")
	}
	paths := map[string][]string{}
	for _, f := range fields {
		s, err := c.schema(ctx, Indices{Expression: index}, f)
		if err != nil {
			return nil, err
		}
		for _, t := range s.Targets {
			if !slices.Contains(paths[t.Index], t.Source) {
				paths[t.Index] = append(paths[t.Index], t.Source)
			}
		}
	}
	return paths, nil
}
