package source

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix/internal/lines"
)

const (
	floatBytes  = 4
	detectBytes = 4096 // most that decide, after the first word, between text and binary
)

// looksBinary looks ahead and detects the format as [VectorsDetect] says. It
// returns an error where the first word does not end within its reach.
func looksBinary(in *bufio.Reader) (bool, error) {
	ahead, _ := in.Peek(lines.PeekSize) // the next read returns its error
	header, body, ok := bytes.Cut(ahead, []byte("\n"))
	if !ok {
		return false, nil
	}
	_, dim, ok := vectorsHeader(bytes.TrimSpace(header))
	if !ok || dim < 1 || dim > MaxVectorDims {
		return false, nil
	}
	if len(ahead) == lines.PeekSize && !bytes.ContainsAny(bytes.TrimLeft(body, "\n"), " \t\n") {
		return false, fmt.Errorf("word 1 at byte %d: neither a blank nor a line feed in the first %d bytes of the file", len(header)+1, lines.PeekSize)
	}
	_, numbers, ok := bytes.Cut(body, []byte(" "))
	return ok && !isText(numbers[:min(len(numbers), floatBytes*dim, detectBytes)]), nil
}

// isText reports whether b is UTF-8, up to a character that its end cuts,
// without control characters but tab and the ends of lines.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && size == 1:
			return !utf8.FullRune(b)
		case (r < ' ' && r != '\t' && r != '\n' && r != '\r') || r == 0x7f:
			return false
		}
		b = b[size:]
	}
	return true
}

type countingReader struct {
	*bufio.Reader
	offset int64
}

// until returns what comes before the next delimiter, within peekSize bytes.
func (c *countingReader) until(delimiter byte) ([]byte, error) {
	b, err := c.ReadSlice(delimiter)
	c.offset += int64(len(b))
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("no %q within %d bytes", delimiter, lines.PeekSize)
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	return b[:len(b)-1], nil
}

func (p *vectorsParser) readBinary(in *bufio.Reader) error {
	c := &countingReader{Reader: in}
	header, err := c.until('\n')
	if err != nil {
		return fmt.Errorf("line 1: header: %w", err)
	}
	words, dim, ok := vectorsHeader(bytes.TrimSpace(header))
	if !ok {
		return fmt.Errorf("line 1: header: %.40q is not the numbers of words and of dimensions", header)
	}
	if err := p.setHeader(words, dim); err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	for p.read < p.claimed && !p.full() {
		at, before := c.offset, p.read
		switch err := p.addBinary(c); {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("byte %d: the file ends after %d of %d words: %w", c.offset, before, p.claimed, err)
		case err != nil:
			return fmt.Errorf("word %d at byte %d: %w", before+1, at, err)
		}
	}
	if p.full() {
		return nil
	}
	for ; ; c.offset++ {
		switch b, err := c.ReadByte(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("byte %d: %w", c.offset, err)
		case b != '\n':
			return fmt.Errorf("byte %d: the file goes on after the words of the header", c.offset)
		}
	}
}

func (c *countingReader) skip(n int) error {
	n, err := c.Discard(n)
	c.offset += int64(n)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (p *vectorsParser) addBinary(c *countingReader) error {
	word, err := c.until(' ')
	if err != nil {
		return err
	}
	w, keep := p.take(bytes.TrimLeft(word, "\n"))
	left := floatBytes * p.out.dim
	if !keep {
		return c.skip(left)
	}
	for left > 0 {
		chunk, _ := c.Peek(min(left, lines.PeekSize)) // where it is short, skip fails
		for b := chunk; len(b) >= floatBytes; b = b[floatBytes:] {
			x := math.Float32frombits(binary.LittleEndian.Uint32(b))
			if wide := float64(x); math.IsNaN(wide) || math.IsInf(wide, 0) {
				return fmt.Errorf("%.40q: %v is not a finite number", w, x)
			}
			p.out.values = append(p.out.values, x)
		}
		if err := c.skip(min(left, lines.PeekSize)); err != nil {
			return err
		}
		left -= len(chunk)
	}
	p.keep(w)
	return nil
}
