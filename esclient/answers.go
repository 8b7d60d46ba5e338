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

// Lenient returns the options for reading answers: documents may contain half a
// surrogate pair or a duplicate name, and come back as they are.
func Lenient() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// Decode decodes JSON of an answer.
func Decode(b []byte, out any) error { return json.Unmarshal(b, out, Lenient()) }

// indexNotFound is the type of the error about an index that is not there.
const indexNotFound = "index_not_found_exception"

// An Error is the cluster's refusal of a call.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Type and Reason are the root cause, both empty if the answer does not come
	// from the cluster itself. Reason is cut to 300 bytes and may quote the call.
	Type, Reason string
	// RetryAfter is how long the answer asks to wait (RFC 9110, 10.2.3), or 0.
	RetryAfter time.Duration
}

// retryAfter reads the header: seconds or a date.
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

// ParseError returns the error in the body of an answer.
func ParseError(status int, body []byte) *Error {
	type cause struct {
		Type    string `json:"type"`
		Reason  string `json:"reason"`
		Message string `json:"message"` // other servers' name for a reason
	}
	var answer struct {
		Error   jsontext.Value `json:"error"`
		Message string         `json:"message,case:ignore"` // of Amazon, in front of the cluster: IAM writes Message
	}
	var tree struct {
		cause
		RootCause []cause `json:"root_cause"`
	}
	e := &Error{Status: status}
	if Decode(body, &answer) != nil {
		return e
	}
	if len(answer.Error) == 0 {
		e.Reason = shorten(answer.Message)
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

// shorten cuts a reason as [Error] promises.
func shorten(reason string) string {
	const maxReason = 300
	if len(reason) <= maxReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:maxReason], "") + "…"
}

// An ItemError is the cluster's error for one of several documents.
type ItemError struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// AsError returns it as the error of a call.
func (e *ItemError) AsError(status int) *Error {
	return &Error{Status: status, Type: e.Type, Reason: shorten(e.Reason)}
}

// IsUnknown reports whether the cluster refused akin's own call because an
// index is missing, closed or blocked, or an analyzer is missing, or would
// refuse it for an option of the indices.
func IsUnknown(err error) bool {
	if errors.Is(err, errOption) {
		return true
	}
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

// refused reports whether the cluster refused a call for a reason other than
// overload or missing credentials: another kind of call may work.
func refused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && !slices.Contains([]int{
		http.StatusUnauthorized, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, e.Status)
}

// IsUnavailable reports whether the cluster, or a server in front of it, lacks
// or forbids a kind of call: another kind may work.
func IsUnavailable(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest: // "no handler found for uri" has no type
		return e.Type == ""
	case http.StatusNotFound:
		return e.Type != indexNotFound && e.Type != "search_context_missing_exception"
	case http.StatusForbidden:
		return !isBlocked(e)
	default: // 410 is Elastic's for what its serverless projects lack
		return slices.Contains([]int{http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented}, e.Status)
	}
}

// lacksCounts reports whether the cluster forbids to count terms at all, not
// only akin's user.
func lacksCounts(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Type != "security_exception" && IsUnavailable(err)
}

// isNo reports whether the cluster refuses a call for its content, not for the
// state of the cluster or an index.
func isNo(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusForbidden && !isBlocked(e))
}

// isBlocked reports whether a setting of the index or the cluster blocks a
// call.
func isBlocked(e *Error) bool { return e.Type == "cluster_block_exception" }

// tooManyTokens reports whether the cluster refused _analyze for the number of
// tokens: with 500 in Elasticsearch 7 and OpenSearch, 400 in Elasticsearch 8.
func tooManyTokens(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && strings.Contains(e.Reason, "index.analyze.max_token_count")
}
