package source

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// ReadVectors streams a file of words and vectors, plain or gzip-compressed. A
// repeated word keeps its first vector. It skips words that cannot have a row.
//
// Text files are those of GloVe, word2vec's text and fastText's .vec: a line
// per word, the word first, then its numbers, separated by blanks or tabs. A
// first line of two whole numbers is a header: the numbers of words and of
// dimensions. A word may have blanks, which are collapsed, as long as only its
// first part is a number; a byte order mark and blank lines are ignored.
//
// Binary files are word2vec's .bin: the header and a line feed, then each word,
// a blank, and its numbers as little-endian 32-bit floats. Line feeds before a
// word are ignored. A file is binary if there is a header and the 4·dimensions
// bytes (at most 4096) after the first word are not text.
//
// Errors wrap [ErrVectors] and say where the file breaks its format, or has
// another number of words or dimensions than it says. If no word is kept they
// wrap [simmatrix.ErrNoVocabulary].
func ReadVectors(r io.Reader, opts ReadVectorsOptions) (*Vectors, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	in, err := lines.Decompress(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVectors, err)
	}
	switch magic, _ := in.Peek(4); string(magic) { // other published forms of vectors
	case "PK\x03\x04":
		return nil, fmt.Errorf("%w: line 1: a zip archive: unpack it first", ErrVectors)
	case "\xba\x16\x4f\x2f": // 793712314, in fastText's fasttext.cc
		return nil, fmt.Errorf("%w: line 1: a model of fastText, which is not read: take its .vec file", ErrVectors)
	}
	inBinary, err := looksBinary(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVectors, err)
	}
	return readVectors(in, inBinary, opts)
}

func readVectors(in *bufio.Reader, inBinary bool, opts ReadVectorsOptions) (*Vectors, error) {
	p := &vectorsParser{opts: opts, seen: make(map[string]struct{}), claimed: -1}
	read := p.readText
	if inBinary {
		read = p.readBinary
	}
	switch err := read(in); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrVectors, err)
	case p.out.Len() == 0:
		return nil, fmt.Errorf("%w: none of the %d words of the file is kept", simmatrix.ErrNoVocabulary, p.read)
	}
	return &p.out, nil
}

func (p *vectorsParser) readText(in *bufio.Reader) error {
	count, err := lines.EachOf(in, func(line []byte, number int) error {
		err := p.addLine(line, number == 1)
		if err == nil && p.full() {
			return lines.ErrStop
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case p.read == 0:
		return fmt.Errorf("line %d: the file ends without a word", count+1)
	case p.read < p.claimed && !p.full():
		return fmt.Errorf("line %d: the file ends after %d of %d words", count+1, p.read, p.claimed)
	}
	return nil
}

func (p *vectorsParser) addLine(line []byte, first bool) error {
	if first {
		if words, dim, ok := vectorsHeader(line); ok {
			return p.setHeader(words, dim)
		}
	}
	p.fields = slices.AppendSeq(p.fields[:0], bytes.FieldsFuncSeq(line, isBlank))
	fields := p.fields
	if len(fields) == 0 {
		return nil
	}
	if p.read == p.claimed {
		return fmt.Errorf("more than the %d words of the header", p.claimed)
	}
	if p.out.dim == 0 { // first word of a file without header
		dim := 0
		for dim < len(fields)-1 && isNumber(fields[len(fields)-1-dim]) {
			dim++
		}
		if dim == 0 || dim > MaxVectorDims {
			return fmt.Errorf("word %.40q: %d dimensions, want 1 to %d finite decimal numbers", fields[0], dim, MaxVectorDims)
		}
		p.out.dim = dim
	}
	parts := len(fields) - p.out.dim // of the word
	if parts < 0 || parts == 0 && !isBlank(rune(line[0])) || slices.ContainsFunc(fields[1:max(parts, 1)], isNumber) {
		return fmt.Errorf("word %.40q: %d dimensions, want %d", fields[0], len(fields)-1, p.out.dim)
	}
	w, keep := p.take(bytes.Join(fields[:parts], []byte(" ")))
	if !keep {
		return nil
	}
	for _, number := range fields[parts:] {
		x, ok := lines.ParseDecimal(string(number), 32)
		if !ok {
			return fmt.Errorf("word %.40q: %w", w, notDecimal(string(number)))
		}
		p.out.values = append(p.out.values, float32(x))
	}
	p.keep(w)
	return nil
}

// isNumber reports whether a field is a number. One in a word, except as its
// first part, indicates a line with too many numbers.
func isNumber(field []byte) bool {
	_, ok := lines.ParseDecimal(string(field), 32)
	return ok
}

func notDecimal(field string) error {
	return fmt.Errorf("%.40q is not a finite decimal number", field)
}

// MaxVectorDims is the largest number of dimensions of a vectors file.
const MaxVectorDims = 65536

// Vectors are words with vectors of equal length. They are immutable.
type Vectors struct {
	words   []string
	dim     int
	values  []float32 // dim per word
	skipped SkippedWords
}

// SkippedWords counts words that [ReadVectors] has read but not kept.
type SkippedWords struct {
	Filtered int // rejected by [ReadVectorsOptions.Keep]
	Repeated int // kept from an earlier line
	Invalid  int // cannot have a row: empty, not UTF-8 or longer than [simmatrix.MaxTermBytes]
}

// Len returns the number of words.
func (v *Vectors) Len() int { return len(v.words) }

// Words returns the words in file order, read-only.
func (v *Vectors) Words() []string { return v.words }

// Dim returns the number of dimensions.
func (v *Vectors) Dim() int { return v.dim }

// Vector returns the vector of word k, read-only.
func (v *Vectors) Vector(k int) []float32 { return v.values[k*v.dim : (k+1)*v.dim] }

// Skipped counts the words that were read but not kept.
func (v *Vectors) Skipped() SkippedWords { return v.skipped }

// ReadVectorsOptions are the settings of [ReadVectors]. The zero value reads
// every word.
type ReadVectorsOptions struct {
	Keep     func(word string) bool // reports whether a word is wanted; nil keeps all
	MaxWords int                    // limit of words read, kept or not: the first are the most frequent; 0 means all
}

// Validate returns all errors in the settings.
func (o *ReadVectorsOptions) Validate() error { return settings.NotNegative("max words", o.MaxWords) }

type vectorsParser struct {
	opts    ReadVectorsOptions
	out     Vectors
	seen    map[string]struct{}
	fields  [][]byte // of a line
	claimed int      // words in the header, -1 without one
	read    int      // words so far, kept or not
}

func (p *vectorsParser) full() bool { return p.opts.MaxWords > 0 && p.read == p.opts.MaxWords }

// take counts a word and returns it, and whether to keep it.
func (p *vectorsParser) take(word []byte) (string, bool) {
	p.read++
	if len(word) == 0 || len(word) > simmatrix.MaxTermBytes || !utf8.Valid(word) {
		p.out.skipped.Invalid++
		return "", false
	}
	w := string(word)
	if p.opts.Keep != nil && !p.opts.Keep(w) {
		p.out.skipped.Filtered++
		return "", false
	}
	if _, twice := p.seen[w]; twice {
		p.out.skipped.Repeated++
		return "", false
	}
	return w, true
}

// keep adds a word whose numbers are already at the end of the table.
func (p *vectorsParser) keep(w string) {
	p.seen[w] = struct{}{}
	p.out.words = append(p.out.words, w)
}

func (p *vectorsParser) setHeader(words, dim int) error {
	p.claimed, p.out.dim = words, dim
	if words < 1 || dim < 1 || dim > MaxVectorDims {
		return fmt.Errorf("header: %d words of %d dimensions, want at least 1 of 1 to %d", words, dim, MaxVectorDims)
	}
	return nil
}

// isBlank reports whether a rune separates fields; words may have other spaces.
func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// vectorsHeader parses a line of exactly two whole numbers.
func vectorsHeader(line []byte) (words, dim int, ok bool) {
	fields := bytes.FieldsFunc(line, isBlank)
	if len(fields) != 2 {
		return 0, 0, false
	}
	words, err := strconv.Atoi(string(fields[0]))
	dim, err2 := strconv.Atoi(string(fields[1]))
	return words, dim, err == nil && err2 == nil
}

const (
	floatBytes  = 4
	detectBytes = 4096 // limit of the bytes after the first word that decide between text and binary
)

// looksBinary detects the format as in [ReadVectors], without consuming. It
// returns an error if the first word does not end within its reach.
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

// isText reports whether b is UTF-8, up to a character cut by its end, without
// control characters except tabs and line ends.
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

// until returns what precedes the next delimiter, within PeekSize bytes.
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
		chunk, _ := c.Peek(min(left, lines.PeekSize)) // if it is short, skip fails
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
