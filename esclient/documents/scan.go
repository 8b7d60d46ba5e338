package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
)

const (
	// textPage is the number of documents in a page, vectorPage if their terms are
	// read or written next, longPage if their texts, which may be long, are.
	textPage   = 500
	vectorPage = 100
	longPage   = 20
	// maxPage limits a page in bytes.
	maxPage = 512 << 20
	// searchedTexts limits an answer with the texts of hits.
	searchedTexts = 8 << 20
	// maxSlices is the engines' default limit.
	maxSlices = 1024
)

// ScanOptions select the documents for [API.Scan] and [API.ExactTerms].
type ScanOptions struct {
	// Index is an index expression. Fields are the text fields to read.
	Index  string
	Fields []string
	// Query, a JSON object, selects matching documents; nil selects all.
	Query []byte
	// Share, in [0, 1], selects about this share of the matching documents,
	// pseudo-randomly; 0 and 1 select all. The choice depends on sequence numbers:
	// it is the same every time and on every copy of a shard, until a document is
	// written again.
	Share float64
	// Slices divides the documents by their ids or shards into that many parts, at
	// most 1024; Slice, from 0, is the part to read. 0 or 1 means one part. Slices
	// may be read concurrently. Together they have each document once, as long as
	// the expression resolves to the same indices.
	Slices, Slice int
}

// Validate returns all errors in single options.
func (o *ScanOptions) Validate() error {
	var errs []error
	if len(o.Fields) == 0 {
		errs = append(errs, errors.New("no field to read"))
	}
	errs = append(errs, checkQuery(o.Query))
	if !(o.Share >= 0 && o.Share <= 1) { // so written that NaN fails
		errs = append(errs, fmt.Errorf("share: %v not in [0, 1]", o.Share))
	}
	if o.Slices < 0 || o.Slices > maxSlices || o.Slice < 0 || o.Slice >= max(o.Slices, 1) {
		errs = append(errs, fmt.Errorf("slice: %d of %d, at most %d", o.Slice, o.Slices, maxSlices))
	}
	return errors.Join(errs...)
}

// body returns the body of the search that starts the scan.
func (o *ScanOptions) body(size int, source any) esclient.Object {
	type object = esclient.Object
	body := object{"size": size, "sort": []string{"_doc"}, "_source": source}
	var query any = object{"match_all": object{}}
	if o.Query != nil {
		query = jsontext.Value(o.Query)
		body["query"] = query
	}
	if o.Share > 0 && o.Share < 1 {
		body["query"] = object{"function_score": object{
			"query":        object{"bool": object{"filter": []any{query}}},
			"random_score": object{"seed": 1, "field": "_seq_no"}, // in [0, 1)
			"boost_mode":   "replace", "min_score": 1 - o.Share,
		}}
	}
	if o.Slices > 1 {
		body["slice"] = object{"id": o.Slice, "max": o.Slices}
	}
	return body
}

// Scan calls fn with the id and texts of every document that has text in one of
// the fields. Texts are the strings in its source, in the order of the fields,
// with array elements apart; numbers and booleans as they are written, because
// the engine indexes them so. Fields filled by copy_to are not in the source.
// Texts in nested objects come in nested: for the engine such an object is a
// document of its own.
//
// Documents come unordered, as they were when the scan started; in a cluster
// that has or allows neither scrolls nor points in time, as they are when they
// are read. fn may keep the texts. Scan stops at the first error, also of fn;
// [Interrupted] tells whether to try again from the start. The error wraps
// [mapping.ErrNotText] if a field is not text.
func (a API) Scan(ctx context.Context, o ScanOptions, fn func(id string, texts, nested []string) error) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	// Paths of the texts in a document, by index, in the order of fields.
	own, nested := map[string][]string{}, map[string][]string{}
	var paths []string
	for _, field := range o.Fields {
		s, err := a.Client.Schema(ctx, o.Index, field)
		if err != nil {
			return err
		}
		sources := own
		if s.Nested != "" {
			sources = nested
		}
		for _, t := range s.Targets {
			if !slices.Contains(sources[t.Index], t.Source) {
				sources[t.Index] = append(sources[t.Index], t.Source)
			}
			paths = append(paths, t.Source)
		}
	}
	slices.Sort(paths)
	return a.scan(ctx, o.Index, o.body(textPage, slices.Compact(paths)), func(page []hit) error {
		for i := range page {
			h := &page[i]
			texts, err := h.texts(own[h.Index])
			inNested, errNested := h.texts(nested[h.Index])
			if err = cmp.Or(err, errNested); err == nil && len(texts)+len(inNested) > 0 {
				err = fn(h.ID, texts, inNested)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ExactTerms calls fn with the id and texts of every document that has terms in
// one of the fields. Texts are the index terms of each field by position, split
// where positions jump as between array elements; nested is as in [API.Scan].
// It is slower than Scan, and right for analyzers that look at more than one
// word.
//
// It may miss a document that is deleted meanwhile. fn may keep terms. It stops
// as [API.Scan] does; the error also wraps [mapping.ErrMixed] if the fields are
// not analyzed alike.
func (a API) ExactTerms(ctx context.Context, o ScanOptions, fn func(id string, texts, nested [][]string) error) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	own, nested, err := a.alike(ctx, o.Index, o.Fields)
	if err != nil {
		return err
	}
	return a.scan(ctx, o.Index, o.body(vectorPage, false), func(page []hit) error {
		call := vectorCall{positions: true, timeout: pageTimeout, limit: maxPage}
		for i := range page {
			call.docs = append(call.docs, VectorRequest{Index: page[i].Index, ID: page[i].ID, Routing: page[i].Routing, Fields: o.Fields})
		}
		return a.termVectors(ctx, call, func(i int, d *vectorDoc) error {
			if d.Err != nil {
				return fmt.Errorf("term vectors of document %q: %w", page[i].ID, d.Err)
			}
			texts, inNested := d.texts(own), d.texts(nested)
			if len(texts)+len(inNested) == 0 {
				return nil
			}
			return fn(page[i].ID, texts, inNested)
		})
	})
}

// alike returns the fields outside and inside nested objects. The error wraps
// [mapping.ErrMixed] if the index analyzers of two fields differ.
func (a API) alike(ctx context.Context, index string, fields []string) (own, nested []string, err error) {
	var first string
	for i, field := range fields {
		found, err := a.Client.Fields(ctx, index, field)
		if err != nil {
			return nil, nil, err
		}
		if _, err := mapping.Merge(found); err != nil {
			return nil, nil, fmt.Errorf("field %q of %q: %w", field, index, err)
		}
		if found[0].AliasOf != "" {
			return nil, nil, fmt.Errorf("field %q of %q is an alias, name the field itself: %w", field, index, mapping.ErrNotText)
		}
		analysis := found[0].Settings.Definition(found[0].IndexAnalyzer) // all indices agree on it
		if i > 0 && analysis != first {
			return nil, nil, fmt.Errorf("fields %q and %q of %q are not analyzed alike: %w", fields[0], field, index, mapping.ErrMixed)
		}
		first = analysis
		if found[0].Nested == "" {
			own = append(own, field)
		} else {
			nested = append(nested, field)
		}
	}
	return own, nested, nil
}

// RefOptions select the documents for [API.ScanRefs].
type RefOptions struct {
	// Index and Query are as in [ScanOptions].
	Index string
	Query []byte
	// Value is a field with doc values, for [DocRef.HasValue]; may be "".
	Value string
	// Text is a path in the source for [DocRef.Texts], or "". Source are the paths
	// for [DocRef.Source].
	Text   string
	Source []string
}

// ScanRefs calls fn with the matching documents, at most 100 at once. fn may
// keep them. Otherwise it is like [API.Scan].
func (a API) ScanRefs(ctx context.Context, o RefOptions, fn func(docs []DocRef) error) error {
	if err := checkQuery(o.Query); err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	body := (&ScanOptions{Query: o.Query}).body(vectorPage, false)
	paths := o.Source
	if o.Text != "" {
		paths = append(slices.Clone(paths), o.Text)
	}
	if len(paths) > 0 {
		body["size"], body["_source"] = longPage, paths
	}
	body["version"], body["seq_no_primary_term"] = true, true
	if o.Value != "" {
		body["docvalue_fields"] = []string{o.Value}
	}
	return a.scan(ctx, o.Index, body, func(page []hit) error {
		docs := make([]DocRef, len(page))
		for i := range page {
			h := &page[i]
			docs[i] = DocRef{h.Index, h.ID, h.Routing, h.SeqNo, h.PrimaryTerm, h.Version, h.Fields[o.Value] != nil, nil, nil}
			if len(o.Source) > 0 {
				docs[i].Source = slices.Clone(h.Source)
			}
			if o.Text == "" {
				continue
			}
			texts, err := h.texts([]string{o.Text})
			if err != nil {
				return err
			}
			docs[i].Texts = texts
		}
		return fn(docs)
	})
}

// States returns the documents of a concrete index that are still in the
// states with these sequence numbers and, unless ids is nil, these ids,
// unordered, as a search sees them, with their sources at paths. A document
// in another shard may have the id of one and the number of another. If the
// error wraps [esclient.ErrTooLarge], call it with fewer: the answer may have
// 8 MiB.
func (a API) States(ctx context.Context, index string, ids []string, seqNos []int64, paths []string) ([]DocRef, error) {
	type object = esclient.Object
	filter := []any{object{"terms": object{"_seq_no": seqNos}}}
	if ids != nil {
		filter = append(filter, object{"ids": object{"values": ids}})
	}
	var answer page
	err := a.Client.Do(ctx, esclient.Call{
		Limit: searchedTexts,
		Request: esapi.SearchRequest{
			Index: []string{esclient.Name(index)}, FilterPath: inPages,
			Body: esclient.JSON(object{
				"size": 2 * len(seqNos), "_source": paths, "seq_no_primary_term": true, "version": true, "track_total_hits": false,
				"query": object{"bool": object{"filter": filter}},
			}),
		},
	}, &answer)
	if err != nil {
		return nil, err
	}
	docs := make([]DocRef, len(answer.Hits.Hits))
	for i, h := range answer.Hits.Hits {
		docs[i] = DocRef{Index: h.Index, ID: h.ID, Routing: h.Routing, SeqNo: h.SeqNo, PrimaryTerm: h.PrimaryTerm, Version: h.Version, Source: h.Source}
	}
	return docs, answer.Shards.check()
}

// SourceTexts returns the texts in a source at paths, in their order, as
// [API.Scan] does.
func SourceTexts(source []byte, paths []string) (texts []string, err error) {
	for _, path := range paths {
		if texts, err = appendTexts(texts, source, path); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// Interrupted reports whether it may help to repeat what failed with err: there
// was no answer or half of one, a node is gone or busy, or the cluster lost the
// state of a scan. It is false for permanent refusals, and does not consider
// the end of the context.
func Interrupted(err error) bool {
	if refusal, ok := errors.AsType[*esclient.Error](err); ok {
		switch refusal.Status {
		case http.StatusNotFound:
			return refusal.Type == "search_context_missing_exception"
		case http.StatusRequestTimeout, http.StatusTooManyRequests:
			return true
		default:
			return refusal.Status >= http.StatusInternalServerError
		}
	}
	_, network := errors.AsType[net.Error](err) // includes timeouts
	return network || errors.Is(err, errShards) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (h *hit) texts(paths []string) (values []string, err error) {
	if len(h.Source) == 0 {
		return nil, fmt.Errorf("index %q keeps no _source to read the texts from", h.Index)
	}
	for _, path := range paths {
		if values, err = appendTexts(values, h.Source, path); err != nil {
			return nil, fmt.Errorf("document %q of index %q: %w", h.ID, h.Index, err)
		}
	}
	return values, nil
}

// appendTexts appends the texts in v at path; "" means v itself.
func appendTexts(dst []string, v jsontext.Value, path string) (_ []string, err error) {
	switch kind := v.Kind(); {
	case kind == jsontext.KindBeginArray:
		var list []jsontext.Value
		err = esclient.Decode(v, &list)
		for i := 0; i < len(list) && err == nil; i++ {
			dst, err = appendTexts(dst, list[i], path)
		}
		return dst, err
	case kind == jsontext.KindBeginObject && path != "":
		return appendMembers(dst, v, path)
	case kind == jsontext.KindBeginObject, kind == jsontext.KindNull, path != "":
		return dst, nil
	case kind == jsontext.KindString:
		var text string
		err = esclient.Decode(v, &text)
		return append(dst, text), err
	default:
		return append(dst, string(v)), nil
	}
}

// appendMembers appends the texts in the object v at path. A name in v may have
// several segments of the path.
func appendMembers(dst []string, v jsontext.Value, path string) ([]string, error) {
	var members map[string]jsontext.Value
	err := esclient.Decode(v, &members)
	for end := 0; end <= len(path) && err == nil; end++ {
		if end < len(path) && path[end] != '.' {
			continue
		}
		if m, ok := members[path[:end]]; ok {
			dst, err = appendTexts(dst, m, path[min(end+1, len(path)):])
		}
	}
	return dst, err
}
