package proxy

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// unnumbered returns the members, each with the comma before it, that say that
// a hit within a hit, or in an aggregation, has no sequence number, in the
// value of an answer at the place given. Elasticsearch 9 writes
// "_seq_no":-2,"_primary_term":0 into these when a search asks for the numbers
// of its own hits, as one whose hits are ordered anew does.
func unnumbered(answer []byte, at piece) []piece {
	value := at.of(answer)
	if !bytes.Contains(value, []byte(`"_seq_no"`)) {
		return nil
	}
	r := numberReader{d: newDecoder(bytes.NewBuffer(value)), start: at.start}
	if r.value() != nil {
		return nil // it was read before: it is JSON
	}
	return r.cuts
}

// optionNumbers returns the members of the options in the value of "suggest" at
// the place given whose names are unwanted, each with the comma before it. The
// options of a completion suggester are documents, and get the version and the
// sequence number that a search asks for; "text" stands before these.
func optionNumbers(answer []byte, at piece, unwanted func(name string) bool) []piece {
	r := numberReader{d: newDecoder(bytes.NewBuffer(at.of(answer))), start: at.start}
	option := func() error {
		before := 0
		return eachMember(r.d, func(name string) error {
			err := r.d.SkipValue()
			if before > 0 && unwanted(name) {
				r.cuts = append(r.cuts, piece{before, r.place()})
			}
			before = r.place()
			return err
		})
	}
	entry := func() error {
		return eachMember(r.d, func(name string) error {
			if name == "options" {
				return r.elements(option)
			}
			return r.d.SkipValue()
		})
	}
	if eachMember(r.d, func(string) error { return r.elements(entry) }) != nil {
		return nil // not of that shape, so with none of the numbers
	}
	return r.cuts
}

// A numberReader looks for numbers to cut.
type numberReader struct {
	d     *jsontext.Decoder
	start int // where in the answer the decoder began
	cuts  []piece
}

// value reads any value.
func (r *numberReader) value() error {
	switch r.d.PeekKind() {
	case '{':
		return r.object()
	case '[':
		return r.elements(r.value)
	default:
		return r.d.SkipValue()
	}
}

// elements calls f for each element of a list. f has to read it.
func (r *numberReader) elements(f func() error) error {
	if t, err := r.d.ReadToken(); err != nil || t.Kind() != '[' {
		return errShape
	}
	for r.d.PeekKind() != ']' {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := r.d.ReadToken()
	return err
}

// object reads an object, which may be a hit.
func (r *numberReader) object() error {
	before := 0 // the end of the member before
	return eachMember(r.d, func(name string) error {
		err := r.member(name, before)
		before = r.place()
		return err
	})
}

// member reads the value of a member; before is where that before it ends, 0
// where it is the first.
func (r *numberReader) member(name string, before int) error {
	var none string
	switch name {
	case "_seq_no":
		none = "-2"
	case "_primary_term":
		none = "0"
	case "_source", "fields", "highlight": // the client's own
		return r.d.SkipValue()
	default:
		return r.value()
	}
	value, err := r.d.ReadValue()
	if before > 0 && string(value) == none {
		r.cuts = append(r.cuts, piece{before, r.place()})
	}
	return err
}

// place returns the place in the answer up to which it was read.
func (r *numberReader) place() int { return r.start + int(r.d.InputOffset()) }
