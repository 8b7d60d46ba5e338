package answer

import (
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
)

// ReadSeveral returns what a good answer to a request with several searches, or
// to _validate, says of a rewritten search that failed, nil where none did.
// rewrote reports whether the k-th search is another than the client's; it is
// nil where filter_path removes items, so that the numbers are unknown.
func ReadSeveral(answer io.Reader, endpoint expand.Endpoint, rewrote func(k int) bool) (first *Failure, err error) {
	d := newDecoder(answer)
	err = jsonspan.EachMember(d, func(name string) (err error) {
		switch {
		case first != nil:
			return d.SkipValue()
		case endpoint == expand.EndpointMultiSearch && name == "responses":
			first, err = failedItem(d, rewrote)
		case endpoint == expand.EndpointRankEval && name == "failures" && d.PeekKind() == '{':
			first, err = rankFailures(d)
		case endpoint == expand.EndpointValidate && name == "valid" && d.PeekKind() == 'f':
			first = &Failure{Search: UnknownSearch}
			err = d.SkipValue()
		default:
			err = d.SkipValue()
		}
		return err
	})
	return first, err
}

// failedItem returns the first failure of a rewritten search in the list of
// answers that d is before, one of a busy cluster only where there is no other.
func failedItem(d *jsontext.Decoder, rewrote func(k int) bool) (first *Failure, err error) {
	k := -1
	err = jsonspan.EachElement(d, func() error {
		k++
		if first != nil && !first.Busy || rewrote != nil && !rewrote(k) {
			return jsonspan.EachMember(d, func(string) error { return d.SkipValue() })
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

// itemFailure returns the error of the search whose answer d is before, or the
// failures of its shards, nil for none, or if the client may not search.
func itemFailure(d *jsontext.Decoder) (shards *Failure, err error) {
	causes, failed, status := causeReader{d: d}, false, 0
	err = jsonspan.EachMember(d, func(name string) (err error) {
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
	return &Failure{
		Causes: causes.all, Busy: IsBusy(status, causes.all), Whole: true, Search: UnknownSearch,
	}, err
}

// rankFailures returns the errors in an object by names of searches, nil for
// none.
func rankFailures(d *jsontext.Decoder) (r *Failure, err error) {
	causes := causeReader{d: d}
	err = jsonspan.EachMember(d, func(string) error {
		r = &Failure{Search: UnknownSearch}
		if d.PeekKind() != '{' {
			return d.SkipValue()
		}
		return jsonspan.EachMember(d, func(name string) error {
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
