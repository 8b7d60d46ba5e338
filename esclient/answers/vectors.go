package answers

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/esclient/mapping"
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

// Vectors reads an answer of _mtermvectors.
type Vectors struct {
	// IDs are those of the documents asked for, "" for one that has none.
	IDs []string
	// Positions says that the places of the terms were asked for, too.
	Positions bool
}

// A VectorDoc is a document of the answer.
type VectorDoc struct {
	DocTerms

	// Positions are the places of the terms of Fields, where they were asked for.
	Positions map[string][][]int
}

// errVectors says that an answer is not that of _mtermvectors.
var errVectors = errors.New("not the terms of the documents")

// Read reads the answer token by token, since there may be millions of terms.
func (v *Vectors) Read(answer io.Reader, fn func(i int, d *VectorDoc) error) error {
	d := jsontext.NewDecoder(answer, Lenient())
	n := 0
	err := EachMember(d, func(name string) error {
		if name != "docs" || d.PeekKind() != jsontext.KindBeginArray {
			return d.SkipValue()
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != jsontext.KindEndArray {
			if n == len(v.IDs) {
				return fmt.Errorf("more than %d documents: %w", n, errVectors)
			}
			doc, err := v.readDoc(d, v.IDs[n])
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
	if err == nil && n != len(v.IDs) {
		err = fmt.Errorf("%d documents, asked for %d: %w", n, len(v.IDs), errVectors)
	}
	return err
}

// readDoc reads the entry of the document with an id, "" for one that has none.
func (v *Vectors) readDoc(d *jsontext.Decoder, id string) (*VectorDoc, error) {
	doc := &VectorDoc{}
	err := EachMember(d, func(name string) (err error) {
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
	var e ItemError
	if err := Decode(value, &e); err != nil {
		return nil, err
	}
	status := 0
	if e.Type == "index_not_found_exception" {
		status = http.StatusNotFound
	}
	return e.AsError(status), nil
}

// readFields reads the terms of fields.
func (v *Vectors) readFields(d *jsontext.Decoder, doc *VectorDoc) error {
	return EachMember(d, func(field string) error {
		return EachMember(d, func(name string) error {
			if name != "terms" {
				return d.SkipValue()
			}
			terms, positions, err := v.readTerms(d)
			if len(terms) == 0 || err != nil {
				return err
			}
			if doc.Fields == nil {
				doc.Fields, doc.Positions = map[string][]TermFreq{}, map[string][][]int{}
			}
			doc.Fields[field] = terms
			if v.Positions {
				doc.Positions[field] = positions
			}
			return nil
		})
	})
}

// readTerms reads {"term":{"term_freq":n,"tokens":[…]},…}.
func (v *Vectors) readTerms(d *jsontext.Decoder) (terms []TermFreq, positions [][]int, err error) {
	err = EachMember(d, func(term string) error {
		t := TermFreq{Term: term}
		var at []int
		err := EachMember(d, func(name string) (err error) {
			switch {
			case name == "term_freq":
				t.Freq, err = readInt(d)
				return err
			case name == "tokens" && v.Positions:
				at, err = readPositions(d)
				return err
			default:
				return d.SkipValue()
			}
		})
		if v.Positions {
			t.Freq = int64(len(at))
		}
		if err == nil && t.Freq < 1 {
			err = fmt.Errorf("a term without a frequency: %w", errVectors)
		}
		terms = append(terms, t)
		if v.Positions {
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
		err := EachMember(d, func(name string) error {
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

// Texts returns the document's terms in each of the fields that has any, cut
// at large gaps.
func (d *VectorDoc) Texts(fields []string) [][]string {
	type occurrence struct {
		position int
		term     string
	}
	var texts [][]string
	for _, f := range fields {
		var all []occurrence
		for i, t := range d.Fields[f] {
			for _, at := range d.Positions[f][i] {
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
