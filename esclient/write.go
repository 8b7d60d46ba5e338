package esclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/elastic/go-elasticsearch/v8/esutil"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
	err = c.send(ctx, request{method: http.MethodPut, path: indexPath(index, ""), body: jsontext.Value(body)},
		func(io.Reader) error { return nil })
	var refused *Error
	if errors.As(err, &refused) && refused.Type == "resource_already_exists_exception" {
		return false, nil
	}
	return err == nil, err
}

// Index indexes documents, replacing those of the same ids, and makes them
// visible to searches. Its error tells of the first document that was refused.
func (c *Client) Index(ctx context.Context, index string, docs []Document) error {
	var mu sync.Mutex
	var refused error
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if refused == nil {
			refused = err
		}
	}
	bulk, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{
		Client: c.api, Index: index, NumWorkers: 1, Refresh: "true", Timeout: pageTimeout,
		OnError: func(_ context.Context, err error) { note(err) },
	})
	if err != nil {
		return fmt.Errorf("index documents in %q: %w", index, err)
	}
	for _, d := range docs {
		source, err := json.Marshal(d.Source)
		if err != nil {
			note(fmt.Errorf("document %q: %w", d.ID, err))
			break
		}
		err = bulk.Add(ctx, esutil.BulkIndexerItem{
			Action: "index", DocumentID: d.ID, Body: bytes.NewReader(source),
			OnFailure: func(_ context.Context, item esutil.BulkIndexerItem, answer esutil.BulkIndexerResponseItem, err error) {
				if err == nil {
					err = &Error{Status: answer.Status, Type: answer.Error.Type, Reason: answer.Error.Reason}
				}
				note(fmt.Errorf("document %q: %w", item.DocumentID, err))
			},
		})
		if err != nil {
			note(err)
			break
		}
	}
	if err := errors.Join(bulk.Close(ctx), refused); err != nil {
		return fmt.Errorf("index documents in %q: %w", index, err)
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
