// Package answers reads what the cluster answers: bytes in, values out. Large
// answers are read token by token, so that none is kept as a whole.
package answers

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

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

// EachMember calls fn for each member of the object that d comes to, d standing
// before the member's value, which fn reads.
func EachMember(d *jsontext.Decoder, fn func(name string) error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return cmp.Or(err, errors.New("want an object"))
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := fn(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// EachElement calls fn for each element of the array that d comes to, d standing
// before the element, which fn reads.
func EachElement(d *jsontext.Decoder, fn func() error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != jsontext.KindBeginArray {
		return cmp.Or(err, errors.New("want an array"))
	}
	for d.PeekKind() != jsontext.KindEndArray {
		if err := fn(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// An Error is the cluster's answer to a call that it refused.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Type and Reason are the root cause as the cluster gives it, Reason cut to
	// 300 bytes, both empty where the answer is none of the cluster's own.
	// Reason may quote what the call was about.
	Type, Reason string
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
		Type   string `json:"type"`
		Reason string `json:"reason"`
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
		e.Type, e.Reason = first.Type, first.Reason
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
