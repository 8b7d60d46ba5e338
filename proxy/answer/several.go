package answer

import (
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
)

// ReadSeveral returns what the answer to a request of an endpoint whose status
// does not tell, and that is not one search, says of a rewritten search that
// failed, nil where it says nothing. rewrote reports whether the k-th search is
// another than the client's; it is nil where filter_path takes items away, so
// that those behind them no longer stand in their places. An error says that it
// is not the answer of the endpoint.
func ReadSeveral(answer io.Reader, endpoint expand.Endpoint, rewrote func(k int) bool) (first *Refusal, err error) {
	d := newDecoder(answer)
	err = object(d, func(name string) (err error) {
		switch {
		case first != nil:
			err = d.SkipValue()
		case endpoint == expand.EndpointMultiSearch && name == "responses":
			first, err = failedItem(d, rewrote)
		case endpoint == expand.EndpointRankEval && name == "failures" && d.PeekKind() == '{':
			first, err = rankFailures(d)
		case endpoint == expand.EndpointValidate && name == "valid" && d.PeekKind() == 'f':
			first = &Refusal{Search: UnknownSearch}
			err = d.SkipValue()
		default:
			err = d.SkipValue()
		}
		return err
	})
	return first, err
}

// failedItem returns the error of the first rewritten search in the list of
// answers that d is before, or the failures of its shards; one that the search
// is the reason of goes before those of a busy cluster.
func failedItem(d *jsontext.Decoder, rewrote func(k int) bool) (first *Refusal, err error) {
	k := -1
	err = list(d, func() error {
		k++
		if first != nil && !first.Busy || rewrote != nil && !rewrote(k) {
			return object(d, func(string) error { return d.SkipValue() })
		}
		r, err := itemFailure(d)
		if r != nil && (first == nil || !r.Busy) {
			if first = r; rewrote != nil {
				first.Search = k
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return first, nil
}

// itemFailure returns the error of the one search whose answer d is before, or
// the failures of its shards, nil where it has none, or the client may not make
// that search.
func itemFailure(d *jsontext.Decoder) (shards *Refusal, err error) {
	causes, failed, status := causeReader{d: d}, false, 0
	err = object(d, func(name string) (err error) {
		switch kind := d.PeekKind(); {
		case name == "error":
			failed = true
			_, err = causes.read(0)
		case name == "status" && kind == '0':
			var t jsontext.Token
			if t, err = d.ReadToken(); err == nil {
				status, _ = strconv.Atoi(t.String())
			}
		case name == "_shards" && kind == '{' && !failed && shards == nil:
			shards, err = shardFailures(d)
		default:
			err = d.SkipValue()
		}
		return err
	})
	switch {
	case !failed:
		return shards, err
	case IsDenied(status):
		return nil, err
	}
	return &Refusal{Causes: causes.all, Busy: IsBusy(status, causes.all), Search: UnknownSearch}, err
}

// rankFailures returns the errors in the object that d is before, by the names
// of the searches that are rated, nil where it is empty.
func rankFailures(d *jsontext.Decoder) (r *Refusal, err error) {
	causes := causeReader{d: d}
	err = object(d, func(string) error {
		r = &Refusal{Search: UnknownSearch}
		if d.PeekKind() != '{' {
			return d.SkipValue()
		}
		return object(d, func(name string) error {
			if name != "error" {
				return d.SkipValue()
			}
			_, err := causes.read(0)
			return err
		})
	})
	if r != nil {
		r.Causes, r.Busy = causes.all, IsBusy(0, causes.all)
	}
	return r, err
}
