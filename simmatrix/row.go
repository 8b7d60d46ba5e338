package simmatrix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
)

// Limits of one row. They bound what a reader of rows has to accept from a
// store that it does not trust.
const (
	// MaxTermBytes is the length of Lucene's longest index term.
	MaxTermBytes = 32766
	// MaxNeighbors is the largest number of neighbors in a row.
	MaxNeighbors = 10_000
)

// rowFormat is the first byte of every packed row.
const rowFormat = 2

// similarityUnits is the number of steps of a stored similarity in (0, 1].
const similarityUnits = math.MaxUint16

// ErrRow is wrapped by the errors of [ParseRow] and [PackRow].
var ErrRow = errors.New("bad neighbor row")

// A Neighbor is one entry s_ij of the row of term i.
type Neighbor struct {
	// Term is the index term j.
	Term string
	// Similarity is s_ij in (0, 1], a multiple of 1/65535.
	Similarity float32
	// DocFreq is the document frequency of Term when the matrix was built,
	// 0 where the source of the matrix knows none.
	DocFreq uint32
	// Origins are the bits of what s_ij comes from, named by [Meta.Origins]; 0
	// where that names nothing.
	Origins uint8
}

// A Row is the neighbor row of one term, in descending similarity, ties in
// ascending byte order of the term, the term itself excluded. It is immutable
// and holds one packed string, so that it is cheap to keep and to pass on:
//
//	1 byte    format, 2
//	uvarint   document frequency of the row's own term
//	uvarint   2·n for n neighbors, plus 1 where they have origins
//	for each neighbor:
//	  uvarint how far similarity·65535, which is at least 1, lies under that of
//	          the neighbor before it, under 65535 for the first
//	  1 byte  origins, not 0; only where the neighbors have them
//	  uvarint document frequency of the neighbor
//	  uvarint length of the neighbor in bytes
//	  UTF-8   the neighbor itself
//
// Similarities of neighbors that follow each other lie close together, so that
// most differences take one byte.
//
// The zero Row belongs to a term that the matrix does not hold.
type Row struct{ packed string }

// QuantizeSimilarity returns s rounded to the nearest similarity that a row
// can store, a multiple of 1/65535, at least 1/65535 and at most 1.
func QuantizeSimilarity(s float64) float32 {
	return unitsToSimilarity(similarityToUnits(s))
}

func similarityToUnits(s float64) uint16 {
	return uint16(min(max(math.Round(s*similarityUnits), 1), similarityUnits))
}

func unitsToSimilarity(u uint16) float32 { return float32(u) / similarityUnits }

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
	p := newPacker(docFreq, len(neighbors), withOrigins, 8+16*len(neighbors))
	for _, n := range neighbors {
		if !(n.Similarity > 0 && n.Similarity <= 1) { // written so that NaN fails
			return Row{}, fmt.Errorf("%w: similarity %v of %q not in (0, 1]", ErrRow, n.Similarity, n.Term)
		}
		units := similarityToUnits(float64(n.Similarity))
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
	b           []byte
	last        uint16 // units of the neighbor before
	withOrigins bool
}

func newPacker(docFreq uint32, neighbors int, withOrigins bool, size int) *packer {
	p := &packer{b: make([]byte, 0, size), last: similarityUnits, withOrigins: withOrigins}
	p.b = append(p.b, rowFormat)
	p.b = binary.AppendUvarint(p.b, uint64(docFreq))
	head := 2 * uint64(max(neighbors, 0))
	if withOrigins {
		head++
	}
	p.b = binary.AppendUvarint(p.b, head)
	return p
}

func (p *packer) add(units uint16, origins uint8, docFreq uint32, term string) {
	p.b = binary.AppendUvarint(p.b, uint64(p.last-units))
	p.last = units
	if p.withOrigins {
		p.b = append(p.b, origins)
	}
	p.b = binary.AppendUvarint(p.b, uint64(docFreq))
	p.b = binary.AppendUvarint(p.b, uint64(len(term)))
	p.b = append(p.b, term...)
}

func (p *packer) row() Row { return Row{packed: string(p.b)} }

// ParseRow returns packed as a row after checking that it can be read to its
// end. It does not check that neighbors are UTF-8 and there once, or the order
// of those of one similarity. The empty string is the zero Row. Errors wrap
// [ErrRow] and name the offset.
func ParseRow(packed string) (Row, error) {
	if packed == "" {
		return Row{}, nil
	}
	if packed[0] != rowFormat {
		return Row{}, fmt.Errorf("%w: format %d, want %d", ErrRow, packed[0], rowFormat)
	}
	_, at := uvarint(packed, 1)
	head, at := uvarint(packed, at)
	if at < 0 || head/2 > MaxNeighbors {
		return Row{}, fmt.Errorf("%w: bad header", ErrRow)
	}
	units := uint32(similarityUnits)
	for range head / 2 {
		start := at
		var drop, length uint32
		drop, at = uvarint(packed, at)
		if at < 0 || drop >= units {
			return Row{}, fmt.Errorf("%w: no similarity at offset %d", ErrRow, start)
		}
		units -= drop
		if head&1 == 1 {
			if at == len(packed) || packed[at] == 0 {
				return Row{}, fmt.Errorf("%w: no origins at offset %d", ErrRow, at)
			}
			at++
		}
		_, at = uvarint(packed, at)
		length, at = uvarint(packed, at)
		if at < 0 || length == 0 || length > MaxTermBytes || int(length) > len(packed)-at {
			return Row{}, fmt.Errorf("%w: no neighbor at offset %d", ErrRow, start)
		}
		at += int(length)
	}
	if at != len(packed) {
		return Row{}, fmt.Errorf("%w: %d bytes after the last neighbor", ErrRow, len(packed)-at)
	}
	return Row{packed: packed}, nil
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

// IsZero reports whether the matrix holds no row for the term.
func (r Row) IsZero() bool { return r.packed == "" }

// Packed returns the packed form, as [ParseRow] takes it.
func (r Row) Packed() string { return r.packed }

// DocFreq returns the document frequency of the row's own term when the
// matrix was built, 0 where it is unknown.
func (r Row) DocFreq() uint32 {
	if r.packed == "" {
		return 0
	}
	v, _ := uvarint(r.packed, 1)
	return v
}

// Len returns the number of neighbors.
func (r Row) Len() int {
	if r.packed == "" {
		return 0
	}
	_, at := uvarint(r.packed, 1)
	head, _ := uvarint(r.packed, at)
	return int(head / 2)
}

// All yields the neighbors in the order of the row. The terms share the row's
// memory and allocate nothing.
func (r Row) All() iter.Seq[Neighbor] {
	return func(yield func(Neighbor) bool) {
		if r.packed == "" {
			return
		}
		s := r.packed
		_, at := uvarint(s, 1)
		head, at := uvarint(s, at)
		n := Neighbor{}
		units := uint32(similarityUnits)
		for range head / 2 {
			var drop, length uint32
			drop, at = uvarint(s, at)
			units -= drop
			n.Similarity = unitsToSimilarity(uint16(units)) //nolint:gosec // ParseRow has seen that it is one
			if head&1 == 1 {
				n.Origins = s[at]
				at++
			}
			n.DocFreq, at = uvarint(s, at)
			length, at = uvarint(s, at)
			n.Term = s[at : at+int(length)]
			at += int(length)
			if !yield(n) {
				return
			}
		}
	}
}
