package learn

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"

	"github.com/akin-search/akin/simmatrix"
)

// The format of a file of texts, numbers as unsigned LEB128 (varints) unless
// said otherwise:
//
//	content
//	magic "akin-T\r\n"
//	format version, 1
//	number of words, then for each its length in bytes, 1 to 32766, and itself
//	number of elements of the sequence, then each: 0 between two texts of a
//	document, 1 behind a document, k+2 for word k
//	SHA-256 of everything before it, 32 bytes
const (
	textsMagic   = "akin-T\r\n"
	textsVersion = 1
	// textsShift is added to an element of the sequence, so that none is
	// negative.
	textsShift = -endOfText
	// textsChunk is how much is read or written at a time.
	textsChunk = 1 << 16
)

// ErrTexts says that the input is not a file of texts, is cut short, or was
// damaged.
var ErrTexts = errors.New("not a whole file of texts")

// EncodeTexts writes t to w. The same texts always give the same bytes.
func EncodeTexts(w io.Writer, t *Texts) error {
	h := sha256.New()
	b := bufio.NewWriterSize(io.MultiWriter(w, h), textsChunk)
	var number []byte
	put := func(n uint64) {
		number = binary.AppendUvarint(number[:0], n)
		_, _ = b.Write(number) // a bufio.Writer returns its first error from the last call
	}
	_, _ = b.WriteString(textsMagic)
	put(textsVersion)
	put(uint64(len(t.words)))
	for _, word := range t.words {
		put(uint64(len(word)))
		_, _ = b.WriteString(word)
	}
	put(uint64(len(t.sequence)))
	for _, id := range t.sequence {
		put(uint64(int64(id) + textsShift)) //nolint:gosec // endOfText is the least
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing texts: %w", err)
	}
	if _, err := w.Write(h.Sum(nil)); err != nil {
		return fmt.Errorf("writing texts: %w", err)
	}
	return nil
}

// DecodeTexts reads a file of texts to its end and checks all of it. It
// allocates in proportion to what it has read. Errors wrap [ErrTexts] or that
// of r.
func DecodeTexts(r io.Reader) (*Texts, error) {
	d := &textsDecoder{r: bufio.NewReaderSize(r, textsChunk), hash: sha256.New()}
	t, err := d.texts()
	if err != nil {
		return nil, fmt.Errorf("reading texts: %w", err)
	}
	return t, nil
}

type textsDecoder struct {
	r    *bufio.Reader
	hash hash.Hash
	read []byte // not hashed yet
}

// ReadByte implements [io.ByteReader].
func (d *textsDecoder) ReadByte() (byte, error) {
	b, err := d.r.ReadByte()
	if err == nil {
		d.read = append(d.read, b)
		if len(d.read) >= textsChunk {
			d.sum()
		}
	}
	return b, err
}

func (d *textsDecoder) sum() {
	d.hash.Write(d.read)
	d.read = d.read[:0]
}

func (d *textsDecoder) full(p []byte) error {
	if _, err := io.ReadFull(d.r, p); err != nil {
		return cutShort(err)
	}
	d.read = append(d.read, p...)
	return nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends too early", ErrTexts)
	}
	return err
}

// number reads a number of at most highest, which is under 2^63.
func (d *textsDecoder) number(name string, highest uint64) (uint64, error) {
	var n uint64
	for shift := 0; ; shift += 7 {
		b, err := d.ReadByte()
		if err != nil {
			return 0, cutShort(err)
		}
		n |= uint64(b&0x7f) << shift
		if n > highest || shift > 56 {
			return 0, fmt.Errorf("%w: %s over %d", ErrTexts, name, highest)
		}
		if b < 0x80 {
			return n, nil
		}
	}
}

func (d *textsDecoder) texts() (*Texts, error) {
	head := make([]byte, len(textsMagic))
	if err := d.full(head); err != nil {
		return nil, err
	}
	if string(head) != textsMagic {
		return nil, fmt.Errorf("%w: it does not begin like one", ErrTexts)
	}
	switch version, err := d.number("format version", math.MaxInt32); {
	case err != nil:
		return nil, err
	case version != textsVersion:
		return nil, fmt.Errorf("%w: of format version %d, this program reads %d", ErrTexts, version, textsVersion)
	}
	t := NewTexts()
	if err := d.words(t); err != nil {
		return nil, err
	}
	if err := d.sequence(t); err != nil {
		return nil, err
	}
	d.sum()
	want := d.hash.Sum(nil)
	got := make([]byte, len(want))
	if err := d.full(got); err != nil {
		return nil, err
	}
	if !bytes.Equal(got, want) {
		return nil, fmt.Errorf("%w: its checksum does not match", ErrTexts)
	}
	switch _, err := d.r.ReadByte(); {
	case err == nil:
		return nil, fmt.Errorf("%w: more bytes after the checksum", ErrTexts)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return t, nil
}

func (d *textsDecoder) words(t *Texts) error {
	count, err := d.number("number of words", math.MaxInt32)
	if err != nil {
		return err
	}
	room := make([]byte, simmatrix.MaxTermBytes)
	for range count {
		length, err := d.number("length of a word", simmatrix.MaxTermBytes)
		if err != nil {
			return err
		}
		word := room[:length]
		if err := d.full(word); err != nil {
			return err
		}
		if _, twice := t.ids[string(word)]; twice || length == 0 {
			return fmt.Errorf("%w: word %d is empty or repeated", ErrTexts, len(t.words))
		}
		t.addWord(string(word))
	}
	return nil
}

func (d *textsDecoder) sequence(t *Texts) error {
	count, err := d.number("length of the sequence", 1<<62)
	if err != nil {
		return err
	}
	last := int32(endOfDocument)
	for range count {
		n, err := d.number("element of the sequence", uint64(len(t.words))+textsShift-1)
		if err != nil {
			return err
		}
		id := int32(n) - textsShift //nolint:gosec // under the number of words
		if id < 0 && last < 0 {
			return fmt.Errorf("%w: an empty text", ErrTexts)
		}
		if id == endOfDocument {
			t.docs++
		}
		t.sequence = append(t.sequence, id)
		last = id
	}
	if last != endOfDocument {
		return fmt.Errorf("%w: a document without an end", ErrTexts)
	}
	return nil
}
