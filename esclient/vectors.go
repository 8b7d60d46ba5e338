package esclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// vectorsPath asks for terms with their frequencies and nothing else, as a
// search sees the documents.
const vectorsPath = "/_mtermvectors?realtime=false&term_statistics=false&field_statistics=false" +
	"&positions=false&offsets=false&payloads=false"

// A VectorRequest names a document and the fields whose terms are asked for.
type VectorRequest struct {
	// Index is the concrete index, ID the document's, and Routing what it was
	// written with, "" for none.
	Index, ID, Routing string
	// Fields are full names of text fields. The cluster tells nothing of aliases
	// and of what copy_to fills.
	Fields []string
}

// A DocVector is the terms of a document.
type DocVector struct {
	// Found says that a search finds the document, and Version is its version.
	Found   bool
	Version int64
	// Fields are the terms of the fields, in the order of the request, empty
	// where the document has none or the cluster tells none.
	Fields [][]FieldTerm
}

// A FieldTerm is an index term and how often a field has it, all its values
// together.
type FieldTerm struct {
	Term string
	Freq int64
}

// errVectors says that an answer is not that of _mtermvectors.
var errVectors = errors.New("not the terms of the documents")

// DocVectors returns the terms of documents, in one call: one for each of
// docs, in their order. The error is that of the first document that the
// cluster refuses, such as an [*Error] for an index that is gone.
func (c *Client) DocVectors(ctx context.Context, docs []VectorRequest) ([]DocVector, error) {
	type item struct {
		Index   string   `json:"_index"`
		ID      string   `json:"_id"`
		Routing string   `json:"routing,omitempty"`
		Fields  []string `json:"fields"`
	}
	items := make([]item, len(docs))
	for i, d := range docs {
		items[i] = item(d)
	}
	var out []DocVector
	r := request{method: http.MethodPost, path: vectorsPath, body: object{"docs": items}}
	err := c.send(ctx, r, func(body io.Reader) (err error) {
		b, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		out, err = readVectors(b, docs)
		return err
	})
	return out, err
}

// readVectors reads the answer to DocVectors. There may be thousands of
// terms, which are read token by token.
func readVectors(answer []byte, docs []VectorRequest) ([]DocVector, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(answer), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	out := make([]DocVector, 0, len(docs))
	err := eachName(d, func(name string) error {
		if name != "docs" || d.PeekKind() != '[' {
			return d.SkipValue()
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != ']' {
			if len(out) == len(docs) {
				return errVectors
			}
			v, err := readVector(d, &docs[len(out)])
			if err != nil {
				return err
			}
			out = append(out, v)
		}
		_, err := d.ReadToken()
		return err
	})
	if err == nil && len(out) != len(docs) {
		err = errVectors
	}
	if err != nil {
		return nil, fmt.Errorf("decode the answer: %w", err)
	}
	return out, nil
}

// readVector reads the answer for one document.
func readVector(d *jsontext.Decoder, of *VectorRequest) (DocVector, error) {
	v := DocVector{Fields: make([][]FieldTerm, len(of.Fields))}
	err := eachName(d, func(name string) error {
		switch {
		case name == "_id" && d.PeekKind() == '"':
			id, err := d.ReadToken()
			if err == nil && id.String() != of.ID {
				err = errVectors
			}
			return err
		case name == "found":
			v.Found = d.PeekKind() == 't'
			return d.SkipValue()
		case name == "_version" && d.PeekKind() == '0':
			version, err := d.ReadToken()
			if err == nil {
				v.Version, err = version.Int()
			}
			return err
		case name == "error":
			var e itemError
			value, err := d.ReadValue()
			if err == nil {
				err = decode(value, &e)
			}
			if err == nil {
				err = e.asError(http.StatusNotFound)
			}
			return err
		case name == "term_vectors":
			return readFields(d, of.Fields, v.Fields)
		}
		return d.SkipValue()
	})
	return v, err
}

// readFields reads the terms of the fields named into out.
func readFields(d *jsontext.Decoder, names []string, out [][]FieldTerm) error {
	return eachName(d, func(field string) error {
		return eachName(d, func(name string) error {
			if name != "terms" {
				return d.SkipValue()
			}
			terms, err := readTerms(d)
			for i := range names {
				if names[i] == field {
					out[i] = terms
				}
			}
			return err
		})
	})
}

// readTerms reads {"term":{"term_freq":n},…}.
func readTerms(d *jsontext.Decoder) (terms []FieldTerm, err error) {
	err = eachName(d, func(term string) error {
		t := FieldTerm{Term: term}
		err := eachName(d, func(name string) error {
			if name != "term_freq" || d.PeekKind() != '0' {
				return d.SkipValue()
			}
			n, err := d.ReadToken()
			if err == nil {
				t.Freq, err = n.Int()
			}
			return err
		})
		if err == nil && t.Freq < 1 {
			err = errVectors
		}
		terms = append(terms, t)
		return err
	})
	return terms, err
}

// eachName calls f with the name of each member of the object that d is
// before. f has to read the value.
func eachName(d *jsontext.Decoder, f func(name string) error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return errors.Join(errVectors, err)
	}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := f(t.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}
