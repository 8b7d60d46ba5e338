package esclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// An UnstoredDoc is the part of a document that the terms of fields are made
// of.
type UnstoredDoc struct {
	// Index is the concrete index whose analyzers make the terms. Routing is for
	// an index that wants one, "" for none.
	Index, Routing string
	// Texts are the values that the document has, by [TextField.Source]: JSON
	// strings, numbers and booleans. A number is taken as the engine writes it,
	// 12.50 as 12.5.
	Texts map[string][]jsontext.Value
	// Fields are the fields whose terms are asked for.
	Fields []string
}

// A TermFreq is a term with the number of its occurrences.
type TermFreq struct {
	// Term is the index term.
	Term string
	// Freq is at least 1.
	Freq int64
}

// UnstoredTerms are the terms of an [UnstoredDoc].
type UnstoredTerms struct {
	// Fields are the terms by field, each once, in no particular order. A field
	// without terms is not there.
	Fields map[string][]TermFreq
	// Err is why the cluster made no terms of this document.
	Err error
}

// UnstoredTerms returns the terms that the fields of documents would have in
// an index, in the order of docs, made by the index's own analysis and in
// one call. Nothing is stored, and no field is mapped anew. Call it with
// some hundred documents at most.
func (c *Client) UnstoredTerms(ctx context.Context, docs []UnstoredDoc) ([]UnstoredTerms, error) {
	body := lines(`{"docs":[`)
	for i := range docs {
		if i > 0 {
			body = append(body, ',')
		}
		var err error
		if body, err = docs[i].appendTo(body); err != nil {
			return nil, err
		}
	}
	found := make([]UnstoredTerms, 0, len(docs))
	// _index keeps an entry for a document without terms. A filter that goes
	// into the terms would take the cluster a fifth more time.
	const filter = "docs._index,docs.error,docs.term_vectors"
	r := request{
		method: http.MethodPost, path: "/_mtermvectors?filter_path=" + filter,
		body: append(body, "]}"...), timeout: pageTimeout, limit: maxPage,
	}
	err := c.send(ctx, r, func(answer io.Reader) error {
		d := jsontext.NewDecoder(answer, lenient())
		return eachMember(d, func(name string) error {
			if name != "docs" {
				return d.SkipValue()
			}
			return eachElement(d, func() error {
				terms, err := readUnstored(d)
				found = append(found, terms)
				return err
			})
		})
	})
	if err == nil && len(found) != len(docs) {
		err = fmt.Errorf("POST /_mtermvectors: %d documents in the answer, asked for %d", len(found), len(docs))
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// appendTo appends the entry of the document in the body of the call. The
// texts are copied as they are.
func (u *UnstoredDoc) appendTo(dst lines) (lines, error) {
	about := object{
		"_index": u.Index, "fields": u.Fields, "positions": false, "offsets": false, "payloads": false,
		"term_statistics": false, "field_statistics": false,
	}
	if u.Routing != "" {
		about["routing"] = u.Routing
	}
	head, err := encode(about)
	if err != nil {
		return dst, err
	}
	dst = append(append(dst, head[:len(head)-1]...), `,"doc":{`...)
	for i, path := range slices.Sorted(maps.Keys(u.Texts)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		name, err := encode(path)
		if err != nil {
			return dst, err
		}
		dst = append(append(dst, name...), ':', '[')
		for k, v := range u.Texts[path] {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, v...)
		}
		dst = append(dst, ']')
	}
	return append(dst, "}}"...), nil
}

// eachElement calls fn for each element of the array that d comes to, d
// standing before the element, which fn reads.
func eachElement(d *jsontext.Decoder, fn func() error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return errors.Join(err, errors.New("want an array"))
	}
	for d.PeekKind() != ']' {
		if err := fn(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// readUnstored reads the entry of one document.
func readUnstored(d *jsontext.Decoder) (u UnstoredTerms, err error) {
	err = eachMember(d, func(name string) error {
		switch name {
		case "error":
			v, err := d.ReadValue()
			if err != nil {
				return err
			}
			var failed itemError
			if err := decode(v, &failed); err != nil {
				return err
			}
			u.Err = failed.asError(0)
			return nil
		case "term_vectors":
			u.Fields = map[string][]TermFreq{}
			return eachMember(d, func(field string) error {
				return eachMember(d, func(name string) error {
					if name != "terms" {
						return d.SkipValue()
					}
					terms, err := readTermFreqs(d)
					u.Fields[field] = terms
					return err
				})
			})
		default:
			return d.SkipValue()
		}
	})
	return u, err
}

// readTermFreqs reads the terms of a field.
func readTermFreqs(d *jsontext.Decoder) (terms []TermFreq, err error) {
	err = eachMember(d, func(term string) error {
		return eachMember(d, func(name string) error {
			if name != "term_freq" {
				return d.SkipValue()
			}
			t, err := d.ReadToken()
			if err != nil {
				return err
			}
			if t.Kind() != jsontext.KindNumber { // else Int panics
				return errors.New("want a number")
			}
			freq, err := t.Int()
			terms = append(terms, TermFreq{Term: term, Freq: freq})
			return err
		})
	})
	return terms, err
}

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
