package answer

import (
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
)

// errSeen stops reading: the rest does not matter.
var errSeen = errors.New("seen")

// ReadSearch reads the answer to a search or a count up to the end of
// "_shards". It returns the failure of shards, or nil, and the name of the
// scroll that the answer opens, or "". For filter_path see [MakeVisible].
func ReadSearch(beginning io.Reader) (refused *Failure, scroll string, err error) {
	d := newDecoder(beginning)
	var member func(name string) error
	member = func(name string) error {
		kind := d.PeekKind()
		switch {
		case name == "_shards":
			var err error
			if refused, err = shardFailures(d); err != nil {
				return err
			}
			return errSeen
		case name == "_scroll_id" && kind == '"':
			t, err := d.ReadToken()
			if err == nil {
				scroll = t.String()
			}
			return err
		case name == "response" && kind == '{': // of an asynchronous search
			return jsonspan.EachMember(d, member)
		case name == "phase_took": // OpenSearch: the only object before "_shards"
			return d.SkipValue()
		case kind == '{' || kind == '[':
			return errSeen
		default:
			return d.SkipValue()
		}
	}
	// If the answer breaks off behind a failure, that does not matter.
	if err = jsonspan.EachMember(d, member); errors.Is(err, errSeen) || refused != nil {
		err = nil
	}
	return refused, scroll, err
}

// shardFailures returns the failure in the value of "_shards" at d, unless the
// original would fail, too. After an error it returns what it has read.
func shardFailures(d *jsontext.Decoder) (refused *Failure, err error) {
	counted, listed := false, 0
	err = jsonspan.EachMember(d, func(name string) error {
		kind := d.PeekKind()
		switch {
		case name == "failed" && kind == '0':
			number, err := d.ReadToken()
			counted = err == nil && number.String() != "0"
			return err
		case name == "failures" && kind == '[':
			var err error
			listed, refused, err = listedFailures(d)
			return err
		default:
			return d.SkipValue()
		}
	})
	if counted && listed == 0 {
		refused = &Failure{Search: UnknownSearch}
	}
	return refused, err
}

// listedFailures returns the number of failures in the list at d, and those
// that count; they are of a busy cluster if all are.
func listedFailures(d *jsontext.Decoder) (listed int, refused *Failure, err error) {
	causes := causeReader{d: d}
	err = jsonspan.EachElement(d, func() error {
		listed++
		before := len(causes.all)
		kind, err := causes.shard(0)
		if slices.Contains(unserved, kind) {
			causes.all = causes.all[:before]
			return err
		}
		if refused == nil {
			refused = &Failure{Busy: true, Search: UnknownSearch}
		}
		refused.Busy = refused.Busy && slices.Contains(busyTypes, kind)
		return err // what broke off has failed, too
	})
	if refused != nil {
		refused.Causes = causes.all
	}
	return listed, refused, err
}

// ReadSeveral returns the first failure of a rewritten search in a good answer
// to several searches or to _validate, or nil. rewrote reports whether the k-th
// search differs from the client's; it is nil if filter_path removes items, so
// that their numbers are unknown.
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
// answers at d; one of a busy cluster only if there is no other.
func failedItem(d *jsontext.Decoder, rewrote func(k int) bool) (first *Failure, err error) {
	k := -1
	err = jsonspan.EachElement(d, func() error {
		k++
		if first != nil && !first.Busy || rewrote != nil && !rewrote(k) {
			return jsonspan.EachMember(d, func(string) error { return d.SkipValue() })
		}
		r, err := itemFailure(d)
		if r != nil && (first == nil || !r.Busy) {
			first = r
			if rewrote != nil {
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

// itemFailure returns the error of one search, whose answer is at d, or of its
// shards. It returns nil for none, or if the client may not search.
func itemFailure(d *jsontext.Decoder) (shards *Failure, err error) {
	causes := causeReader{d: d}
	failed := false
	status := 0
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

// rankFailures returns the errors in an object keyed by search, or nil.
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
