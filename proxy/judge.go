package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/proxy/answer"
)

// maxLooked is how much of a streamed answer is read for failed shards and its
// total: identifiers of several kilobytes may come before them.
const maxLooked = 64 << 10

// errUnchecked says that an answer cannot be checked.
var errUnchecked = errors.New("no JSON, or in a coding that is not known")

// A judge checks answers.
type judge struct {
	memory *limits.Budget
	gunzip *limits.Gunzip
}

// A sentSearch describes the search that an answer belongs to.
type sentSearch struct {
	client   *limits.Recipient
	endpoint expand.Endpoint
	strict   bool             // the cluster rejects the search if a shard fails
	rewrote  func(k int) bool // whether the k-th of several searches was rewritten; nil if the answer does not tell them apart
}

// A judgment is what an answer says of the search.
type judgment struct {
	refused *answer.Failure // what the cluster rejects; nil for nothing
	scroll  string          // that the answer opened, "" for none
	err     error           // the answer cannot be checked
}

// verdict checks an answer. It reads it, or its beginning, and puts that back.
func (j *judge) verdict(to *sentSearch, res *http.Response) (v judgment) {
	coding, known := answer.ContentEncoding(res.Header)
	readable := known && answer.IsJSON(res.Header["Content-Type"])
	switch {
	case answer.IsDenied(res.StatusCode):
		return judgment{refused: &answer.Failure{Status: res.StatusCode}}
	case res.StatusCode >= http.StatusBadRequest:
		return judgment{refused: j.readRefusal(to, res)}
	case to.strict, to.endpoint == expand.EndpointExplain:
		return judgment{}
	case !readable:
		return judgment{err: errUnchecked}
	case !answer.TellsInside(to.endpoint): // failed shards come first
		v.err = j.peek(to.client, res, func(r io.Reader) (err error) {
			v.refused, v.scroll, err = answer.ReadSearch(r)
			return err
		})
		return v
	}
	whole, err := to.client.Whole(j.memory, res)
	if err != nil {
		return judgment{err: err}
	}
	read := func(r io.Reader) (err error) {
		v.refused, err = answer.ReadSeveral(r, to.endpoint, to.rewrote)
		return err
	}
	switch {
	case coding != "":
		v.err = j.gunzip.With(bytes.NewReader(whole), func(r io.Reader) error { return read(io.LimitReader(r, limits.MaxAnswer)) })
	case to.endpoint == expand.EndpointMultiSearch && !bytes.Contains(whole, []byte(`"error"`)) && !bytes.Contains(whole, []byte(`"failures"`)):
		// The usual case: no need to parse.
	default:
		v.err = read(bytes.NewReader(whole))
	}
	return v
}

// few returns the searches of a request that find fewer hits than x.enough, and
// the outcome of each, values of the label "result". found has how many hits
// each has, -1 if the answer does not tell. It reads the answer, or its
// beginning, and puts it back.
func (j *judge) few(x *search, res *http.Response) (few []int, found []int64, results []string) {
	totals, err := j.totals(x, res)
	for k, enough := range x.enough {
		hits, result := int64(-1), fewUnread
		if enough.Hits == 0 && x.report.Result != nil { // its total decides nothing
			found = append(found, hits)
			continue
		}
		switch {
		case res.StatusCode != http.StatusOK:
			result = fewFailed
		case err != nil || len(totals) != len(x.enough):
		case totals[k].Failed:
			result = fewFailed
		default:
			hits, result = foundBy(&totals[k], enough)
			if result == fewUnread && x.report.Result == nil { // it is not expanded yet
				result = fewExpanded
			}
		}
		if result == fewExpanded {
			few = append(few, k)
		}
		found, results = append(found, hits), append(results, result)
	}
	return few, found, results
}

// totals reads the totals in an answer, or its beginning, and puts it back.
func (j *judge) totals(x *search, res *http.Response) (totals []answer.Total, err error) {
	read := func(r io.Reader) (err error) {
		totals, err = answer.ReadTotals(r, x.endpoint)
		return err
	}
	err = errUnchecked
	switch {
	case !answer.IsJSON(res.Header["Content-Type"]):
	case x.endpoint != expand.EndpointMultiSearch:
		err = j.peek(&x.client, res, read)
	case len(res.Header["Content-Encoding"]) == 0: // encoding was not asked for
		var whole []byte
		if whole, err = x.client.Whole(j.memory, res); err == nil {
			err = read(bytes.NewReader(whole))
		}
	}
	return totals, err
}

// partial reports whether an answer says that a search, which did not fail,
// timed out or lacks a shard. It reads the answer as totals does.
func (j *judge) partial(x *search, res *http.Response) bool {
	totals, _ := j.totals(x, res) // what cannot be read says nothing
	return slices.ContainsFunc(totals, func(t answer.Total) bool { return t.Failed })
}

// foundBy returns how many hits a search has, at least, and whether that is
// enough.
func foundBy(t *answer.Total, enough expand.Enough) (hits int64, result string) {
	hits = t.Hits
	exact := hits >= 0 && !t.AtLeast
	if !exact && t.Page >= 0 && t.Page < enough.Page { // all hits are on the page
		hits, exact = int64(t.Page), true
	}
	switch {
	case enough.Hits == expand.AtOnce:
		return hits, fewExpanded
	case enough.Hits == 0, hits >= int64(enough.Hits):
		return hits, fewEnough
	case !exact:
		return hits, fewUnread
	}
	return hits, fewExpanded
}

// readRefusal reads what a 4xx or 5xx answer says, and puts it back.
func (j *judge) readRefusal(to *sentSearch, res *http.Response) (refused *answer.Failure) {
	if j.peek(to.client, res, func(r io.Reader) error {
		refused = answer.ReadRefusal(r, res.StatusCode, to.strict)
		return nil
	}) != nil {
		refused = &answer.Failure{Status: res.StatusCode, Busy: answer.IsBusy(res.StatusCode, nil), Whole: true, Search: answer.UnknownSearch}
	}
	return refused
}

// denies reports whether an answer denies the client the search. A 403 for a
// blocked index (index.blocks.read) does not. YAML, CBOR and SMILE have error
// types in plain text, too.
func (j *judge) denies(to *sentSearch, res *http.Response) bool {
	switch {
	case res.StatusCode != http.StatusForbidden:
		return answer.IsDenied(res.StatusCode)
	case answer.IsJSON(res.Header["Content-Type"]):
		return !j.readRefusal(to, res).Blocks()
	}
	var text []byte
	err := j.peek(to.client, res, func(r io.Reader) (err error) {
		text, err = io.ReadAll(r)
		return err
	})
	return err != nil || !bytes.Contains(text, []byte("cluster_block_exception"))
}

// showsSecurity reports whether the answer to a request that is not a search
// shows that the cluster has security: a 401, or a 403 that is not for a block.
// It reads the first piece of a 403 and puts it back; without a body it may be
// a block.
func (j *judge) showsSecurity(res *http.Response) bool {
	if res.StatusCode != http.StatusForbidden {
		return res.StatusCode == http.StatusUnauthorized
	}
	first := make([]byte, 4<<10)
	n, _ := res.Body.Read(first) // the next read returns the error again
	text := first[:n]
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), res.Body), res.Body}
	if coding, _ := answer.ContentEncoding(res.Header); coding != "" {
		_ = j.gunzip.With(bytes.NewReader(text), func(r io.Reader) error { // only the beginning may be here
			text, _ = io.ReadAll(io.LimitReader(r, maxLooked))
			return nil
		})
	}
	return len(text) > 0 && !bytes.Contains(text, []byte("cluster_block_exception"))
}

// peek calls read with the beginning of an answer, at most maxLooked bytes and
// as many decompressed, and puts all of it back.
func (j *judge) peek(client *limits.Recipient, res *http.Response, read func(io.Reader) error) error {
	coding, known := answer.ContentEncoding(res.Header)
	if !known {
		return errUnchecked
	}
	return client.Peek(j.memory, res, maxLooked, func(r io.Reader) error {
		if coding == "" {
			return read(r)
		}
		return j.gunzip.With(r, func(r io.Reader) error { return read(io.LimitReader(r, maxLooked)) })
	})
}
