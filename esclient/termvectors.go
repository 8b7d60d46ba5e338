package esclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A TermFreq is an index term and how often a field of a document has it, all
// its values together.
type TermFreq struct {
	// Term is the index term.
	Term string
	// Freq is at least 1.
	Freq int64
}

// DocTerms are the terms of one document.
type DocTerms struct {
	// Found is false for a document that is not there any more, and Version is
	// the one that the terms are of.
	Found   bool
	Version int64
	// Fields are the terms by field, each once, in no particular order. A field
	// without terms is not there, nor is one of which the cluster tells none.
	Fields map[string][]TermFreq
	// Err is why the cluster tells no terms of this document; the others may well
	// have some. It is an [*Error], whose Status is 404 where the index is gone
	// and 0 else.
	Err error
}

// A VectorRequest names a document and the fields whose terms are asked for.
type VectorRequest struct {
	// Index is the concrete index, ID the document's, and Routing what it was
	// written with, "" for none.
	Index   string `json:"_index"`
	ID      string `json:"_id"`
	Routing string `json:"routing,omitempty"`
	// Fields are full names of text fields. The cluster tells nothing of aliases
	// and of what copy_to fills.
	Fields []string `json:"fields"`
}

// searchedTerms bounds the answer of [Client.DocVectors], of which searches at
// the same time may each have one.
const searchedTerms = 8 << 20

// DocVectors returns the terms of documents as a search sees them, in one call
// and in the order of docs. Call it with fewer documents where the error wraps
// [ErrTooLarge]: the answer is bounded to 8 MiB.
func (c *Client) DocVectors(ctx context.Context, docs []VectorRequest) ([]DocTerms, error) {
	call := vectorCall{docs: docs, asSearched: true, limit: searchedTerms}
	return c.allTerms(ctx, call)
}

const (
	// manyTerms bounds the answer of [Client.TermFreqs] for several documents: it
	// holds about 600,000 terms, which take some 30 MB in memory.
	manyTerms = 16 << 20
	// oneTerms bounds it for a single one: a document of five million different
	// terms fits.
	oneTerms = 128 << 20
)

// TermFreqs returns the terms of documents in a field as they are now, not yet
// visible writes included, in the order of docs. It reads nothing but index, id
// and routing of a document. Call it with some hundred documents at most, and
// with fewer where the error wraps [ErrTooLarge]: the answer is bounded, to 16
// MiB, and to 128 MiB for a single document.
func (c *Client) TermFreqs(ctx context.Context, field string, docs []DocRef) ([]DocTerms, error) {
	call := vectorCall{timeout: pageTimeout, limit: manyTerms}
	if len(docs) == 1 {
		call.limit = oneTerms
	}
	fields := []string{field}
	for _, d := range docs {
		call.docs = append(call.docs, VectorRequest{Index: d.Index, ID: d.ID, Routing: d.Routing, Fields: fields})
	}
	return c.allTerms(ctx, call)
}

// A vectorCall is one call of _mtermvectors.
type vectorCall struct {
	docs []VectorRequest
	// positions asks for the places of the terms, too.
	positions bool
	// asSearched asks for the documents as a search sees them, and not as they
	// are now.
	asSearched bool
	// timeout and limit are those of a [request].
	timeout time.Duration
	limit   int64
}

// path returns the path and the query. _index keeps an entry in the answer for
// a document without terms. A filter that goes into the terms would take the
// cluster a fifth more time.
func (v *vectorCall) path() string {
	return "/_mtermvectors?" + url.Values{
		"realtime": {strconv.FormatBool(!v.asSearched)}, "positions": {strconv.FormatBool(v.positions)},
		"offsets": {"false"}, "payloads": {"false"}, "term_statistics": {"false"}, "field_statistics": {"false"},
		"filter_path": {"docs._index,docs._id,docs.found,docs._version,docs.error,docs.term_vectors"},
	}.Encode()
}

// allTerms makes a call and returns all of its answer.
func (c *Client) allTerms(ctx context.Context, call vectorCall) ([]DocTerms, error) {
	all := make([]DocTerms, 0, len(call.docs))
	err := c.termVectors(ctx, call, func(_ int, d *vectorDoc) error {
		all = append(all, d.DocTerms)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// termVectors calls fn with each document of a call, in their order, while the
// answer is read.
func (c *Client) termVectors(ctx context.Context, call vectorCall, fn func(i int, d *vectorDoc) error) error {
	r := request{
		method: http.MethodPost, path: call.path(), body: object{"docs": call.docs}, timeout: call.timeout, limit: call.limit,
	}
	return c.send(ctx, r, func(answer io.Reader) error { return call.read(answer, fn) })
}

// A vectorDoc is a document of the answer.
type vectorDoc struct {
	DocTerms

	// positions are the places of the terms of Fields, where they were asked for.
	positions map[string][][]int
}

// errVectors says that an answer is not that of _mtermvectors.
var errVectors = errors.New("not the terms of the documents")

// read reads the answer token by token, since there may be millions of terms.
func (v *vectorCall) read(answer io.Reader, fn func(i int, d *vectorDoc) error) error {
	d := jsontext.NewDecoder(answer, lenient())
	n := 0
	err := eachMember(d, func(name string) error {
		if name != "docs" || d.PeekKind() != jsontext.KindBeginArray {
			return d.SkipValue()
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != jsontext.KindEndArray {
			if n == len(v.docs) {
				return fmt.Errorf("more than %d documents: %w", n, errVectors)
			}
			doc, err := v.readDoc(d, v.docs[n].ID)
			if err != nil {
				return err
			}
			if err := fn(n, doc); err != nil {
				return err
			}
			n++
		}
		_, err := d.ReadToken()
		return err
	})
	if err == nil && n != len(v.docs) {
		err = fmt.Errorf("%d documents, asked for %d: %w", n, len(v.docs), errVectors)
	}
	return err
}

// readDoc reads the entry of the document with an id, "" for one that has none.
func (v *vectorCall) readDoc(d *jsontext.Decoder, id string) (*vectorDoc, error) {
	doc := &vectorDoc{}
	err := eachMember(d, func(name string) (err error) {
		switch {
		case name == "_id" && d.PeekKind() == jsontext.KindString && id != "":
			got, err := d.ReadToken()
			if err == nil && got.String() != id {
				err = fmt.Errorf("another document than asked for: %w", errVectors)
			}
			return err
		case name == "found":
			doc.Found = d.PeekKind() == jsontext.KindTrue
			return d.SkipValue()
		case name == "_version":
			doc.Version, err = readInt(d)
			return err
		case name == "error":
			doc.Err, err = readItemError(d)
			return err
		case name == "term_vectors":
			return v.readFields(d, doc)
		default:
			return d.SkipValue()
		}
	})
	return doc, err
}

// readItemError reads what the cluster says of a document. It has no status for
// it; an index that is gone has that of a call for the index.
func readItemError(d *jsontext.Decoder) (refusal, err error) {
	value, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	var e itemError
	if err := decode(value, &e); err != nil {
		return nil, err
	}
	status := 0
	if e.Type == "index_not_found_exception" {
		status = http.StatusNotFound
	}
	return e.asError(status), nil
}

// readFields reads the terms of fields.
func (v *vectorCall) readFields(d *jsontext.Decoder, doc *vectorDoc) error {
	return eachMember(d, func(field string) error {
		return eachMember(d, func(name string) error {
			if name != "terms" {
				return d.SkipValue()
			}
			terms, positions, err := v.readTerms(d)
			if len(terms) == 0 || err != nil {
				return err
			}
			if doc.Fields == nil {
				doc.Fields, doc.positions = map[string][]TermFreq{}, map[string][][]int{}
			}
			doc.Fields[field] = terms
			if v.positions {
				doc.positions[field] = positions
			}
			return nil
		})
	})
}

// readTerms reads {"term":{"term_freq":n,"tokens":[…]},…}.
func (v *vectorCall) readTerms(d *jsontext.Decoder) (terms []TermFreq, positions [][]int, err error) {
	err = eachMember(d, func(term string) error {
		t := TermFreq{Term: term}
		var at []int
		err := eachMember(d, func(name string) (err error) {
			switch {
			case name == "term_freq":
				t.Freq, err = readInt(d)
				return err
			case name == "tokens" && v.positions:
				at, err = readPositions(d)
				return err
			default:
				return d.SkipValue()
			}
		})
		if v.positions {
			t.Freq = int64(len(at))
		}
		if err == nil && t.Freq < 1 {
			err = fmt.Errorf("a term without a frequency: %w", errVectors)
		}
		terms = append(terms, t)
		if v.positions {
			positions = append(positions, at)
		}
		return err
	})
	return terms, positions, err
}

// readPositions reads [{"position":n},…].
func readPositions(d *jsontext.Decoder) (at []int, err error) {
	if t, err := d.ReadToken(); err != nil || t.Kind() != jsontext.KindBeginArray {
		return nil, errors.Join(err, errVectors)
	}
	for d.PeekKind() != jsontext.KindEndArray {
		err := eachMember(d, func(name string) error {
			if name != "position" {
				return d.SkipValue()
			}
			n, err := readInt(d)
			at = append(at, int(n))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	_, err = d.ReadToken()
	return at, err
}

// readInt reads a number.
func readInt(d *jsontext.Decoder) (int64, error) {
	t, err := d.ReadToken()
	if err != nil {
		return 0, err
	}
	if t.Kind() != jsontext.KindNumber { // else Int panics
		return 0, fmt.Errorf("%s for a number: %w", t.Kind(), errVectors)
	}
	return t.Int()
}
