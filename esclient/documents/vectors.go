package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A TermFreq is an index term and how often a field has it, in all its values.
type TermFreq struct {
	Term string
	Freq int64 // at least 1
}

// DocTerms are the terms of one document.
type DocTerms struct {
	// Found is false if the document is gone. Version is that of the terms.
	Found   bool
	Version int64
	// Fields has the terms by field, each once and unordered, if there are any.
	Fields map[string][]TermFreq
	// MeanLengths are the mean numbers of words of the fields in the document's
	// shard, if asked for.
	MeanLengths map[string]float64
	// Err, an [*esclient.Error], is why the cluster returned no terms; its Status
	// is 404 if the index is gone, else 0.
	Err error
}

// A VectorRequest asks for the terms of a document in some fields.
type VectorRequest struct {
	// Index is the concrete index. Routing is what the document was written with.
	Index   string `json:"_index"`
	ID      string `json:"_id"`
	Routing string `json:"routing,omitempty"`
	// Fields are full names of text fields. For aliases and fields filled by
	// copy_to the cluster returns nothing.
	Fields []string `json:"fields"`
}

const (
	// searchedTerms limits the answer of [API.DocVectors], of which each
	// concurrent search may hold one.
	searchedTerms = 8 << 20
	// manyTerms limits that of [API.TermFreqs] for several documents: 600,000
	// terms, some 30 MB in memory. oneTerms is for one document: five million fit.
	manyTerms, oneTerms = 16 << 20, 128 << 20
)

// DocVectors returns the terms of documents as a search sees them, in one call
// and in the order of docs. If the error wraps [esclient.ErrTooLarge], call it
// with fewer documents: the answer may have 8 MiB.
func (a API) DocVectors(ctx context.Context, docs []VectorRequest) ([]DocTerms, error) {
	return a.allTerms(ctx, vectorCall{docs: docs, asSearched: true, limit: searchedTerms})
}

// Named returns the documents with the given sequence numbers in a concrete
// index of one shard, unordered, as a search sees them.
func (a API) Named(ctx context.Context, index string, seqNos []int64) ([]DocRef, error) {
	var answer page
	call := esclient.Call{
		Limit: int64(len(seqNos)+1) << 13, // ids and routings of 512 bytes, at most six in JSON for each
		Request: esapi.SearchRequest{
			Index: []string{esclient.Name(index)}, FilterPath: []string{"hits.hits"},
			Body: esclient.JSON(esclient.Object{
				"size": len(seqNos), "_source": false, "seq_no_primary_term": true, "version": true, "track_total_hits": false,
				"query": esclient.Object{"terms": esclient.Object{"_seq_no": seqNos}},
			}),
		},
	}
	if err := a.Client.Do(ctx, call, &answer); err != nil {
		return nil, err
	}
	docs := make([]DocRef, len(answer.Hits.Hits))
	for i, h := range answer.Hits.Hits {
		docs[i] = DocRef{Index: h.Index, ID: h.ID, Routing: h.Routing, SeqNo: h.SeqNo, PrimaryTerm: h.PrimaryTerm, Version: h.Version}
	}
	return docs, nil
}

// TermFreqs returns the current terms of documents in fields, including writes
// that are not yet searchable, in the order of docs. Call it with some hundred
// at most, and with fewer if the error wraps [esclient.ErrTooLarge]: the answer
// may have 16 MiB, for a single document 128 MiB.
func (a API) TermFreqs(ctx context.Context, fields []string, docs []DocRef) ([]DocTerms, error) {
	call := vectorCall{timeout: pageTimeout, limit: manyTerms}
	if len(docs) == 1 {
		call.limit = oneTerms
	}
	for _, d := range docs {
		call.docs = append(call.docs, VectorRequest{Index: d.Index, ID: d.ID, Routing: d.Routing, Fields: fields})
	}
	return a.allTerms(ctx, call)
}

// A vectorCall calls _mtermvectors; timeout and limit are as in
// [esclient.Call].
type vectorCall struct {
	docs       []VectorRequest
	positions  bool // ask for positions of terms, too
	asSearched bool // documents as a search sees them, not in their current state
	timeout    time.Duration
	limit      int64
}

// allTerms makes a call and returns the complete answer.
func (a API) allTerms(ctx context.Context, call vectorCall) ([]DocTerms, error) {
	all := make([]DocTerms, 0, len(call.docs))
	err := a.termVectors(ctx, call, func(_ int, d *vectorDoc) error {
		all = append(all, d.DocTerms)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// termVectors calls fn with each document of a call, in order, while it reads
// the answer. Its filter keeps, by _index, an entry for a document without
// terms; a filter that goes into the terms would take the cluster a fifth more
// time.
func (a API) termVectors(ctx context.Context, call vectorCall, fn func(i int, d *vectorDoc) error) error {
	r := esclient.Call{Timeout: call.timeout, Limit: call.limit, Request: esapi.MtermvectorsRequest{
		Realtime: new(!call.asSearched), Positions: &call.positions, Offsets: new(false), Payloads: new(false),
		TermStatistics: new(false), FieldStatistics: &call.asSearched,
		FilterPath: []string{"docs._index", "docs._id", "docs.found", "docs._version", "docs.error", "docs.term_vectors"},
		Body:       esclient.JSON(esclient.Object{"docs": call.docs}),
	}}
	return a.Client.Send(ctx, r, func(_ http.Header, answer io.Reader) error { return call.read(answer, fn) })
}

// A vectorDoc is a document in the answer, with the positions of the terms in
// Fields if asked for.
type vectorDoc struct {
	DocTerms

	positions map[string][][]int
}

// errVectors says that an answer is not one of _mtermvectors.
var errVectors = errors.New("not the terms of the documents")

// read reads an answer, of maybe millions of terms, document by document.
func (v *vectorCall) read(answer io.Reader, fn func(i int, d *vectorDoc) error) error {
	d := jsontext.NewDecoder(answer, esclient.Lenient())
	n := 0
	err := jsonspan.EachMember(d, func(name string) error {
		if name != "docs" {
			return d.SkipValue()
		}
		return jsonspan.EachElement(d, func() error {
			if n == len(v.docs) {
				return fmt.Errorf("more than %d documents: %w", n, errVectors)
			}
			doc, err := v.readDoc(d, v.docs[n].ID)
			if err != nil {
				return err
			}
			n++
			return fn(n-1, doc)
		})
	})
	if err == nil && n != len(v.docs) {
		err = fmt.Errorf("%d documents, asked for %d: %w", n, len(v.docs), errVectors)
	}
	return err
}

// readDoc reads the entry of the document id; "" accepts any. It reads token by
// token: structs for millions of terms would take twice as long.
func (v *vectorCall) readDoc(d *jsontext.Decoder, id string) (*vectorDoc, error) {
	doc := &vectorDoc{}
	err := jsonspan.EachMember(d, func(name string) (err error) {
		switch name {
		case "_id":
			var got string
			if err = json.UnmarshalDecode(d, &got); err == nil && id != "" && got != id {
				err = fmt.Errorf("another document than asked for: %w", errVectors)
			}
			return err
		case "found":
			return json.UnmarshalDecode(d, &doc.Found)
		case "_version":
			return json.UnmarshalDecode(d, &doc.Version)
		case "error":
			var e esclient.ItemError
			err = json.UnmarshalDecode(d, &e)
			status := 0 // the cluster gives none per document
			if e.Type == "index_not_found_exception" {
				status = http.StatusNotFound
			}
			doc.Err = e.AsError(status)
			return err
		case "term_vectors":
			return jsonspan.EachMember(d, func(field string) error { return v.readField(d, doc, field) })
		default:
			return d.SkipValue()
		}
	})
	return doc, err
}

// readField reads {"terms":{"term":{"term_freq":n,"tokens":[{"position":n}]}}}.
func (v *vectorCall) readField(d *jsontext.Decoder, doc *vectorDoc, field string) error {
	var terms []TermFreq
	var positions [][]int
	err := jsonspan.EachMember(d, func(name string) error {
		if name == "field_statistics" {
			var all struct {
				Docs  float64 `json:"doc_count"`
				Words float64 `json:"sum_ttf"` // -1 if the index does not count them
			}
			err := json.UnmarshalDecode(d, &all)
			if all.Docs > 0 && all.Words > 0 {
				if doc.MeanLengths == nil {
					doc.MeanLengths = map[string]float64{}
				}
				doc.MeanLengths[field] = all.Words / all.Docs
			}
			return err
		}
		if name != "terms" {
			return d.SkipValue()
		}
		return jsonspan.EachMember(d, func(term string) error {
			freq, at, err := v.readTerm(d)
			terms = append(terms, TermFreq{term, freq})
			if v.positions {
				positions = append(positions, at)
			}
			return err
		})
	})
	if len(terms) > 0 {
		if doc.Fields == nil {
			doc.Fields, doc.positions = map[string][]TermFreq{}, map[string][][]int{}
		}
		doc.Fields[field], doc.positions[field] = terms, positions
	}
	return err
}

func (v *vectorCall) readTerm(d *jsontext.Decoder) (freq int64, at []int, err error) {
	err = jsonspan.EachMember(d, func(name string) error {
		switch {
		case name == "term_freq":
			t, err := d.ReadToken()
			if err == nil && t.Kind() == jsontext.KindNumber { // otherwise Int panics
				freq, err = t.Int()
			}
			return err
		case name == "tokens" && v.positions:
			var tokens []struct {
				Position int `json:"position"`
			}
			err := json.UnmarshalDecode(d, &tokens)
			for _, t := range tokens {
				at = append(at, t.Position)
			}
			return err
		default:
			return d.SkipValue()
		}
	})
	if v.positions {
		freq = int64(len(at))
	}
	if err == nil && freq < 1 {
		err = fmt.Errorf("a term without a frequency: %w", errVectors)
	}
	return freq, at, err
}

// texts returns the document's terms, by field and split at large gaps.
func (d *vectorDoc) texts(fields []string) [][]string {
	type occurrence struct {
		position int
		term     string
	}
	var texts [][]string
	for _, f := range fields {
		var all []occurrence
		for i, t := range d.Fields[f] {
			for _, at := range d.positions[f][i] {
				all = append(all, occurrence{at, t.Term})
			}
		}
		slices.SortFunc(all, func(a, b occurrence) int {
			return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.term, b.term))
		})
		for i, o := range all {
			if i == 0 || o.position-all[i-1].position >= mapping.PositionGap {
				texts = append(texts, nil)
			}
			last := &texts[len(texts)-1]
			*last = append(*last, o.term)
		}
	}
	return texts
}
