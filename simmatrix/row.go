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
const rowFormat = 1

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
}

// A Row is the neighbor row of one term, in descending similarity, ties in
// ascending byte order of the term, the term itself excluded. It is immutable
// and holds one packed string, so that it is cheap to keep and to pass on:
//
//	1 byte    format, 1
//	uvarint   document frequency of the row's own term
//	uvarint   number of neighbors n
//	for each neighbor:
//	  uint16  similarity·65535, little endian, at least 1
//	  uvarint document frequency of the neighbor
//	  uvarint length of the neighbor in bytes
//	  UTF-8   the neighbor itself
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
// similarity is not in (0, 1], a term is empty or longer than [MaxTermBytes],
// or there are more than [MaxNeighbors].
func PackRow(docFreq uint32, neighbors []Neighbor) (Row, error) {
	if len(neighbors) > MaxNeighbors {
		return Row{}, fmt.Errorf("%w: %d neighbors, at most %d", ErrRow, len(neighbors), MaxNeighbors)
	}
	b := make([]byte, 0, 8+16*len(neighbors))
	b = append(b, rowFormat)
	b = binary.AppendUvarint(b, uint64(docFreq))
	b = binary.AppendUvarint(b, uint64(len(neighbors)))
	for _, n := range neighbors {
		if !(n.Similarity > 0 && n.Similarity <= 1) { // written so that NaN fails
			return Row{}, fmt.Errorf("%w: similarity %v of %q not in (0, 1]", ErrRow, n.Similarity, n.Term)
		}
		if n.Term == "" || len(n.Term) > MaxTermBytes {
			return Row{}, fmt.Errorf("%w: a neighbor of %d bytes", ErrRow, len(n.Term))
		}
		b = appendNeighbor(b, similarityToUnits(float64(n.Similarity)), n.DocFreq, n.Term)
	}
	return Row{packed: string(b)}, nil
}

func appendNeighbor(b []byte, units uint16, docFreq uint32, term string) []byte {
	b = binary.LittleEndian.AppendUint16(b, units)
	b = binary.AppendUvarint(b, uint64(docFreq))
	b = binary.AppendUvarint(b, uint64(len(term)))
	return append(b, term...)
}

// ParseRow returns packed as a row after checking that it can be read to its
// end. It does not check the order of the neighbors or that they are UTF-8. The
// empty string is the zero Row. Errors wrap [ErrRow] and name the offset.
func ParseRow(packed string) (Row, error) {
	if packed == "" {
		return Row{}, nil
	}
	if packed[0] != rowFormat {
		return Row{}, fmt.Errorf("%w: format %d, want %d", ErrRow, packed[0], rowFormat)
	}
	_, at := uvarint(packed, 1)
	n, at := uvarint(packed, at)
	if at < 0 || n > MaxNeighbors {
		return Row{}, fmt.Errorf("%w: bad header", ErrRow)
	}
	for range n {
		start := at
		if at+2 > len(packed) || packed[at]|packed[at+1] == 0 {
			return Row{}, fmt.Errorf("%w: no similarity at offset %d", ErrRow, start)
		}
		var length uint32
		_, at = uvarint(packed, at+2)
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
	n, _ := uvarint(r.packed, at)
	return int(n)
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
		n, at := uvarint(s, at)
		for range n {
			units := uint16(s[at]) | uint16(s[at+1])<<8
			docFreq, next := uvarint(s, at+2)
			length, next := uvarint(s, next)
			at = next + int(length)
			if !yield(Neighbor{Term: s[next:at], Similarity: unitsToSimilarity(units), DocFreq: docFreq}) {
				return
			}
		}
	}
}
