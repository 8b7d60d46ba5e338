// Package lines reads text files line by line, plain or compressed by gzip.
package lines

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// ByteOrderMark begins a file that some editors write.
const ByteOrderMark = "\ufeff"

// MaxBytes bounds a line of a text file.
const MaxBytes = 1 << 20

// PeekSize is how far a reader of [Decompress] can look ahead.
const PeekSize = 1 << 16

// Decompress returns r buffered, and decompressed if it starts as gzip does
// (RFC 1952, section 2.3.1). It returns an error for a text in UTF-16.
func Decompress(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, PeekSize)
	magic, _ := b.Peek(2) // the first line returns a read error
	if string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("line 1: gzip: %w", err)
		}
		b = bufio.NewReaderSize(z, PeekSize)
		magic, _ = b.Peek(2)
	}
	if simmatrix.LooksUTF16(string(magic)) {
		return nil, errors.New("line 1: the file looks like UTF-16: store it as UTF-8")
	}
	return b, nil
}

// A Reader reads lines without their ends, LF or CRLF, and without a byte
// order mark before the first.
type Reader struct {
	scanner *bufio.Scanner
	Number  int // of the line that next has read, from 1
}

// NewReader reads the lines of r, none of them over [MaxBytes].
func NewReader(r io.Reader) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, PeekSize), MaxBytes)
	return &Reader{scanner: s}
}

// Next returns the next line, which is valid until the next call, and false
// at the end or at an error.
func (l *Reader) Next() ([]byte, bool) {
	if !l.scanner.Scan() {
		return nil, false
	}
	l.Number++
	if l.Number == 1 {
		return bytes.TrimPrefix(l.scanner.Bytes(), []byte(ByteOrderMark)), true
	}
	return l.scanner.Bytes(), true
}

// Err returns the error that has ended the lines, with its line, or nil.
func (l *Reader) Err() error {
	switch err := l.scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d: longer than %d bytes", l.Number+1, MaxBytes)
	case err != nil:
		return fmt.Errorf("after line %d: %w", l.Number, err)
	default:
		return nil
	}
}

// An Error is what is wrong in a line.
type Error struct {
	Line int
	Err  error
}

// Error names the line.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Each calls fn for each line of r, plain or compressed by gzip, and returns
// their number. Errors name the line: those of fn get their line unless they
// are an [*Error].
func Each(r io.Reader, fn func(line []byte, number int) error) (int, error) {
	in, err := Decompress(r)
	if err != nil {
		return 0, err
	}
	l := NewReader(in)
	for line, ok := l.Next(); ok; line, ok = l.Next() {
		if err := fn(line, l.Number); err != nil {
			if _, placed := errors.AsType[*Error](err); !placed {
				err = &Error{l.Number, err}
			}
			return l.Number, err
		}
	}
	return l.Number, l.Err()
}

// ParseDecimal returns the finite number that s writes in decimal digits, such
// as "-1", ".5" or "2.5E-3", rounded to 32 or 64 bits. Unlike
// [strconv.ParseFloat] it refuses hexadecimal, underscores, and words for
// infinity and NaN.
func ParseDecimal(s string, bits int) (float64, bool) {
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, bits)
	return x, err == nil
}
