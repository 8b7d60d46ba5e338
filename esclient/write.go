package esclient

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/akin-search/akin/esclient/answers"
)

// A Document is one to index.
type Document struct {
	// ID is its _id.
	ID string
	// Source is its _source, marshaled as JSON.
	Source any
}

// CreateIndex creates an index with the settings and mappings of body, which is
// JSON. It reports false for an index that is there already; that stays as it
// is.
func (c *Client) CreateIndex(ctx context.Context, index string, body []byte) (created bool, err error) {
	err = c.send(ctx, request{api: esapi.IndicesCreateRequest{Index: url.PathEscape(index), Body: bytes.NewReader(body)}},
		func(io.Reader) error { return nil })
	var refused *Error
	if errors.As(err, &refused) && refused.Type == "resource_already_exists_exception" {
		return false, nil
	}
	return err == nil, err
}

// bulkBytes is about what one bulk request of [Client.Index] holds.
const bulkBytes = 5 << 20

// Index indexes documents, replacing those of the same ids, and makes them
// visible to searches. Its error tells of the first document that was refused.
func (c *Client) Index(ctx context.Context, index string, docs []Document) error {
	var body []byte
	first := 0 // of the documents in body
	for i, d := range docs {
		action := object{}
		if d.ID != "" {
			action["_id"] = d.ID
		}
		for _, line := range []any{object{"index": action}, d.Source} {
			b, err := encode(line)
			if err != nil {
				return fmt.Errorf("index documents in %q: document %q: %w", index, d.ID, err)
			}
			body = append(append(body, b...), '\n')
		}
		if len(body) < bulkBytes && i < len(docs)-1 {
			continue
		}
		if err := c.bulk(ctx, index, docs[first:i+1], body); err != nil {
			return fmt.Errorf("index documents in %q: %w", index, err)
		}
		body, first = nil, i+1
	}
	return nil
}

// bulk sends the lines of documents to index.
func (c *Client) bulk(ctx context.Context, index string, docs []Document, body []byte) error {
	var answer struct {
		Items []map[string]struct {
			Status int                `json:"status"`
			Error  *answers.ItemError `json:"error"`
		} `json:"items"`
	}
	r := request{timeout: pageTimeout, api: esapi.BulkRequest{
		Index: url.PathEscape(index), Refresh: "true", Body: bytes.NewReader(body),
		FilterPath: []string{"items.*.status", "items.*.error.type", "items.*.error.reason"},
	}}
	if err := c.call(ctx, r, &answer); err != nil {
		return err
	}
	if len(answer.Items) != len(docs) {
		return fmt.Errorf("%d results in the answer for %d documents", len(answer.Items), len(docs))
	}
	for i, d := range docs {
		if of := answer.Items[i]["index"]; of.Error != nil || of.Status > 299 {
			return fmt.Errorf("document %q: %w", d.ID, cmp.Or(of.Error, &answers.ItemError{}).AsError(of.Status))
		}
	}
	return nil
}

// DocFreqs sets docFreqs[k] to the number of documents that hold terms[k] in
// the field, over all shards, and returns how many have the field. The slices
// have the same length. Nothing is remembered of it; [Cached.Statistics] does.
func (c *Client) DocFreqs(ctx context.Context, index, field string, terms []string, docFreqs []int64) (int64, error) {
	indices := Indices{Expression: index}
	s, err := c.schema(ctx, indices, field)
	if err != nil {
		return 0, err
	}
	count, err := c.countTerms(ctx, indices, field, s, terms)
	if err != nil {
		return 0, err
	}
	copy(docFreqs, count.docFreqs)
	return count.docCount, nil
}
