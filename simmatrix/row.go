package simmatrix

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"sync"
)

// ErrRow is wrapped by errors of [ParseRow] and [PackRow].
var ErrRow = errors.New("bad neighbor row")

// Limits of a row. They limit what readers accept from an untrusted store.
const (
	MaxTermBytes = 32766  // length of Lucene's longest index term
	MaxNeighbors = 10_000 // of a row
)

// UnitsOfOne is the number of steps of a stored similarity in (0, 1].
const UnitsOfOne = math.MaxUint16

const rowFormat = 3

// The first number of a packed neighbor has the term's length, less 1, in its
// low bits; if all are set, the rest of the length follows.
const (
	lengthBits  = 4
	shortLength = 1<<lengthBits - 1
)

// A Neighbor is one entry s_ij of the row of term i.
type Neighbor struct {
	Term       string  `json:"term"`       // the index term j
	Similarity float32 `json:"similarity"` // s_ij in (0, 1], a multiple of 1/65535
	DocFreq    uint32  `json:"doc_freq"`   // document frequency of Term when the matrix was built, 0 if unknown
	Origins    uint8   `json:"origins"`    // bits of the origins of s_ij, named by [Meta.Origins]; 0 if that is empty
}

// A Row is the neighbor row of a term, in descending similarity, ties in
// ascending byte order of the term, without the term itself. It is immutable.
// Numbers come before terms, which makes these easy to deflate:
//
//	1 byte    format, 3
//	uvarint   document frequency of the row's own term
//	uvarint   2·n for n neighbors, plus 1 if they have origins
//	uvarint   bytes of the numbers
//	the numbers, for each neighbor:
//	  uvarint 16·d + l: d is how far similarity·65535, at least 1, is below
//	          that of the neighbor before it, for the first below 65535;
//	          l is the length of the neighbor in bytes, less 1, at most 15
//	  uvarint length of the neighbor in bytes, less 16; only if l is 15
//	  1 byte  origins, not 0; only if the neighbors have them
//	  uvarint document frequency of the neighbor
//	UTF-8     the neighbors, one after another
//
// The zero Row stands for a term that the matrix lacks.
type Row struct{ packed string }

// QuantizeSimilarity rounds s to a multiple of 1/65535, which a row can store,
// at least 1/65535 and at most 1.
func QuantizeSimilarity(s float64) float32 { return FromUnits(ToUnits(s)) }

// ToUnits rounds a similarity to units of 1/65535, at least 1.
func ToUnits(s float64) uint16 {
	return uint16(min(max(math.Round(s*UnitsOfOne), 1), UnitsOfOne))
}

// FromUnits returns the similarity of u units of 1/65535.
func FromUnits(u uint16) float32 { return float32(u) / UnitsOfOne }

// PackRow packs the row of a term with document frequency docFreq. The
// neighbors must be in a [Row]'s order; similarities are rounded by
// [QuantizeSimilarity]. The error wraps [ErrRow] if a similarity is not in (0,
// 1] or above the one before it, a term is empty or too long, only some
// neighbors have origins, or there are too many.
func PackRow(docFreq uint32, neighbors []Neighbor) (Row, error) {
	if len(neighbors) > MaxNeighbors {
		return Row{}, fmt.Errorf("%w: %d neighbors, at most %d", ErrRow, len(neighbors), MaxNeighbors)
	}
	withOrigins := len(neighbors) > 0 && neighbors[0].Origins != 0
	p := newPacker(docFreq, len(neighbors), withOrigins, 8*len(neighbors))
	for _, n := range neighbors {
		if !(n.Similarity > 0 && n.Similarity <= 1) { // so written that NaN fails
			return Row{}, fmt.Errorf("%w: similarity %v of %q not in (0, 1]", ErrRow, n.Similarity, n.Term)
		}
		units := ToUnits(float64(n.Similarity))
		switch {
		case units > p.last:
			return Row{}, fmt.Errorf("%w: similarity %v of %q is out of order", ErrRow, n.Similarity, n.Term)
		case n.Term == "" || len(n.Term) > MaxTermBytes:
			return Row{}, fmt.Errorf("%w: a neighbor of %d bytes", ErrRow, len(n.Term))
		case (n.Origins != 0) != withOrigins:
			return Row{}, fmt.Errorf("%w: some neighbors have origins, others none", ErrRow)
		}
		p.add(units, n.Origins, n.DocFreq, n.Term)
	}
	return p.row(), nil
}

// A packer writes the packed form of a row.
type packer struct {
	head, numbers, terms []byte
	last                 uint16 // units of the previous neighbor
	withOrigins          bool
}

// newPacker takes the number of neighbors and about the size of their terms.
func newPacker(docFreq uint32, neighbors int, withOrigins bool, termBytes int) *packer {
	p := &packer{
		head:    make([]byte, 0, 1+3*binary.MaxVarintLen32),
		numbers: make([]byte, 0, 5*neighbors), terms: make([]byte, 0, termBytes),
		last: UnitsOfOne, withOrigins: withOrigins,
	}
	p.head = append(p.head, rowFormat)
	p.head = binary.AppendUvarint(p.head, uint64(docFreq))
	count := 2 * uint64(max(neighbors, 0))
	if withOrigins {
		count++
	}
	p.head = binary.AppendUvarint(p.head, count)
	return p
}

func (p *packer) add(units uint16, origins uint8, docFreq uint32, term string) {
	length := uint64(len(term)) - 1
	p.numbers = binary.AppendUvarint(p.numbers, uint64(p.last-units)<<lengthBits|min(length, shortLength))
	if length >= shortLength {
		p.numbers = binary.AppendUvarint(p.numbers, length-shortLength)
	}
	if p.withOrigins {
		p.numbers = append(p.numbers, origins)
	}
	p.numbers = binary.AppendUvarint(p.numbers, uint64(docFreq))
	p.terms = append(p.terms, term...)
	p.last = units
}

func (p *packer) row() Row {
	p.head = binary.AppendUvarint(p.head, uint64(len(p.numbers)))
	var b strings.Builder
	b.Grow(len(p.head) + len(p.numbers) + len(p.terms))
	b.Write(p.head)
	b.Write(p.numbers)
	b.Write(p.terms)
	return Row{packed: b.String()}
}

// ParseRow returns packed as a row after checking that it can be read to its
// end. It does not check that neighbors are UTF-8 and unique, or the order of
// equal similarities. "" is the zero Row. Errors wrap [ErrRow].
func ParseRow(packed string) (Row, error) {
	if packed == "" {
		return Row{}, nil
	}
	if packed[0] != rowFormat {
		return Row{}, fmt.Errorf("%w: format %d, want %d", ErrRow, packed[0], rowFormat)
	}
	h, ok := readHeader(packed)
	if !ok {
		return Row{}, fmt.Errorf("%w: bad header", ErrRow)
	}
	termBytes, err := checkNumbers(packed, h)
	if err != nil {
		return Row{}, err
	}
	if termBytes != len(packed)-h.terms {
		return Row{}, fmt.Errorf("%w: %d bytes of neighbors, want %d", ErrRow, len(packed)-h.terms, termBytes)
	}
	return Row{packed: packed}, nil
}

// checkNumbers returns the size of the neighbors' terms, or what is wrong.
func checkNumbers(packed string, h header) (termBytes int, err error) {
	units := uint32(UnitsOfOne)
	at := h.numbers
	for range h.neighbors {
		n, next := readNumbers(packed, at, h.withOrigins)
		switch {
		case next < 0 || next > h.terms || n.length > MaxTermBytes:
			return 0, fmt.Errorf("%w: no neighbor at offset %d", ErrRow, at)
		case n.drop >= units:
			return 0, fmt.Errorf("%w: no similarity at offset %d", ErrRow, at)
		case h.withOrigins && n.origins == 0:
			return 0, fmt.Errorf("%w: no origins at offset %d", ErrRow, at)
		}
		units -= n.drop
		termBytes += int(n.length)
		at = next
	}
	if at != h.terms {
		return 0, fmt.Errorf("%w: %d bytes after the numbers", ErrRow, h.terms-at)
	}
	return termBytes, nil
}

type header struct {
	docFreq        uint32
	neighbors      int
	withOrigins    bool
	numbers, terms int // where they begin
}

// readHeader reads a header of any format. It returns false if it is none, or
// if the numbers do not fit into packed.
func readHeader(packed string) (h header, ok bool) {
	docFreq, at := uvarint(packed, 1)
	count, at := uvarint(packed, at)
	size, at := uvarint(packed, at)
	if at < 0 || count/2 > MaxNeighbors || int(size) > len(packed)-at {
		return header{}, false
	}
	h.docFreq = docFreq
	h.neighbors = int(count / 2)
	h.withOrigins = count&1 == 1
	h.numbers, h.terms = at, at+int(size)
	return h, true
}

// numbers are a packed neighbor without its term.
type numbers struct {
	drop    uint32 // units below the previous neighbor
	length  uint32 // of the term in bytes, at least 1
	docFreq uint32
	origins uint8 // 0 if there are none
}

// readNumbers also returns the next offset, -1 if there are no numbers.
func readNumbers(s string, at int, withOrigins bool) (n numbers, next int) {
	head, at := uvarint(s, at)
	n.drop, n.length = head>>lengthBits, head&shortLength+1
	if n.length > shortLength {
		var more uint32
		more, at = uvarint(s, at)
		n.length += min(more, MaxTermBytes)
	}
	if withOrigins {
		if at < 0 || at >= len(s) {
			return n, -1
		}
		n.origins = s[at]
		at++
	}
	n.docFreq, at = uvarint(s, at)
	return n, at
}

// uvarint reads a 32-bit uvarint of s at offset at. It returns it and the next
// offset, or -1 if there is none or at is negative.
func uvarint(s string, at int) (v uint32, next int) {
	if at < 0 {
		return 0, -1
	}
	if at < len(s) && s[at] < 0x80 { // most of them
		return uint32(s[at]), at + 1
	}
	for shift := 0; at < len(s) && shift < 35; shift += 7 {
		c := s[at]
		at++
		bits := uint32(c & 0x7f)
		if bits<<shift>>shift != bits { // more than 32 bits
			return 0, -1
		}
		v |= bits << shift
		if c < 0x80 {
			return v, at
		}
	}
	return 0, -1
}

// IsZero reports whether the matrix has no row for the term.
func (r Row) IsZero() bool { return r.packed == "" }

// Packed returns the packed form, for [ParseRow].
func (r Row) Packed() string { return r.packed }

// DocFreq returns the document frequency of the row's term, 0 if unknown.
func (r Row) DocFreq() uint32 {
	h, _ := readHeader(r.packed) // the zero Row has none
	return h.docFreq
}

// Len returns the number of neighbors.
func (r Row) Len() int {
	h, _ := readHeader(r.packed) // the zero Row has none
	return h.neighbors
}

// All yields the neighbors in order, without allocating.
func (r Row) All() iter.Seq[Neighbor] {
	return func(yield func(Neighbor) bool) {
		s := r.packed
		h, _ := readHeader(s) // the zero Row has none
		at, term := h.numbers, h.terms
		units := uint32(UnitsOfOne)
		for range h.neighbors {
			var n numbers
			n, at = readNumbers(s, at, h.withOrigins)
			units -= n.drop
			end := term + int(n.length)
			if !yield(Neighbor{
				Term: s[term:end], DocFreq: n.docFreq, Origins: n.origins,
				Similarity: FromUnits(uint16(units)), //nolint:gosec // ParseRow has seen that it is one
			}) {
				return
			}
			term = end
		}
	}
}

const (
	deflatedFormat = rowFormat | 0x80 // first byte of a row whose terms are deflated
	minDeflated    = 64               // below this many bytes of terms the code table costs more than it saves
)

// A RowCodec compresses rows for an external store. The encoded form is the
// packed one, see [Row]; if that makes it shorter, its terms are deflated (RFC
// 1951) and the first byte is 0x83, which saves about a third of a row of 100
// neighbors. The zero RowCodec is ready for concurrent use and must not be
// copied.
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

// Encode returns the encoded form of r, "" for the zero Row. It is the same for
// equal rows in one build of the program, but may differ between builds.
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
	if _, err := io.WriteString(d.w, r.packed[h.terms:]); err != nil || d.w.Close() != nil { // a buffer never fails
		return r.packed
	}
	if d.buf.Len() >= len(r.packed) {
		return r.packed
	}
	return d.buf.String()
}

// Decode decodes a row, like [ParseRow]. It refuses one larger than maxBytes
// before inflating it. Errors wrap [ErrRow].
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
	return Row{packed: string(packed)}, nil // with the checks of ParseRow done
}

// inflate inflates deflated into dst, which must fit exactly.
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
