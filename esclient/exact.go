package esclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// ExactTerms calls fn for every document of an index expression that has terms
// in one of the fields, with its id and, for each of fields, its index terms in
// the order of their positions, as the index's own analysis of the whole text
// has made them. It is slower than [Client.Scan], and right for analyzers that
// look at more than one word.
//
// The documents come in no particular order; one that is deleted meanwhile may
// be left out. fn may keep terms. ExactTerms ends at the first error, of fn
// too. It returns an error that wraps [ErrNotText] if a field is not text.
func (c *Client) ExactTerms(
	ctx context.Context, index string, fields []string, fn func(id string, terms [][]string) error,
) error {
	if _, err := c.sourcePaths(ctx, index, fields); err != nil {
		return err
	}
	body := object{"size": exactPage, "sort": []string{"_doc"}, "_source": false}
	return c.scroll(ctx, index, body, func(page []hit) error {
		docs, err := c.termVectors(ctx, fields, page)
		if err != nil {
			return err
		}
		for i := range docs {
			terms, ok := docs[i].sequences(fields)
			if !ok {
				continue
			}
			if err := fn(docs[i].ID, terms); err != nil {
				return err
			}
		}
		return nil
	})
}

// A vectorDoc is a document of an _mtermvectors answer.
type vectorDoc struct {
	ID    string `json:"_id"`
	Error *struct {
		Type string `json:"type"`
	} `json:"error"`
	Vectors map[string]struct {
		Terms map[string]struct {
			Tokens []struct {
				Position int `json:"position"`
			} `json:"tokens"`
		} `json:"terms"`
	} `json:"term_vectors"`
}

// termVectors asks for the terms of the documents of a page.
func (c *Client) termVectors(ctx context.Context, fields []string, page []hit) ([]vectorDoc, error) {
	docs := make([]object, len(page))
	for i, h := range page {
		docs[i] = object{
			"_index": h.Index, "_id": h.ID, "fields": fields, "positions": true,
			"offsets": false, "payloads": false, "term_statistics": false, "field_statistics": false,
		}
		if h.Routing != "" {
			docs[i]["routing"] = h.Routing
		}
	}
	var answer struct {
		Docs []vectorDoc `json:"docs"`
	}
	const filter = "docs._id,docs.error.type,docs.term_vectors.*.terms.*.tokens.position"
	r := request{
		method: http.MethodPost, path: "/_mtermvectors?filter_path=" + filter,
		body: object{"docs": docs}, timeout: pageTimeout, limit: maxPage,
	}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	for _, d := range answer.Docs {
		if d.Error != nil {
			return nil, fmt.Errorf("term vectors of document %q: %w", d.ID, errors.New(d.Error.Type))
		}
	}
	return answer.Docs, nil
}

// sequences returns the document's terms in each of fields, and reports whether
// there are any.
func (d *vectorDoc) sequences(fields []string) ([][]string, bool) {
	type occurrence struct {
		position int
		term     string
	}
	some := false
	sequences := make([][]string, len(fields))
	for i, f := range fields {
		var all []occurrence
		for term, t := range d.Vectors[f].Terms {
			for _, at := range t.Tokens {
				all = append(all, occurrence{at.Position, term})
			}
		}
		slices.SortFunc(all, func(a, b occurrence) int {
			return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.term, b.term))
		})
		for _, o := range all {
			sequences[i] = append(sequences[i], o.term)
		}
		some = some || len(all) > 0
	}
	return sequences, some
}
