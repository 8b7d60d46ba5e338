package simmatrix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
)

// Limits of one row. They bound what a reader of rows has to accept from a
// store that it does not trust.
const (
	// MaxTermBytes is the length of Lucene's longest index term.
	MaxTermBytes = 32766
	// MaxNeighbors is the largest number of neighbors in a row.
	MaxNeighbors = 10_000
)

const rowFormat = 3

// The first number of a packed neighbor has the length of the term, less 1, in
// its low bits; all of them are set if the rest of the length follows.
const (
	lengthBits  = 4
	shortLength = 1<<lengthBits - 1
)

// UnitsOfOne is the number of steps of a stored similarity in (0, 1].
const UnitsOfOne = math.MaxUint16

// ErrRow is wrapped by the errors of [ParseRow] and [PackRow].
var ErrRow = errors.New("bad neighbor row")

// A Neighbor is one entry s_ij of the row of term i.
type Neighbor struct {
	// Term is the index term j.
	Term string
	// Similarity is s_ij in (0, 1], a multiple of 1/65535.
	Similarity float32
	// DocFreq is the document frequency of Term when the matrix was built, 0
	// where unknown.
	DocFreq uint32
	// Origins are the bits of what s_ij comes from, named by [Meta.Origins]; 0
	// if that is empty.
	Origins uint8
}

// A Row is the neighbor row of one term, in descending similarity, ties in
// ascending byte order of the term, the term itself excluded. It is immutable
// and holds one packed string, so that it is cheap to keep and to pass on. Its
// numbers stand before its terms, which are then easy to deflate:
//
//	1 byte    format, 3
//	uvarint   document frequency of the row's own term
//	uvarint   2·n for n neighbors, plus 1 where they have origins
//	uvarint   bytes of the numbers
//	the numbers, for each neighbor:
//	  uvarint 16·d + l: d is how far similarity·65535, which is at least 1, lies
//	          under that of the neighbor before it, under 65535 for the first;
//	          l is the length of the neighbor in bytes, less 1, at most 15
//	  uvarint length of the neighbor in bytes, less 16; only where l is 15
//	  1 byte  origins, not 0; only where the neighbors have them
//	  uvarint document frequency of the neighbor
//	UTF-8     the neighbors themselves, one after another
//
// Similarities of neighbors that follow each other lie close together, so that
// their differences are small.
//
// The zero Row stands for a term that the matrix lacks.
type Row struct{ packed string }

// QuantizeSimilarity returns s rounded to the nearest similarity that a row
// can store, a multiple of 1/65535, at least 1/65535 and at most 1.
func QuantizeSimilarity(s float64) float32 {
	return FromUnits(ToUnits(s))
}

// ToUnits rounds a similarity to units of 1/65535, at least 1.
func ToUnits(s float64) uint16 {
	return uint16(min(max(math.Round(s*UnitsOfOne), 1), UnitsOfOne))
}

// FromUnits returns the similarity of so many units of 1/65535.
func FromUnits(u uint16) float32 { return float32(u) / UnitsOfOne }

// PackRow packs the row of a term with document frequency docFreq. The
// neighbors must be in the order that [Row] states; similarities are rounded
// by [QuantizeSimilarity]. It returns an error that wraps [ErrRow] where a
// similarity is not in (0, 1] or above the one before it, a term is empty or
// longer than [MaxTermBytes], some neighbors have origins and others none, or
// there are more than [MaxNeighbors].
func PackRow(docFreq uint32, neighbors []Neighbor) (Row, error) {
	if len(neighbors) > MaxNeighbors {
		return Row{}, fmt.Errorf("%w: %d neighbors, at most %d", ErrRow, len(neighbors), MaxNeighbors)
	}
	withOrigins := len(neighbors) > 0 && neighbors[0].Origins != 0
	p := newPacker(docFreq, len(neighbors), withOrigins, 8*len(neighbors))
	for _, n := range neighbors {
		if !(n.Similarity > 0 && n.Similarity <= 1) { // written so that NaN fails
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
	last                 uint16 // units of the neighbor before
	withOrigins          bool
}

// newPacker returns a packer for so many neighbors, whose terms take about
// termBytes.
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
// those with equal similarity. The empty string is the zero Row. Errors wrap
// [ErrRow] and name the offset.
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

// checkNumbers returns how many bytes the neighbors take, or an error where the
// numbers are invalid.
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

// readHeader reads the header of any format, and reports whether it is one and
// the numbers that it announces fit into packed.
func readHeader(packed string) (h header, ok bool) {
	docFreq, at := uvarint(packed, 1)
	count, at := uvarint(packed, at)
	size, at := uvarint(packed, at)
	if at < 0 || count/2 > MaxNeighbors || int(size) > len(packed)-at {
		return header{}, false
	}
	h.docFreq, h.neighbors, h.withOrigins = docFreq, int(count/2), count&1 == 1
	h.numbers, h.terms = at, at+int(size)
	return h, true
}

// numbers are what a packed row has for a neighbor besides its term.
type numbers struct {
	drop    uint32 // units under the neighbor before
	length  uint32 // of the term in bytes, at least 1
	docFreq uint32
	origins uint8 // 0 without origins
}

// readNumbers reads those at offset at and returns the offset behind them, or
// -1 where there are none.
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

// uvarint reads a 32-bit uvarint of s at offset at and returns it with the
// offset behind it, or -1 where there is none. A negative at gives -1.
func uvarint(s string, at int) (v uint32, next int) {
	if at < 0 {
		return 0, -1
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

// Packed returns the packed form, as [ParseRow] takes it.
func (r Row) Packed() string { return r.packed }

// DocFreq returns the document frequency of the row's own term when the
// matrix was built, 0 where it is unknown.
func (r Row) DocFreq() uint32 {
	h, _ := readHeader(r.packed) // the zero Row has none
	return h.docFreq
}

// Len returns the number of neighbors.
func (r Row) Len() int {
	h, _ := readHeader(r.packed) // the zero Row has none
	return h.neighbors
}

// All yields the neighbors in the order of the row. The terms share the row's
// memory and allocate nothing.
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
