package documents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
)

// A Document is one to index. Its source is marshaled as JSON.
type Document struct {
	ID     string
	Source any
}

// CreateIndex creates an index with the settings and mappings of body, which is
// JSON. It reports false for an index that is there already; that stays as it
// is.
func (a API) CreateIndex(ctx context.Context, index string, body []byte) (created bool, err error) {
	err = a.Client.Do(ctx, esclient.Call{Method: http.MethodPut, Path: esclient.IndexPath(index, ""), Body: body}, nil)
	if refused, ok := errors.AsType[*esclient.Error](err); ok && refused.Type == "resource_already_exists_exception" {
		return false, nil
	}
	return err == nil, err
}

// Index indexes documents in one call, replacing those of the same ids, and
// makes them visible to searches. Its error names the first document that
// was refused.
func (a API) Index(ctx context.Context, index string, docs []Document) error {
	lines := make([]any, 0, 2*len(docs))
	for _, d := range docs {
		action := esclient.Object{}
		if d.ID != "" {
			action["_id"] = d.ID
		}
		lines = append(lines, esclient.Object{"index": action}, d.Source)
	}
	items, err := a.bulk(ctx, esclient.IndexPath(index, "/_bulk?refresh=true&"), lines)
	for i := 0; err == nil && i < len(items); i++ {
		if of := items[i]; of.Error != nil || of.Status > 299 {
			err = fmt.Errorf("document %q: %w", docs[i].ID, cmp.Or(of.Error, &esclient.ItemError{}).AsError(of.Status))
		}
	}
	if err != nil {
		return fmt.Errorf("index documents in %q: %w", index, err)
	}
	return nil
}

// A bulkItem is what has become of one action.
type bulkItem struct {
	Status int                 `json:"status"`
	Result string              `json:"result"`
	Error  *esclient.ItemError `json:"error"`
}

// bulk sends actions, two lines each, and returns what has become of them. path
// ends as a parameter may follow.
func (a API) bulk(ctx context.Context, path string, lines []any) ([]bulkItem, error) {
	var body bytes.Buffer
	encoder := jsontext.NewEncoder(&body, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	for i, line := range lines {
		if err := json.MarshalEncode(encoder, line); err != nil {
			return nil, fmt.Errorf("action %d: %w", i/2, err)
		}
	}
	path += "filter_path=items.*.status,items.*.result,items.*.error.type,items.*.error.reason"
	var answer struct {
		Items []map[string]bulkItem `json:"items"`
	}
	call := esclient.Call{Method: http.MethodPost, Path: path, Body: body.Bytes(), Timeout: pageTimeout}
	if err := a.Client.Do(ctx, call, &answer); err != nil {
		return nil, err
	}
	if n := len(lines) / 2; len(answer.Items) != n {
		return nil, fmt.Errorf("POST /_bulk: %d results in the answer to %d actions", len(answer.Items), n)
	}
	items := make([]bulkItem, len(answer.Items))
	for i, byAction := range answer.Items {
		for _, items[i] = range byAction { // the one entry
		}
	}
	return items, nil
}

// A DocUpdate is a change of a part of a document.
type DocUpdate struct {
	Doc  DocRef // it stays as it is where its SeqNo and PrimaryTerm are others by now
	Part []byte // one JSON object, which is merged into its source
}

// An UpdateStatus is what has become of a [DocUpdate].
type UpdateStatus uint8

// What becomes of an update.
const (
	Updated   UpdateStatus = iota // written
	Unchanged                     // the document had all of the part
	Conflict                      // it was written by somebody else meanwhile
	Gone                          // it is not there any more
	Busy                          // the cluster has too much to do; it may be tried again
	Refused                       // the cluster does not do it
)

// An UpdateResult is what has become of a [DocUpdate].
type UpdateResult struct {
	Status UpdateStatus
	Err    error // the cluster's reason for Busy or Refused, nil else
}

// UpdateDocs makes partial updates in one call, some hundred at most, and
// returns what has become of each, in their order. After an error nobody knows
// which were made.
func (a API) UpdateDocs(ctx context.Context, updates []DocUpdate) ([]UpdateResult, error) {
	lines := make([]any, 0, 2*len(updates))
	for _, u := range updates {
		part := jsontext.Value(u.Part)
		if !part.IsValid() || part.Kind() != jsontext.KindBeginObject {
			return nil, fmt.Errorf("update of document %q of index %q: want a JSON object", u.Doc.ID, u.Doc.Index)
		}
		action := esclient.Object{
			"_index": u.Doc.Index, "_id": u.Doc.ID, "if_seq_no": u.Doc.SeqNo, "if_primary_term": u.Doc.PrimaryTerm,
		}
		if u.Doc.Routing != "" {
			action["routing"] = u.Doc.Routing
		}
		lines = append(lines, esclient.Object{"update": action}, esclient.Object{"doc": part})
	}
	items, err := a.bulk(ctx, "/_bulk?", lines)
	if err != nil {
		return nil, err
	}
	results := make([]UpdateResult, len(items))
	for i, of := range items {
		results[i] = of.updated()
	}
	return results, nil
}

// updated returns what has become of an update.
func (i bulkItem) updated() UpdateResult {
	result := UpdateResult{Status: Refused}
	switch {
	case i.Error == nil && i.Result == "noop":
		result.Status = Unchanged
	case i.Error == nil && i.Status >= 200 && i.Status <= 299:
		result.Status = Updated
	case i.Status == http.StatusConflict:
		result.Status = Conflict
	case i.Error != nil && i.Error.Type == "document_missing_exception":
		result.Status = Gone
	default:
		if i.Status == http.StatusTooManyRequests || i.Status == http.StatusServiceUnavailable {
			result.Status = Busy
		}
		result.Err = cmp.Or(i.Error, &esclient.ItemError{}).AsError(i.Status)
	}
	return result
}
