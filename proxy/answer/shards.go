package answer

import (
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/internal/jsonspan"
)

// errSeen ends the look at an answer: what comes behind does not count.
var errSeen = errors.New("seen")

// ReadSearch returns what the beginning of the answer to a search or a count,
// up to the end of "_shards", says of shards that failed, nil for none, and the
// name of the scroll that it opens, "" for none. For filter_path see
// [MakeVisible].
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
		case name == "phase_took": // the one object that comes before, of OpenSearch
			return d.SkipValue()
		case kind == '{' || kind == '[':
			return errSeen
		default:
			return d.SkipValue()
		}
	}
	// What breaks off behind a failure does not matter.
	if err = jsonspan.EachMember(d, member); errors.Is(err, errSeen) || refused != nil {
		err = nil
	}
	return refused, scroll, err
}

// shardFailures returns what the value of "_shards" that d is before says of
// shards that failed, unless they would fail for the original, too. With an
// error it is what stands before that.
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

// listedFailures returns how many failures are in the list that d is before,
// and what those say that count: they are of a busy cluster where all are.
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
