package esclient

import (
	"context"
	"fmt"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/mapping"
)

// ExactTerms calls fn for every document that has terms in one of the fields,
// with its id and its texts: the index terms of each field in the order of
// their positions, as the index's own analysis of the whole text has made them.
// A field is cut into several texts where the positions jump as they do between
// the elements of an array. It is slower than [Client.Scan], and right for
// analyzers that look at more than one word.
//
// The documents come in no particular order; one that is deleted meanwhile may
// be left out. fn may keep terms. ExactTerms ends as [Client.Scan] does. It
// returns an error that wraps [ErrNotText] if a field is not text, and
// [ErrMixed] if the fields are not analyzed alike, for their terms would not be
// of one kind.
func (c *Client) ExactTerms(ctx context.Context, o ScanOptions, fn func(id string, texts [][]string) error) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	if err := c.checkAlike(ctx, o.Index, o.Fields); err != nil {
		return err
	}
	return c.scroll(ctx, o.Index, "", o.body(exactPage, false), func(page []answers.Hit) error {
		call := vectorCall{positions: true, timeout: pageTimeout, limit: maxPage}
		for i := range page {
			call.docs = append(call.docs, VectorRequest{Index: page[i].Index, ID: page[i].ID, Routing: page[i].Routing, Fields: o.Fields})
		}
		return c.termVectors(ctx, call, func(i int, d *answers.VectorDoc) error {
			if d.Err != nil {
				return fmt.Errorf("term vectors of document %q: %w", page[i].ID, d.Err)
			}
			texts := d.Texts(o.Fields)
			if len(texts) == 0 {
				return nil
			}
			return fn(page[i].ID, texts)
		})
	})
}

// checkAlike returns an error that wraps [ErrMixed] if two of the fields have
// index analyzers that are defined in another way.
func (c *Client) checkAlike(ctx context.Context, index string, fields []string) error {
	indices := Indices{Expression: index}
	var first string
	for i, field := range fields {
		found, err := c.indexFields(ctx, indices, field)
		if err != nil {
			return err
		}
		if _, err := mapping.Merge(found); err != nil {
			return fmt.Errorf("field %q of %q: %w", field, index, err)
		}
		if found[0].AliasOf != "" {
			return fmt.Errorf("field %q of %q is an alias, name the field itself: %w", field, index, ErrNotText)
		}
		analysis := found[0].Settings.Definition(found[0].IndexAnalyzer) // all indices agree on it
		if i > 0 && analysis != first {
			return fmt.Errorf("fields %q and %q of %q are not analyzed alike: %w", fields[0], field, index, ErrMixed)
		}
		first = analysis
	}
	return nil
}
