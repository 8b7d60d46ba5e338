// Package answer reads what the cluster answers to rewritten searches: an
// answer's bytes go in, and a verdict, or another page of hits, comes out. It
// makes no calls and remembers nothing.
//
// Whether an answer will tell of failures at all is settled before it is asked
// for, in visible.go. A failure is reported by an error object (refusal.go), or
// by the shards of one search or of several (shards.go). page.go puts the hits
// in another order.
package answer

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/jsonspan"
)

// Bounds of what is kept of a refusal.
const (
	maxCauses      = 64 // a hundred shards say the same
	maxCauseDepth  = 16
	maxReasonBytes = 512 // the longest sentence that means something has 250
)

// ErrShape says that JSON is not what it has to be there.
var ErrShape = errors.New("unexpected JSON")

// UnknownSearch stands for the number of a search.
const UnknownSearch = -1

// A Failure is what the cluster says against a rewritten search.
type Failure struct {
	// Status is that of the answer, 0 where it is good.
	Status int
	Causes []expand.Cause
	// Busy says that the reason is the state of the cluster, and not the search.
	Busy bool
	// Whole says that a whole search was refused, and not only some of its shards.
	Whole bool
	// Search is the number of the search, [UnknownSearch] where it is not known.
	Search int
}

// busyTypes are those of errors of shards that have too much to do.
var busyTypes = []string{"rejected_execution_exception", "es_rejected_execution_exception", "circuit_breaking_exception"}

// IsBusy reports whether the cluster is overloaded or not well.
func IsBusy(status int, causes []expand.Cause) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return slices.ContainsFunc(causes, func(c expand.Cause) bool { return slices.Contains(busyTypes, c.Type) })
}

// blocked is the type of the error of an index, or a cluster, that is blocked
// by its settings.
const blocked = "cluster_block_exception"

// Blocks reports whether an answer with a status of 403 says that the index or
// the cluster is blocked. Then it tells nothing of the client's rights.
func (f *Failure) Blocks() bool {
	return slices.ContainsFunc(f.Causes, func(c expand.Cause) bool { return c.Type == blocked })
}

// IsDenied reports whether the client may not search, or nobody may: see
// [Failure.Blocks].
func IsDenied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// ReadRefusal reads what there is of an answer with a status of 4xx or 5xx.
// strict says that the cluster was asked for one where single shards fail.
func ReadRefusal(answer io.Reader, status int, strict bool) *Failure {
	causes := causeReader{d: newDecoder(answer)}
	_ = jsonspan.EachMember(causes.d, func(name string) error { // what there is of it
		if name == "error" {
			_, err := causes.read(0)
			return err
		}
		return causes.d.SkipValue()
	})
	// To the original the failure of single shards is no error.
	partly := strict && slices.ContainsFunc(causes.all, func(c expand.Cause) bool { return c.Reason == "Partial shards failure" })
	return &Failure{
		Status: status, Causes: causes.all, Busy: !partly && IsBusy(status, causes.all), Whole: !partly,
		Search: UnknownSearch,
	}
}

// unserved are failures of shards that no node serves (Elasticsearch 8), or
// that the client may not search: they would fail for the original, too.
var unserved = []string{"no_shard_available_action_exception", "security_exception"}

// A causeReader gathers errors. It looks only at the members of error objects:
// other texts may be those of a request.
type causeReader struct {
	d   *jsontext.Decoder
	all []expand.Cause
}

// read reads an error with all that caused it, and returns its type or "".
func (c *causeReader) read(depth int) (kind string, err error) {
	if c.d.PeekKind() != '{' || depth == maxCauseDepth || len(c.all) == maxCauses {
		return "", c.d.SkipValue()
	}
	at := len(c.all)
	c.all = append(c.all, expand.Cause{}) // it goes before what caused it, also where the answer breaks off
	err = jsonspan.EachMember(c.d, func(name string) error {
		var err error
		text := c.d.PeekKind() == '"'
		switch {
		case name == "type" && text:
			c.all[at].Type, err = c.text()
		case name == "reason" && text:
			c.all[at].Reason, err = c.text()
		case name == "caused_by":
			_, err = c.read(depth + 1)
		case name == "root_cause":
			err = listOrSkip(c.d, func() error { _, err := c.read(depth + 1); return err })
		case name == "failed_shards":
			err = listOrSkip(c.d, func() error { _, err := c.shard(depth + 1); return err })
		default:
			err = c.d.SkipValue()
		}
		return err
	})
	return c.all[at].Type, err
}

// shard reads what failed on one shard and returns the type of that.
func (c *causeReader) shard(depth int) (kind string, err error) {
	err = jsonspan.EachMember(c.d, func(name string) error {
		if name != "reason" {
			return c.d.SkipValue()
		}
		var err error
		kind, err = c.read(depth)
		return err
	})
	return kind, err
}

// text returns the beginning of the string that the decoder is before.
func (c *causeReader) text() (string, error) {
	t, err := c.d.ReadToken()
	if err != nil {
		return "", err
	}
	text := t.String()
	return strings.Clone(text[:min(len(text), maxReasonBytes)]), nil
}

// newDecoder returns a decoder of an answer, which need not be perfect JSON.
func newDecoder(answer io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(answer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// listOrSkip calls f, which reads it, for each element of a list, and passes
// over other values.
func listOrSkip(d *jsontext.Decoder, f func() error) error {
	if d.PeekKind() != '[' {
		return d.SkipValue()
	}
	return jsonspan.EachElement(d, f)
}
