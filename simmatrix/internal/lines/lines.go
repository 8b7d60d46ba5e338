// Package lines reads text files line by line, plain or gzip-compressed.
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

// ByteOrderMark is written at the beginning of files by some editors.
const ByteOrderMark = "\ufeff"

// MaxBytes is the largest line.
const MaxBytes = 1 << 20

// PeekSize is how far a reader of [Decompress] can look ahead.
const PeekSize = 1 << 16

// Decompress returns r buffered, and decompressed if it begins like gzip (RFC
// 1952, section 2.3.1). It returns an error for UTF-16.
func Decompress(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, PeekSize)
	magic, _ := b.Peek(2) // a read error comes with the first line
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

// An Error is an error in a line.
type Error struct {
	Line int
	Err  error
}

// Error names the line.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// ErrStop stops reading lines, without an error.
var ErrStop = errors.New("no more lines are wanted")

// Each is [EachOf] for a text that may be gzip-compressed.
func Each(r io.Reader, fn func(line []byte, number int) error) (int, error) {
	in, err := Decompress(r)
	if err != nil {
		return 0, err
	}
	return EachOf(in, fn)
}

// EachOf calls fn for each line of r and returns their number. Lines come
// without their end, LF or CRLF, and without a byte order mark before the
// first. A line is valid during the call. Errors name the line, as for a line
// longer than [MaxBytes] or an error of fn that is not an [*Error].
func EachOf(r io.Reader, fn func(line []byte, number int) error) (number int, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, PeekSize), MaxBytes)
	for s.Scan() {
		line := s.Bytes()
		if number++; number == 1 {
			line = bytes.TrimPrefix(line, []byte(ByteOrderMark))
		}
		if err := fn(line, number); err != nil {
			if errors.Is(err, ErrStop) {
				return number, nil
			}
			if _, placed := errors.AsType[*Error](err); !placed {
				err = &Error{number, err}
			}
			return number, err
		}
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return number, fmt.Errorf("line %d: longer than %d bytes", number+1, MaxBytes)
	case err != nil:
		return number, fmt.Errorf("after line %d: %w", number, err)
	}
	return number, nil
}

// ParseDecimal parses a finite decimal number, such as "-1", ".5" or "2.5E-3".
// It refuses hexadecimal, underscores, infinity and NaN.
func ParseDecimal(s string, bits int) (float64, bool) {
	if strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, bits)
	return x, err == nil
}
