package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// maxLooked is how much of the answer to a search is looked at for shards that
// failed. Identifiers of several kilobytes may come before they are told of.
const maxLooked = 64 << 10

// unserved is the type of the failure of a shard that no node serves, as
// Elasticsearch 8 tells of it. To the original it would fail, too.
const unserved = "no_shard_available_action_exception"

// errSeen ends the look at an answer: what comes behind does not count.
var errSeen = errors.New("seen")

// partial returns what the answer to a search or a count says of shards that
// failed while others did not, at most maxRefusal bytes, nil where it says
// nothing. It reads no more of the answer than it needs, and puts that back;
// the rest streams. Where filter_path takes "_shards" away nothing can be seen,
// and the answer passes: searches of that kind are refused where a shard fails,
// see [exchange.askForFailures]. An error says that the answer could not be
// looked at.
func (t *searchTransport) partial(res *http.Response) ([]byte, error) {
	encoding, known := contentEncoding(res.Header["Content-Encoding"])
	if !known || !isJSON(res.Header["Content-Type"]) {
		return nil, errUnchecked
	}
	read := new(bytes.Buffer)
	answer := io.LimitReader(io.TeeReader(res.Body, read), maxLooked)
	defer func() { res.Body = resumed{io.MultiReader(read, res.Body), res.Body} }()
	if encoding == "gzip" {
		gz := t.server.gzipReader()
		defer t.server.gunzip.Put(gz)
		if err := gz.Reset(answer); err != nil {
			return nil, err
		}
		answer = io.LimitReader(gz, maxLooked)
	}
	said, err := searchFailures(newDecoder(answer))
	if said != nil {
		return said, nil // what broke off behind it does not matter
	}
	return nil, err
}

// searchFailures returns what the beginning of the answer to a search that d is
// before says of shards that failed, nil where it says nothing. It reads to the
// end of "_shards" or to where that does not come any more.
func searchFailures(d *jsontext.Decoder) (said []byte, err error) {
	var member func(name string) error
	member = func(name string) error {
		kind := d.PeekKind()
		switch {
		case name == "_shards":
			var err error
			if said, err = shardFailures(d); err != nil {
				return err
			}
			return errSeen
		case name == "response" && kind == '{': // of an asynchronous search
			return eachMember(d, member)
		case name == "phase_took": // the one object that comes before, of OpenSearch
			return d.SkipValue()
		case kind == '{' || kind == '[':
			return errSeen
		default:
			return d.SkipValue()
		}
	}
	if err = eachMember(d, member); errors.Is(err, errSeen) {
		err = nil
	}
	return said, err
}

// shardFailures returns what the value of "_shards" that d is before says of
// shards that failed, at most maxRefusal bytes, nil where none failed or those
// alone that no node serves. With an error it is what stands before that.
func shardFailures(d *jsontext.Decoder) (said []byte, err error) {
	counted, listed := false, 0
	err = eachMember(d, func(name string) error {
		kind := d.PeekKind()
		switch {
		case name == "failed" && kind == '0':
			number, err := d.ReadToken()
			counted = err == nil && number.String() != "0"
			return err
		case name == "failures" && kind == '[':
			var err error
			listed, said, err = listedFailures(d)
			return err
		default:
			return d.SkipValue()
		}
	})
	if counted && listed == 0 {
		said = []byte{}
	}
	return said, err
}

// listedFailures returns how many failures are in the list that d is before,
// and the text of those that count.
func listedFailures(d *jsontext.Decoder) (listed int, said []byte, err error) {
	if _, err := d.ReadToken(); err != nil {
		return 0, nil, err
	}
	for ; d.PeekKind() != ']'; listed++ {
		value, err := d.ReadValue()
		if err != nil {
			return listed, said, err
		}
		var failure struct {
			Reason struct {
				Type string `json:"type"`
			} `json:"reason"`
		}
		if json.Unmarshal(value, &failure) == nil && failure.Reason.Type == unserved {
			continue
		}
		said = append(said, value[:min(len(value), maxRefusal-len(said))]...)
	}
	_, err = d.ReadToken()
	return listed, said, err
}
