package answer

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
)

// A partReader reads an answer, or a part of it, and notes what is to be cut.
type partReader struct {
	jsonspan.Reader

	text  []byte
	start int // where in the answer the text begins
	cuts  []jsonspan.Edit
}

func newPartReader(text []byte, start int) *partReader {
	r := &partReader{text: text, start: start}
	r.Reset(text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return r
}

// members reads an object. f reads the value of each member and reports whether
// to cut it, with the comma before it; the first one is never cut.
func (r *partReader) members(f func(name []byte) (cut bool, err error)) error {
	before := 0 // the end of the member before
	return r.Object(func(name []byte) error {
		cut, err := f(name)
		if cut && before > 0 {
			r.cuts = append(r.cuts, jsonspan.Edit{At: jsonspan.Span{Start: r.start + before, End: r.start + r.Offset()}})
		}
		before = r.Offset()
		return err
	})
}

// withoutNumbers returns the cuts of the sequence numbers in a value, inner
// hits or aggregations. When a search asks for those of its own hits, as a
// reranked one does, Elasticsearch 9 writes "_seq_no":-2,"_primary_term":0
// there.
func withoutNumbers(answer []byte, at jsonspan.Span, rerank *expand.Rerank) []jsonspan.Edit {
	value := at.Of(answer)
	if rerank.KeepSeqNo || !bytes.Contains(value, []byte(`"_seq_no"`)) {
		return nil
	}
	r := newPartReader(value, at.Start)
	if r.numbers() != nil {
		return nil // it was read before: it is JSON
	}
	return r.cuts
}

// numbers looks for the numbers in any value.
func (r *partReader) numbers() error {
	switch r.Kind() {
	case '[':
		return r.List(func(int) error { return r.numbers() })
	case '{': // perhaps a hit
		return r.members(func(name []byte) (cut bool, err error) {
			switch string(name) {
			case "_seq_no", "_primary_term":
				v, err := r.Value()
				none := map[string]string{"_seq_no": "-2", "_primary_term": "0"}[string(name)]
				return err == nil && string(v.Of(r.text)) == none, err
			case "_source", "fields", "highlight": // the client's own
				return false, r.Skip()
			}
			return false, r.numbers()
		})
	default:
		return r.Skip()
	}
}

// withoutVersions returns the cuts of the versions and the sequence numbers in
// the value of "suggest" that the client has not asked for: the options of a
// completion suggester are documents, and have them after "text".
func withoutVersions(answer []byte, at jsonspan.Span, rerank *expand.Rerank) []jsonspan.Edit {
	if rerank.KeepSeqNo && rerank.KeepVersion {
		return nil
	}
	r := newPartReader(at.Of(answer), at.Start)
	option := func(int) error {
		return r.members(func(name []byte) (cut bool, err error) {
			return isExtra(rerank, hitMembers[string(name)]), r.Skip()
		})
	}
	entry := func(int) error {
		return r.Object(func(name []byte) error {
			if string(name) == "options" {
				return r.List(option)
			}
			return r.Skip()
		})
	}
	if r.Object(func([]byte) error { return r.List(entry) }) != nil {
		return nil // not of that shape, so with none of them
	}
	return r.cuts
}
