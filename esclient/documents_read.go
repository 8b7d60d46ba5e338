package esclient

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// A StoredDoc is a document as it is now.
type StoredDoc struct {
	// DocRef names it; its HasValue means nothing.
	DocRef
	// Found is false where it is not there; then DocRef is as it was asked for.
	Found bool
	// Source is the part of its source asked for, nil where there is none.
	Source jsontext.Value
}

// ReadDocs returns documents as they are now, not yet visible writes
// included, in the order of docs, of which index, id and routing are read.
// paths are the parts of their source that come along, at least one. Call it
// with some hundred documents at most.
func (c *Client) ReadDocs(ctx context.Context, docs []DocRef, paths []string) ([]StoredDoc, error) {
	asked := make([]object, len(docs))
	for i, d := range docs {
		asked[i] = object{"_index": d.Index, "_id": d.ID, "_source": paths}
		if d.Routing != "" {
			asked[i]["routing"] = d.Routing
		}
	}
	var answer struct {
		Docs []struct {
			Index       string         `json:"_index"`
			Found       bool           `json:"found"`
			Version     int64          `json:"_version"`
			SeqNo       int64          `json:"_seq_no"`
			PrimaryTerm int64          `json:"_primary_term"`
			Source      jsontext.Value `json:"_source"`
		} `json:"docs"`
	}
	r := request{method: http.MethodPost, path: "/_mget", body: object{"docs": asked}, timeout: pageTimeout, limit: maxPage}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Docs) != len(docs) {
		return nil, fmt.Errorf("POST /_mget: %d documents in the answer, asked for %d", len(answer.Docs), len(docs))
	}
	stored := make([]StoredDoc, len(docs))
	for i := range stored {
		a := &answer.Docs[i]
		stored[i] = StoredDoc{DocRef: docs[i], Found: a.Found, Source: a.Source}
		if a.Found {
			stored[i].Index, stored[i].Version, stored[i].SeqNo, stored[i].PrimaryTerm = a.Index, a.Version, a.SeqNo, a.PrimaryTerm
		}
	}
	return stored, nil
}
