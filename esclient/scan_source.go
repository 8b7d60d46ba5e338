package esclient

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
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

// appendTexts appends the texts that v has at path, at v itself if path is "".
func appendTexts(dst []string, v jsontext.Value, path string) ([]string, error) {
	switch kind := v.Kind(); {
	case kind == jsontext.KindBeginArray:
		var list []jsontext.Value
		err := decode(v, &list)
		for i := 0; i < len(list) && err == nil; i++ {
			dst, err = appendTexts(dst, list[i], path)
		}
		return dst, err
	case kind == jsontext.KindBeginObject:
		return appendMembers(dst, v, path)
	case path != "" || kind == jsontext.KindNull:
		return dst, nil
	case kind == jsontext.KindString:
		var s string
		err := decode(v, &s)
		return append(dst, s), err
	default:
		return append(dst, string(v)), nil
	}
}

// appendMembers appends the texts that the object v has at path. A name in v
// may span several segments of the path.
func appendMembers(dst []string, v jsontext.Value, path string) ([]string, error) {
	if path == "" {
		return dst, nil
	}
	var members map[string]jsontext.Value
	if err := decode(v, &members); err != nil {
		return dst, err
	}
	for end := range len(path) + 1 {
		if end < len(path) && path[end] != '.' {
			continue
		}
		m, ok := members[path[:end]]
		if !ok {
			continue
		}
		var err error
		if dst, err = appendTexts(dst, m, path[min(end+1, len(path)):]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
