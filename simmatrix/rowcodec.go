package simmatrix

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

const (
	// deflatedFormat is the first byte of a row whose terms are deflated.
	deflatedFormat = rowFormat | 0x80
	// minDeflated is the least length of terms to deflate: below it the code
	// table costs more than it saves.
	minDeflated = 64
)

// A RowCodec compresses rows for a store outside of this process. The encoded
// form is the packed one, see [Row]; where that makes it shorter, its terms are
// deflated (RFC 1951) and the first byte is 0x83. The zero RowCodec is ready;
// it is safe for concurrent use and must not be copied.
//
// Of a row of 100 neighbors deflating saves about a third: letters of a
// language need some four bits each, and the numbers, which are nearly random,
// do not spoil their statistics where they stand apart.
type RowCodec struct {
	writers, readers sync.Pool
}

type deflater struct {
	buf bytes.Buffer
	w   *flate.Writer
}

type inflater struct {
	in strings.Reader
	r  io.ReadCloser
}

// Encode returns the encoded form of r, "" for the zero Row. The same row has
// the same form in one build of the program; it may differ between builds.
func (c *RowCodec) Encode(r Row) string {
	h, ok := readHeader(r.packed)
	if !ok || len(r.packed)-h.terms < minDeflated {
		return r.packed
	}
	d, _ := c.writers.Get().(*deflater)
	if d == nil {
		d = &deflater{}
		d.w, _ = flate.NewWriter(&d.buf, flate.BestSpeed) // fails only for unknown levels
	}
	defer c.writers.Put(d)
	d.buf.Reset()
	d.w.Reset(&d.buf)
	d.buf.WriteByte(deflatedFormat)
	d.buf.WriteString(r.packed[1:h.terms])
	if _, err := io.WriteString(d.w, r.packed[h.terms:]); err != nil || d.w.Close() != nil { // a buffer takes it all
		return r.packed
	}
	if d.buf.Len() >= len(r.packed) {
		return r.packed
	}
	return d.buf.String()
}

// Decode returns the row of an encoded form after the checks of [ParseRow]. It
// refuses one that takes more than maxBytes packed, before it inflates it.
// Errors wrap [ErrRow].
func (c *RowCodec) Decode(encoded string, maxBytes int) (Row, error) {
	if encoded == "" || encoded[0] != deflatedFormat {
		if len(encoded) > maxBytes {
			return Row{}, fmt.Errorf("%w: %d bytes, at most %d", ErrRow, len(encoded), maxBytes)
		}
		return ParseRow(encoded)
	}
	h, ok := readHeader(encoded)
	if !ok {
		return Row{}, fmt.Errorf("%w: bad header", ErrRow)
	}
	termBytes, err := checkNumbers(encoded, h)
	if err != nil {
		return Row{}, err
	}
	if termBytes > maxBytes-h.terms {
		return Row{}, fmt.Errorf("%w: %d bytes, at most %d", ErrRow, h.terms+termBytes, maxBytes)
	}
	packed := make([]byte, h.terms+termBytes)
	copy(packed, encoded[:h.terms])
	packed[0] = rowFormat
	if err := c.inflate(packed[h.terms:], encoded[h.terms:]); err != nil {
		return Row{}, fmt.Errorf("%w: deflated terms: %w", ErrRow, err)
	}
	return Row{packed: string(packed)}, nil // the checks of ParseRow are done
}

// inflate fills dst from deflated, which must inflate to exactly that length.
func (c *RowCodec) inflate(dst []byte, deflated string) error {
	f, _ := c.readers.Get().(*inflater)
	if f == nil {
		f = &inflater{}
		f.r = flate.NewReader(&f.in)
	}
	defer c.readers.Put(f)
	f.in.Reset(deflated)
	if err := f.r.(flate.Resetter).Reset(&f.in, nil); err != nil {
		return err
	}
	if _, err := io.ReadFull(f.r, dst); err != nil {
		return err
	}
	if n, err := f.r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("more than %d bytes", len(dst))
	}
	if f.in.Len() > 0 {
		return fmt.Errorf("%d bytes after the end", f.in.Len())
	}
	return nil
}
