package documents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
)

// A Document is a document to index. Its source is marshaled as JSON.
type Document struct {
	ID     string
	Source any
}

// CreateIndex creates an index with the settings and mappings in body, JSON. It
// returns false if the index exists; then it does not change it.
func (a API) CreateIndex(ctx context.Context, index string, body []byte) (created bool, err error) {
	r := esapi.IndicesCreateRequest{Index: esclient.Name(index), Body: bytes.NewReader(body)}
	err = a.Client.Do(ctx, esclient.Call{Request: r}, nil)
	if refused, ok := errors.AsType[*esclient.Error](err); ok && refused.Type == "resource_already_exists_exception" {
		return false, nil
	}
	return err == nil, err
}

// Index indexes documents in one call, replacing those with the same ids, and
// refreshes the index. The error names the first refused document.
func (a API) Index(ctx context.Context, index string, docs []Document) error {
	lines := make([]any, 0, 2*len(docs))
	for _, d := range docs {
		action := esclient.Object{}
		if d.ID != "" {
			action["_id"] = d.ID
		}
		lines = append(lines, esclient.Object{"index": action}, d.Source)
	}
	items, err := a.bulk(ctx, esapi.BulkRequest{Index: esclient.Name(index), Refresh: "true"}, lines)
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

// A bulkItem is the result of one action.
type bulkItem struct {
	Status int                 `json:"status"`
	Result string              `json:"result"`
	Error  *esclient.ItemError `json:"error"`
}

// bulk sends actions, two lines each, by r, and returns the results.
func (a API) bulk(ctx context.Context, r esapi.BulkRequest, lines []any) ([]bulkItem, error) {
	var body bytes.Buffer
	encoder := jsontext.NewEncoder(&body, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	for i, line := range lines {
		if err := json.MarshalEncode(encoder, line); err != nil {
			return nil, fmt.Errorf("action %d: %w", i/2, err)
		}
	}
	r.Body = &body
	r.FilterPath = []string{"items.*.status", "items.*.result", "items.*.error.type", "items.*.error.reason"}
	var answer struct {
		Items []map[string]bulkItem `json:"items"`
	}
	if err := a.Client.Do(ctx, esclient.Call{Request: r, Timeout: pageTimeout}, &answer); err != nil {
		return nil, err
	}
	if n := len(lines) / 2; len(answer.Items) != n {
		return nil, fmt.Errorf("POST /_bulk: %d results in the answer to %d actions", len(answer.Items), n)
	}
	items := make([]bulkItem, len(answer.Items))
	for i, byAction := range answer.Items {
		for _, items[i] = range byAction { // the only entry
		}
	}
	return items, nil
}

// A DocUpdate is a partial update of a document.
type DocUpdate struct {
	Doc  DocRef // not written if its SeqNo or PrimaryTerm has changed
	Part []byte // a JSON object to merge into its source
}

// An UpdateStatus is the outcome of a [DocUpdate].
type UpdateStatus uint8

// Outcomes of an update.
const (
	Updated   UpdateStatus = iota // written
	Unchanged                     // the document already had all of the part
	Conflict                      // somebody else wrote the document meanwhile
	Gone                          // the document no longer exists
	Busy                          // the cluster is overloaded; it may be tried again
	Refused                       // the cluster refuses it
)

// An UpdateResult is the result of a [DocUpdate].
type UpdateResult struct {
	Status UpdateStatus
	Err    error // the cluster's reason for Busy or Refused, else nil
}

// UpdateDocs makes partial updates in one call, some hundred at most, and
// returns the results in order. After an error it is unknown which were made.
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
	items, err := a.bulk(ctx, esapi.BulkRequest{}, lines)
	if err != nil {
		return nil, err
	}
	results := make([]UpdateResult, len(items))
	for i, of := range items {
		results[i] = of.updated()
	}
	return results, nil
}

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
