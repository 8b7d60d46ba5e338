package esclient

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Lenient returns the options to read answers with: documents may hold half a
// surrogate pair, or a name twice, and come back as they are.
func Lenient() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// Decode decodes JSON of an answer.
func Decode(b []byte, out any) error { return json.Unmarshal(b, out, Lenient()) }

// An Error is the cluster's answer to a call that it refused.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Type and Reason are the root cause as the cluster gives it, both empty if
	// the answer does not come from the cluster itself. Reason is cut to 300 bytes, and may quote the
	// call.
	Type, Reason string
	// RetryAfter is how long the answer asks to wait (RFC 9110, 10.2.3), 0 where it
	// does not say.
	RetryAfter time.Duration
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("the cluster answered %d", e.Status)
	if e.Type != "" {
		s += ": " + e.Type
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// ParseError returns the error that an answer's body tells of.
func ParseError(status int, body []byte) *Error {
	type cause struct {
		Type    string `json:"type"`
		Reason  string `json:"reason"`
		Message string `json:"message"` // what others than clusters call a reason
	}
	var answer struct {
		Error jsontext.Value `json:"error"`
	}
	var tree struct {
		cause
		RootCause []cause `json:"root_cause"`
	}
	e := &Error{Status: status}
	if Decode(body, &answer) != nil {
		return e
	}
	// "no handler found for uri" comes as a plain string.
	if Decode(answer.Error, &e.Reason) != nil {
		if Decode(answer.Error, &tree) != nil {
			return e
		}
		first := tree.cause
		if len(tree.RootCause) > 0 {
			first = tree.RootCause[0]
		}
		e.Type, e.Reason = first.Type, cmp.Or(first.Reason, first.Message)
	}
	e.Reason = shorten(e.Reason)
	return e
}

// shorten cuts a reason to what [Error] promises.
func shorten(reason string) string {
	const maxReason = 300
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + "…"
}

// An ItemError is what the cluster says of one of several documents.
type ItemError struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// AsError returns it as the error of a call.
func (e *ItemError) AsError(status int) *Error {
	return &Error{Status: status, Type: e.Type, Reason: shorten(e.Reason)}
}

// IsUnknown reports whether the cluster refused a call of akin's own for an
// index that is missing, closed or blocked, or for an analyzer that it does not
// have.
func IsUnknown(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && !IsBarred(err) &&
		(refused.Status == http.StatusBadRequest || refused.Status == http.StatusNotFound ||
			refused.Status == http.StatusForbidden && isBlocked(refused))
}

// IsDenied reports whether the cluster refused a call for want of a right.
func IsDenied(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden && !isBlocked(refused))
}

// IsBarred reports whether the cluster refused a call for its setting
// search.allow_expensive_queries, which bars the queries that count terms of
// nested fields, too. All engines say it in the same words.
func IsBarred(err error) bool {
	const words = "queries cannot be executed when 'search.allow_expensive_queries' is set to false"
	var refused *Error
	return errors.As(err, &refused) && refused.Type == "exception" && strings.Contains(refused.Reason, words)
}

// refused reports whether the cluster answered a call, and not to say that it
// is overloaded: asking in another way may do.
func refused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && !slices.Contains([]int{
		http.StatusUnauthorized, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, e.Status)
}

// isNo reports whether the cluster refuses a call for what it asks, and not for
// the state that the cluster or an index is in.
func isNo(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusForbidden && !isBlocked(e))
}

// isBlocked reports whether a setting of the index, or of the cluster, blocks
// what a call does.
func isBlocked(e *Error) bool { return e.Type == "cluster_block_exception" }

// tooManyTokens reports whether the cluster refused an _analyze call for its
// tokens: with 500 in Elasticsearch 7 and OpenSearch, with 400 in Elasticsearch
// 8.
func tooManyTokens(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && strings.Contains(e.Reason, "index.analyze.max_token_count")
}
