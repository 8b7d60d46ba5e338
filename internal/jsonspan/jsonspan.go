// Package jsonspan finds the places of values in JSON, so that some bytes can
// be replaced while all others stay as they are.
package jsonspan

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// A Span is the range [Start, End) of bytes in a text; zero for a missing part.
type Span struct{ Start, End int }

// Of returns the bytes of s in text.
func (s Span) Of(text []byte) []byte { return text[s.Start:s.End] }

// Len returns the number of bytes.
func (s Span) Len() int { return s.End - s.Start }

// IsZero reports whether the part is missing.
func (s Span) IsZero() bool { return s.End == 0 }

// Holds reports whether other lies in s.
func (s Span) Holds(other Span) bool { return s.Start <= other.Start && other.End <= s.End }

// ErrKind says that a value has another kind than expected, such as a list
// instead of an object.
var ErrKind = errors.New("a JSON value of another kind")

// A Reader reads a text once, front to back. [Reader.Reset] starts it.
type Reader struct {
	text   []byte
	buffer bytes.Buffer
	dec    jsontext.Decoder
	name   Span
}

// Reset starts reading text, which must not change meanwhile; nil frees the
// last text. The options are those of [jsontext.Decoder].
func (r *Reader) Reset(text []byte, options ...jsontext.Options) {
	r.text = text
	r.buffer = *bytes.NewBuffer(text) // the decoder reads it in place
	r.dec.Reset(&r.buffer, options...)
}

// Kind returns the kind of the next token.
func (r *Reader) Kind() jsontext.Kind { return r.dec.PeekKind() }

// Offset returns the end of what was last read.
func (r *Reader) Offset() int { return int(r.dec.InputOffset()) }

// Name returns the place of the last name, with its quotes.
func (r *Reader) Name() Span { return r.name }

// Skip skips the next value.
func (r *Reader) Skip() error { return r.dec.SkipValue() }

// Value reads the next value and returns its place.
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
	// Only white space, a comma and a colon can precede the value.
	start := before + bytes.IndexAny(r.text[before:r.Offset()], `{["tfn-0123456789`)
	return Span{start, r.Offset()}, nil
}

// Object reads an object and calls f with the unquoted name of each member. f
// must read exactly the value and not keep the name. It returns [ErrKind] if
// the next value is not an object.
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

// List reads a list and calls f with the number of each element, which f must
// read exactly. It returns [ErrKind] if the next value is not a list.
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

// End reports whether only white space is left.
func (r *Reader) End() bool {
	_, err := r.dec.ReadToken()
	return errors.Is(err, io.EOF)
}

// Unquote returns a JSON string unquoted, which may be a part of quoted.
func Unquote(quoted []byte) ([]byte, error) {
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, nil
	}
	return jsontext.AppendUnquote(nil, quoted)
}

// Members calls f with each member of an object, name unquoted. It returns
// [ErrKind] if text is not an object.
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

// Elements calls f with each element of a list, or returns [ErrKind].
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

// EachMember calls f to read the value of each member of d's next object.
func EachMember(d *jsontext.Decoder, f func(name string) error) error {
	return within(d, jsontext.KindBeginObject, jsontext.KindEndObject, func() error {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		return f(name.String())
	})
}

// EachElement calls f for each element of the next list of d. f reads it.
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

// An Edit replaces At with Text; an empty At inserts.
type Edit struct {
	At   Span
	Text string
}

// AppendEdited appends text[start:end] to dst, with the edits in that range
// applied. Edits are sorted and do not overlap.
func AppendEdited(dst, text []byte, start, end int, edits []Edit) []byte {
	for _, e := range edits {
		if (Span{start, end}).Holds(e.At) {
			dst = append(append(dst, text[start:e.At.Start]...), e.Text...)
			start = e.At.End
		}
	}
	return append(dst, text[start:end]...)
}
