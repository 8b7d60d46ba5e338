package esclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/mapping"
)

// refPage is the number of documents in a page of [Client.ScanRefs].
const refPage = 500

// A DocRef names a document as it was when it was found.
type DocRef struct {
	// Index is the concrete index, ID the _id and Routing the _routing, "" where
	// the document has none.
	Index, ID, Routing string
	// SeqNo and PrimaryTerm change with every write to the document, as Version
	// does. Those two serve to write it on the condition that it has not changed.
	SeqNo, PrimaryTerm, Version int64
	// HasValue says that it has a value in the field asked for.
	HasValue bool
}

// RefOptions say which documents [Client.ScanRefs] names.
type RefOptions struct {
	// Index is an index expression.
	Index string
	// Query keeps the documents that match it: one JSON object, a query of the
	// engines' language. nil keeps all.
	Query []byte
	// Value is a field with doc values, for [DocRef.HasValue]; "" is none.
	Value string
	// Preference says which copies or shards are read, as of a search; "" leaves
	// that to the cluster.
	Preference string
}

// ScanRefs calls fn with the documents that match, at most 100 at once, in no
// particular order and as they were at its beginning. fn may keep what it gets.
// It ends as [Client.Scan] does.
func (c *Client) ScanRefs(ctx context.Context, o RefOptions, fn func(docs []DocRef) error) error {
	scan := ScanOptions{Query: o.Query}
	if o.Query != nil {
		if err := checkQuery(o.Query); err != nil {
			return fmt.Errorf("scan: %w", err)
		}
	}
	body := scan.body(refPage, false)
	body["version"], body["seq_no_primary_term"] = true, true
	if o.Value != "" {
		body["docvalue_fields"] = []string{o.Value}
	}
	return c.scroll(ctx, o.Index, o.Preference, body, func(page []answers.Hit) error {
		docs := make([]DocRef, len(page))
		for i := range page {
			h := &page[i]
			docs[i] = DocRef{
				Index: h.Index, ID: h.ID, Routing: h.Routing, SeqNo: h.SeqNo, PrimaryTerm: h.PrimaryTerm, Version: h.Version,
				HasValue: h.Fields[o.Value] != nil,
			}
		}
		return fn(docs)
	})
}

// A DocUpdate is a change of a part of a document.
type DocUpdate struct {
	// Doc is the document as it has to be still: where its SeqNo and PrimaryTerm
	// are others by now, it stays as it is.
	Doc DocRef
	// Part is one JSON object, which is merged into the document's source.
	Part []byte
}

// An UpdateStatus is what has become of a [DocUpdate].
type UpdateStatus uint8

// What becomes of an update.
const (
	// Updated says that the document was written.
	Updated UpdateStatus = iota
	// Unchanged says that it held all of the part, so that nothing was written.
	Unchanged
	// Conflict says that it was written by somebody else meanwhile.
	Conflict
	// Gone says that it is not there any more.
	Gone
	// Busy says that the cluster has too much to do; it may be tried again.
	Busy
	// Refused says that the cluster does not do it.
	Refused
)

// An UpdateResult is what has become of a [DocUpdate].
type UpdateResult struct {
	// Status says it in a word.
	Status UpdateStatus
	// SeqNo is the sequence number that the document has then, where it was
	// written.
	SeqNo int64
	// Err is the cluster's reason where the status is Busy or Refused; nil else.
	Err error
}

// UpdateDocs makes partial updates in one call, and returns what has become of
// each, in their order. After an error nobody knows which have been made. Call
// it with some hundred documents at most.
func (c *Client) UpdateDocs(ctx context.Context, updates []DocUpdate) ([]UpdateResult, error) {
	var body lines
	for _, u := range updates {
		var err error
		if body, err = appendUpdate(body, u); err != nil {
			return nil, fmt.Errorf("update of document %q of index %q: %w", u.Doc.ID, u.Doc.Index, err)
		}
	}
	type item struct {
		Status int                `json:"status"`
		Result string             `json:"result"`
		SeqNo  int64              `json:"_seq_no"`
		Error  *answers.ItemError `json:"error"`
	}
	var answer struct {
		Items []map[string]item `json:"items"`
	}
	const filter = "items.*.status,items.*.result,items.*._seq_no,items.*.error.type,items.*.error.reason"
	r := request{method: http.MethodPost, path: "/_bulk?filter_path=" + filter, body: body, timeout: pageTimeout}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	if len(answer.Items) != len(updates) {
		return nil, fmt.Errorf("POST /_bulk: %d results in the answer to %d updates", len(answer.Items), len(updates))
	}
	results := make([]UpdateResult, len(updates))
	for i := range results {
		it := answer.Items[i]["update"]
		results[i] = updateResult(it.Status, it.Result, it.Error)
		results[i].SeqNo = it.SeqNo
	}
	return results, nil
}

// appendUpdate appends the two lines of an update.
func appendUpdate(dst lines, u DocUpdate) (lines, error) {
	part := jsontext.Value(u.Part)
	if !part.IsValid() || part.Kind() != jsontext.KindBeginObject {
		return dst, errors.New("want a JSON object")
	}
	action := object{
		"_index": u.Doc.Index, "_id": u.Doc.ID, "if_seq_no": u.Doc.SeqNo, "if_primary_term": u.Doc.PrimaryTerm,
	}
	if u.Doc.Routing != "" {
		action["routing"] = u.Doc.Routing
	}
	for _, line := range []object{{"update": action}, {"doc": part}} {
		b, err := encode(line)
		if err != nil {
			return dst, err
		}
		dst = append(append(dst, b...), '\n')
	}
	return dst, nil
}

func updateResult(status int, result string, e *answers.ItemError) UpdateResult {
	switch {
	case e == nil && result == "noop":
		return UpdateResult{Status: Unchanged}
	case e == nil && status >= 200 && status <= 299:
		return UpdateResult{Status: Updated}
	case status == http.StatusConflict:
		return UpdateResult{Status: Conflict}
	case e != nil && e.Type == "document_missing_exception":
		return UpdateResult{Status: Gone}
	case e == nil:
		e = &answers.ItemError{}
	}
	failed := UpdateResult{Status: Refused, Err: e.AsError(status)}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		failed.Status = Busy
	}
	return failed
}

// Refresh makes all writes to the indices of an expression visible to searches.
// Where some shards fail to, [Interrupted] is true of the error.
func (c *Client) Refresh(ctx context.Context, index string) error {
	var answer struct {
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
	}
	r := request{method: http.MethodPost, path: indexPath(index, "/_refresh"), timeout: pageTimeout}
	if err := c.call(ctx, r, &answer); err != nil {
		return err
	}
	if n := answer.Shards.Failed; n > 0 {
		return fmt.Errorf("POST %s: %d of them: %w", r.path, n, answers.ErrShards)
	}
	return nil
}

// ErrUncountable says that the term frequencies of a field's documents cannot
// be had from the documents.
var ErrUncountable = errors.New("its term frequencies cannot be read from the documents")

// A CountableIndex is an index whose documents tell the term frequencies of a
// field.
type CountableIndex struct {
	// Name is the concrete index.
	Name string
	// Texts are the names of the fields that index text of the documents
	// themselves: without those in nested objects and those that copy_to fills.
	Texts []string
}

// Countable returns the concrete indices of an expression that map the field,
// by name. The error wraps [ErrNotText] as elsewhere, [ErrMixed] where they
// have other index analyzers for it, and [ErrUncountable] where
// [Client.TermFreqs] would not tell the truth or where a partial update would
// lose something: the field lies in nested documents or takes text of other
// fields by copy_to, or an index does not keep the whole _source.
func (c *Client) Countable(ctx context.Context, index, field string) ([]CountableIndex, error) {
	fields, err := c.indexFields(ctx, Indices{Expression: index}, field)
	if err != nil {
		return nil, err
	}
	answer, err := c.allMappings(ctx, index)
	if err != nil {
		return nil, err
	}
	var all []CountableIndex
	for i := range fields {
		f := &fields[i]
		mappings := answer[f.Index].Mappings
		if err := countable(f, &fields[0], mappings); err != nil {
			return nil, fmt.Errorf("field %q of index %q: %w", field, f.Index, err)
		}
		texts, err := mapping.OwnTexts(mappings)
		if err != nil {
			return nil, fmt.Errorf("mapping of index %q: %w", f.Index, err)
		}
		all = append(all, CountableIndex{f.Index, texts})
	}
	return all, nil
}

// countable returns why the terms of f cannot be counted like those of first,
// the same field of another index. How an index scores is not looked at.
func countable(f, first *mapping.Field, mappings jsontext.Value) error {
	switch {
	case f.Nested != "":
		return fmt.Errorf("it is in the nested documents of %q, each of which is a document to the engine: %w", f.Nested, ErrUncountable)
	case f.AliasOf != "":
		return fmt.Errorf("it is an alias, name the field %q itself: %w", f.AliasOf, ErrUncountable)
	case f.Settings.Definition(f.IndexAnalyzer) != first.Settings.Definition(first.IndexAnalyzer):
		return fmt.Errorf("its analyzer is another one than in index %q: %w", first.Index, ErrMixed)
	}
	if reason := mapping.Uncountable(mappings, f.Source); reason != "" {
		return fmt.Errorf("%s: %w", reason, ErrUncountable)
	}
	return nil
}

// Readable reports whether [Client.DocVectors] tells all terms that documents
// of a concrete index have in a field: it is no alias, not filled by copy_to,
// and the index keeps the whole _source that the terms are made of. The error
// wraps [ErrNotText] as elsewhere.
func (c *Client) Readable(ctx context.Context, index, field string) (bool, error) {
	fields, err := c.indexFields(ctx, Indices{Expression: index}, field)
	if err != nil {
		return false, err
	}
	mappings, err := c.allMappings(ctx, index)
	if err != nil {
		return false, err
	}
	for i := range fields {
		f := &fields[i]
		if f.AliasOf != "" || mapping.Uncountable(mappings[f.Index].Mappings, f.Source) != "" {
			return false, nil
		}
	}
	return true, nil
}

// A wholeMapping is what _mapping tells of an index.
type wholeMapping struct {
	Mappings jsontext.Value `json:"mappings"`
}

// allMappings returns the mappings of the indices of an expression.
func (c *Client) allMappings(ctx context.Context, index string) (answer map[string]wholeMapping, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: indexPath(index, "/_mapping")}, &answer)
	return answer, err
}

// NotStoring returns those of the concrete indices, which an expression stands
// for, that do not map number as a float and keyword as a keyword, both with
// doc values: what is written there would not be found, or be mapped as the
// engine sees fit. It keeps their order.
func (c *Client) NotStoring(ctx context.Context, index string, indices []string, number, keyword string) ([]string, error) {
	type fieldMapping struct {
		Type      string `json:"type"`
		DocValues *bool  `json:"doc_values"`
		Index     *bool  `json:"index"`
	}
	var answer map[string]struct {
		Mappings map[string]struct {
			Mapping map[string]fieldMapping `json:"mapping"`
		} `json:"mappings"`
	}
	path := indexPath(index, "/_mapping/field/"+url.PathEscape(number+","+keyword))
	if err := c.call(ctx, request{method: http.MethodGet, path: path}, &answer); err != nil {
		return nil, err
	}
	fits := func(name, field, want string, indexed bool) bool {
		m := answer[name].Mappings[field].Mapping[field[strings.LastIndexByte(field, '.')+1:]]
		return m.Type == want && (m.DocValues == nil || *m.DocValues) && (!indexed || m.Index == nil || *m.Index)
	}
	var lacking []string
	for _, name := range indices {
		if !fits(name, number, "float", false) || !fits(name, keyword, "keyword", true) {
			lacking = append(lacking, name)
		}
	}
	return lacking, nil
}
