package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A TermFreq is an index term and how often a field of a document has it, all
// its values together.
type TermFreq struct {
	Term string
	Freq int64 // at least 1
}

// DocTerms are the terms of one document.
type DocTerms struct {
	// Found is false for a document that is not there any more, and Version is the
	// one that the terms are of.
	Found   bool
	Version int64
	// Fields are the terms by field, each once, in no particular order, without
	// fields that have none.
	Fields map[string][]TermFreq
	// MeanLengths are the mean numbers of words of the fields in the document's
	// shard, where these were asked for.
	MeanLengths map[string]float64
	// Err, an [*esclient.Error], is why the cluster tells no terms of this document;
	// its Status is 404 where the index is gone and 0 else.
	Err error
}

// A VectorRequest names a document and the fields whose terms are asked for.
type VectorRequest struct {
	// Index is the concrete index, and Routing what the document was written with.
	Index   string `json:"_index"`
	ID      string `json:"_id"`
	Routing string `json:"routing,omitempty"`
	// Fields are full names of text fields. The cluster tells nothing of aliases
	// and of what copy_to fills.
	Fields []string `json:"fields"`
}

const (
	// searchedTerms bounds the answer of [API.DocVectors], of which searches at the
	// same time may each have one.
	searchedTerms = 8 << 20
	// manyTerms bounds that of [API.TermFreqs] for several documents: 600,000
	// terms, which take some 30 MB in memory; oneTerms for a single one: five
	// million fit.
	manyTerms, oneTerms = 16 << 20, 128 << 20
)

// DocVectors returns the terms of documents as a search sees them, in one call
// and in the order of docs. Call it with fewer documents where the error wraps
// [esclient.ErrTooLarge]: the answer is bounded to 8 MiB.
func (a API) DocVectors(ctx context.Context, docs []VectorRequest) ([]DocTerms, error) {
	return a.allTerms(ctx, vectorCall{docs: docs, asSearched: true, limit: searchedTerms})
}

// Named returns the documents of a concrete index of one shard that have the
// sequence numbers, in any order, as a search sees them.
func (a API) Named(ctx context.Context, index string, seqNos []int64) ([]DocRef, error) {
	var answer page
	call := esclient.Call{
		Method: http.MethodPost, Path: esclient.IndexPath(index, "/_search?filter_path=hits.hits"), Limit: int64(len(seqNos)+1) << 13, // ids and routings of 512 bytes, at most six in JSON for each
		Body: esclient.Object{
			"size": len(seqNos), "_source": false, "seq_no_primary_term": true, "version": true, "track_total_hits": false,
			"query": esclient.Object{"terms": esclient.Object{"_seq_no": seqNos}},
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

// TermFreqs returns the terms of documents in fields as they are now, not yet
// visible writes included, in the order of docs. Call it with some hundred at
// most, and with fewer where the error wraps [esclient.ErrTooLarge]: the answer
// is bounded to 16 MiB, to 128 MiB for a single document.
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

// A vectorCall is one call of _mtermvectors, with timeout and limit as of an
// [esclient.Call].
type vectorCall struct {
	docs       []VectorRequest
	positions  bool // the places of the terms are asked for, too
	asSearched bool // the documents as a search sees them, not as they are now
	timeout    time.Duration
	limit      int64
}

// allTerms makes a call and returns all of its answer.
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

// termVectors calls fn with each document of a call, in their order, while the
// answer is read. Its filter keeps an entry for a document without terms by
// _index; one that goes into the terms would take the cluster a fifth more
// time.
func (a API) termVectors(ctx context.Context, call vectorCall, fn func(i int, d *vectorDoc) error) error {
	query := url.Values{
		"realtime": {strconv.FormatBool(!call.asSearched)}, "positions": {strconv.FormatBool(call.positions)},
		"offsets": {"false"}, "payloads": {"false"}, "term_statistics": {"false"}, "field_statistics": {strconv.FormatBool(call.asSearched)},
		"filter_path": {"docs._index,docs._id,docs.found,docs._version,docs.error,docs.term_vectors"},
	}
	r := esclient.Call{
		Method: http.MethodPost, Path: "/_mtermvectors?" + query.Encode(), Body: esclient.Object{"docs": call.docs},
		Timeout: call.timeout, Limit: call.limit,
	}
	return a.Client.Send(ctx, r, func(_ http.Header, answer io.Reader) error { return call.read(answer, fn) })
}

// A vectorDoc is a document of the answer, with the places of the terms of
// Fields where these were asked for.
type vectorDoc struct {
	DocTerms

	positions map[string][][]int
}

// errVectors says that an answer is not that of _mtermvectors.
var errVectors = errors.New("not the terms of the documents")

// read reads the answer document by document, since there may be millions of
// terms.
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

// readDoc reads the entry of the document with an id, "" for one that has none,
// token by token: a struct for the millions of terms would take twice as long.
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
			status := 0 // the cluster has none for a document
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
				Words float64 `json:"sum_ttf"` // -1 where the index does not count them
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

// readTerm reads the frequency and the places of a term.
func (v *vectorCall) readTerm(d *jsontext.Decoder) (freq int64, at []int, err error) {
	err = jsonspan.EachMember(d, func(name string) error {
		switch {
		case name == "term_freq":
			t, err := d.ReadToken()
			if err == nil && t.Kind() == jsontext.KindNumber { // else Int panics
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

// texts returns the document's terms in each of the fields that has any, cut at
// large gaps.
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
