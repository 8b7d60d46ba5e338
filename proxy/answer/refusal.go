// Package answer reads the cluster's answers to rewritten searches: bytes go
// in, a verdict or a new page of hits comes out. It has no I/O and no state.
//
// visible.go makes sure before a search is sent that its answer will show
// failures. A failure is an error object (refusal.go), or failed shards of one
// search or several (shards.go). page.go reorders hits.
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

// Limits of what is kept of a refusal.
const (
	maxCauses      = 64 // a hundred shards say the same
	maxCauseDepth  = 16
	maxReasonBytes = 512 // the longest useful sentence has 250
)

// ErrShape says that JSON has an unexpected shape.
var ErrShape = errors.New("unexpected JSON")

// UnknownSearch is the number of a search that is not known.
const UnknownSearch = -1

// A Failure is the cluster's objection to a rewritten search.
type Failure struct {
	// Status is that of the answer, 0 for a good one.
	Status int
	Causes []expand.Cause
	// Busy says that the cluster's state is the reason, not the search.
	Busy bool
	// Whole says that a whole search was refused, not only some of its shards.
	Whole bool
	// Search is the number of the search, or [UnknownSearch].
	Search int
}

// busyTypes are the errors of overloaded shards.
var busyTypes = []string{"rejected_execution_exception", "es_rejected_execution_exception", "circuit_breaking_exception"}

// IsBusy reports whether the cluster is overloaded or unhealthy.
func IsBusy(status int, causes []expand.Cause) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return slices.ContainsFunc(causes, func(c expand.Cause) bool { return slices.Contains(busyTypes, c.Type) })
}

// blocked is the error of an index or cluster that its settings block.
const blocked = "cluster_block_exception"

// Blocks reports whether a 403 says that the index or the cluster is blocked.
// Then it says nothing about the client's rights.
func (f *Failure) Blocks() bool {
	return slices.ContainsFunc(f.Causes, func(c expand.Cause) bool { return c.Type == blocked })
}

// IsDenied reports whether the client may not search, or nobody may: see
// [Failure.Blocks].
func IsDenied(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// ReadRefusal reads a 4xx or 5xx answer, as far as it came. strict says that
// the cluster was asked to reject the search if single shards fail.
func ReadRefusal(answer io.Reader, status int, strict bool) *Failure {
	causes := causeReader{d: newDecoder(answer)}
	_ = jsonspan.EachMember(causes.d, func(name string) error { // read as far as it came
		if name == "error" {
			_, err := causes.read(0)
			return err
		}
		return causes.d.SkipValue()
	})
	// For the original the failure of single shards is not an error.
	partly := strict && slices.ContainsFunc(causes.all, func(c expand.Cause) bool { return c.Reason == "Partial shards failure" })
	return &Failure{
		Status: status, Causes: causes.all, Busy: !partly && IsBusy(status, causes.all), Whole: !partly,
		Search: UnknownSearch,
	}
}

// unserved are failures of shards that no node serves (Elasticsearch 8), or
// that the client may not search: the original would fail there, too.
var unserved = []string{"no_shard_available_action_exception", "security_exception"}

// A causeReader collects errors. It reads only members of error objects,
// because other texts may come from a request.
type causeReader struct {
	d   *jsontext.Decoder
	all []expand.Cause
}

// read reads an error and its causes, and returns its type or "".
func (c *causeReader) read(depth int) (kind string, err error) {
	if c.d.PeekKind() != '{' || depth == maxCauseDepth || len(c.all) == maxCauses {
		return "", c.d.SkipValue()
	}
	at := len(c.all)
	c.all = append(c.all, expand.Cause{}) // before its causes, even if the answer breaks off
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

// shard reads the failure of one shard and returns its type.
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

// text returns the beginning of the next string.
func (c *causeReader) text() (string, error) {
	t, err := c.d.ReadToken()
	if err != nil {
		return "", err
	}
	text := t.String()
	return strings.Clone(text[:min(len(text), maxReasonBytes)]), nil
}

// newDecoder returns a decoder of an answer that need not be perfect JSON.
func newDecoder(answer io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(answer, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// listOrSkip calls f to read each element of a list, and skips other values.
func listOrSkip(d *jsontext.Decoder, f func() error) error {
	if d.PeekKind() != '[' {
		return d.SkipValue()
	}
	return jsonspan.EachElement(d, f)
}
