// Package jsonspan reads JSON and reports where its parts are, so that some
// bytes can be replaced and all others stay as they were.
package jsonspan

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// A Span is the range [Start, End) of bytes of a text. The zero Span stands for
// a missing part.
type Span struct{ Start, End int }

// Of returns the bytes of text that s is the place of.
func (s Span) Of(text []byte) []byte { return text[s.Start:s.End] }

// Len returns the number of bytes.
func (s Span) Len() int { return s.End - s.Start }

// IsZero reports whether the part is missing.
func (s Span) IsZero() bool { return s.End == 0 }

// Holds reports whether other lies in s.
func (s Span) Holds(other Span) bool { return s.Start <= other.Start && other.End <= s.End }

// ErrKind says that a value is of another kind than expected, such as a list in
// place of an object.
var ErrKind = errors.New("a JSON value of another kind")

// A Reader reads a text once from front to back. The zero Reader is ready for
// [Reader.Reset].
type Reader struct {
	text   []byte
	buffer bytes.Buffer
	dec    jsontext.Decoder
	name   Span
}

// Reset has r read text, which must not change meanwhile; nil frees the last
// one. The options are those of [jsontext.Decoder].
func (r *Reader) Reset(text []byte, options ...jsontext.Options) {
	r.text = text
	r.buffer = *bytes.NewBuffer(text) // the decoder reads it in place
	r.dec.Reset(&r.buffer, options...)
}

// Kind returns the kind of the next token.
func (r *Reader) Kind() jsontext.Kind { return r.dec.PeekKind() }

// Offset returns the end of what was read last.
func (r *Reader) Offset() int { return int(r.dec.InputOffset()) }

// Name returns the place of the name that was read last, with its quotes.
func (r *Reader) Name() Span { return r.name }

// Skip skips the next value.
func (r *Reader) Skip() error { return r.dec.SkipValue() }

// Value reads the next value whole and returns its place.
func (r *Reader) Value() (Span, error) {
	v, err := r.dec.ReadValue()
	if err != nil {
		return Span{}, err
	}
	end := r.Offset()
	return Span{end - len(v), end}, nil
}

// Place returns the place of the value that f reads.
func (r *Reader) Place(f func() error) (Span, error) {
	r.dec.PeekKind()
	before := r.Offset()
	if err := f(); err != nil {
		return Span{}, err
	}
	// White space, a comma and a colon are all that can stand before the value.
	start := before + bytes.IndexAny(r.text[before:r.Offset()], `{["tfn-0123456789`)
	return Span{start, r.Offset()}, nil
}

// Object reads an object and calls f for each member, with the name without
// quotes and escapes. f has to read exactly the value, and must not keep the
// name. The error is [ErrKind] where the next value is no object.
func (r *Reader) Object(f func(name []byte) error) error {
	if r.dec.PeekKind() != '{' {
		return ErrKind
	}
	return within(&r.dec, '{', '}', func() (err error) {
		if r.name, err = r.Value(); err != nil {
			return err
		}
		name, err := Unquote(r.name.Of(r.text))
		if err != nil {
			return err
		}
		return f(name)
	})
}

// List reads a list and calls f for each element, with its number. f has to
// read exactly the element. The error is [ErrKind] where the next value is no
// list.
func (r *Reader) List(f func(i int) error) error {
	if r.dec.PeekKind() != '[' {
		return ErrKind
	}
	i := -1
	return within(&r.dec, '[', ']', func() error {
		i++
		return f(i)
	})
}

// End reports whether nothing but white space is left.
func (r *Reader) End() bool {
	_, err := r.dec.ReadToken()
	return errors.Is(err, io.EOF)
}

// Unquote returns a JSON string without its quotes and escapes. It may be a
// part of quoted.
func Unquote(quoted []byte) ([]byte, error) {
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, nil
	}
	return jsontext.AppendUnquote(nil, quoted)
}

// Members calls f for each member of an object, with the name without quotes
// and escapes. The error is [ErrKind] where text is no object.
func Members(text []byte, f func(name, value []byte) error) error {
	var r Reader
	r.Reset(text)
	return r.Object(func(name []byte) error {
		at, err := r.Value()
		if err != nil {
			return err
		}
		return f(name, at.Of(text))
	})
}

// Elements calls f for each element of a list. The error is [ErrKind] where
// text is no list.
func Elements(text []byte, f func(value []byte) error) error {
	var r Reader
	r.Reset(text)
	return r.List(func(int) error {
		at, err := r.Value()
		if err != nil {
			return err
		}
		return f(at.Of(text))
	})
}

// EachMember calls f, which reads the value, for each member of the object that
// d comes to.
func EachMember(d *jsontext.Decoder, f func(name string) error) error {
	return within(d, jsontext.KindBeginObject, jsontext.KindEndObject, func() error {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		return f(name.String())
	})
}

// EachElement calls f, which reads it, for each element of the list that d
// comes to.
func EachElement(d *jsontext.Decoder, f func() error) error {
	return within(d, jsontext.KindBeginArray, jsontext.KindEndArray, f)
}

func within(d *jsontext.Decoder, begin, end jsontext.Kind, f func() error) error {
	if t, err := d.ReadToken(); err != nil || t.Kind() != begin {
		return cmp.Or(err, ErrKind)
	}
	for d.PeekKind() != end {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// An Edit replaces At, which is empty for an insertion, with Text.
type Edit struct {
	At   Span
	Text string
}

// AppendEdited appends the bytes of text from start to end to dst, with the
// edits in that range applied. The edits are in order and do not overlap.
func AppendEdited(dst, text []byte, start, end int, edits []Edit) []byte {
	for _, e := range edits {
		if (Span{start, end}).Holds(e.At) {
			dst = append(append(dst, text[start:e.At.Start]...), e.Text...)
			start = e.At.End
		}
	}
	return append(dst, text[start:end]...)
}
