package esclient

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/akin-search/akin/esclient/answers"
)

// DocTerms are the terms of one document.
type DocTerms = answers.DocTerms

// A TermFreq is an index term and how often a field of a document has it, all
// its values together.
type TermFreq = answers.TermFreq

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
	err := c.termVectors(ctx, call, func(_ int, d *answers.VectorDoc) error {
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
func (c *Client) termVectors(ctx context.Context, call vectorCall, fn func(i int, d *answers.VectorDoc) error) error {
	r := request{
		method: http.MethodPost, path: call.path(), body: object{"docs": call.docs}, timeout: call.timeout, limit: call.limit,
	}
	vectors := answers.Vectors{Positions: call.positions}
	for _, d := range call.docs {
		vectors.IDs = append(vectors.IDs, d.ID)
	}
	return c.send(ctx, r, func(answer io.Reader) error { return vectors.Read(answer, fn) })
}
