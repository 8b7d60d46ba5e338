package source

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
)

// ReadVectors reads a file of words and their vectors as a stream, plain or
// compressed by gzip. A repeated word keeps its first vector. One that cannot
// have a row is skipped. In a text file a word may have blanks, as long as only
// its first part is a number; a byte order mark and blank lines are ignored.
//
// Errors wrap [ErrVectors]: another number of dimensions than the header or the
// first word has, none, or over [MaxVectorDims]; what is not a finite decimal
// number in 32 bits; a line over 1 MiB; another number of words than the header
// says, unless MaxWords ends reading before; no word at all. Where no word is
// kept, the error wraps [simmatrix.ErrNoVocabulary].
func ReadVectors(r io.Reader, opts ReadVectorsOptions) (*Vectors, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	in, err := lines.Decompress(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVectors, err)
	}
	switch magic, _ := in.Peek(4); string(magic) { // other forms in which vectors are published
	case "PK\x03\x04":
		return nil, fmt.Errorf("%w: line 1: a zip archive: unpack it first", ErrVectors)
	case "\xba\x16\x4f\x2f": // 793712314, in fastText's fasttext.cc
		return nil, fmt.Errorf("%w: line 1: a model of fastText, which is not read: take its .vec file", ErrVectors)
	}
	p := &vectorsParser{opts: opts, seen: make(map[string]struct{}), claimed: -1}
	inBinary := opts.Format == VectorsBinary
	if opts.Format == VectorsDetect {
		inBinary, err = looksBinary(in)
	}
	if err == nil && inBinary {
		err = p.readBinary(in)
	} else if err == nil {
		err = p.readText(in)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrVectors, err)
	case p.out.Len() == 0:
		return nil, fmt.Errorf("%w: none of the %d words of the file is kept", simmatrix.ErrNoVocabulary, p.read)
	}
	return &p.out, nil
}

func (p *vectorsParser) readText(in io.Reader) error {
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
	line = bytes.TrimRight(line, blanks)
	if len(line) == 0 {
		return nil
	}
	if p.read == p.claimed {
		return fmt.Errorf("more than the %d words of the header", p.claimed)
	}
	if p.out.dim == 0 { // the first word of a file without a header
		dim := countNumbers(line)
		if dim == 0 || dim > MaxVectorDims {
			return fmt.Errorf("word %.40q: %d dimensions, want 1 to %d finite decimal numbers", bytes.FieldsFunc(line, isBlank)[0], dim, MaxVectorDims)
		}
		p.out.dim = dim
	}
	word, numbers, ok := cutNumbers(line, p.out.dim)
	if !ok || holdsNumber(word) {
		fields := bytes.FieldsFunc(line, isBlank)
		return fmt.Errorf("word %.40q: %d dimensions, want %d", fields[0], len(fields)-1, p.out.dim)
	}
	w, keep := p.take(word)
	if !keep {
		return nil
	}
	if err := p.addNumbers(string(numbers)); err != nil {
		return fmt.Errorf("word %.40q: %w", w, err)
	}
	p.keep(w)
	return nil
}

func (p *vectorsParser) addNumbers(numbers string) error {
	for number := range strings.FieldsFuncSeq(numbers, isBlank) {
		x, ok := lines.ParseDecimal(number, 32)
		if !ok {
			return notDecimal(number)
		}
		p.out.values = append(p.out.values, float32(x))
	}
	return nil
}

func notDecimal(field string) error {
	return fmt.Errorf("%.40q is not a finite decimal number", field)
}

// lastField returns where the last field of line starts, perhaps 0.
func lastField(line []byte) int {
	return bytes.LastIndexAny(bytes.TrimRight(line, blanks), blanks) + 1
}

// cutNumbers splits line before its last n fields, if anything is there.
func cutNumbers(line []byte, n int) (word, numbers []byte, ok bool) {
	at := len(line)
	for range n {
		at = lastField(line[:at])
	}
	return bytes.Trim(line[:at], blanks), line[at:], at > 0
}

// countNumbers returns how many numbers line ends with.
func countNumbers(line []byte) int {
	count := 0
	for end := len(line); ; count++ {
		at := lastField(line[:end])
		if at == 0 {
			return count
		}
		if _, ok := lines.ParseDecimal(string(bytes.TrimRight(line[at:end], blanks)), 32); !ok {
			return count
		}
		end = at
	}
}

// holdsNumber reports whether a part of word other than the first is a number:
// the sign of a line with too many numbers.
func holdsNumber(word []byte) bool {
	parts := bytes.FieldsFunc(word, isBlank)
	return len(parts) > 1 && slices.ContainsFunc(parts[1:], func(part []byte) bool {
		_, ok := lines.ParseDecimal(string(part), 32)
		return ok
	})
}
