package simmatrix

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"reflect"
)

// The format of a matrix file. Numbers are little endian; n is the header's
// Terms, z its NonZeros:
//
//	bytes     content
//	8         magic "akin-S\r\n"
//	4         uint32 format version: 4 with other forms, 3 with
//	          expressions, 2 with forms, else 1
//	4         uint32 length h of the header, at most 1 MiB
//	h         header: Meta as JSON
//	2·n       uint16 length of each term in bytes, 1 to 32766
//	Σ length  the terms, UTF-8, in ascending byte order, without separators
//	4·n       uint32 document frequency of each term, 0 if unknown
//	2·n       uint16 number of neighbors in each row, at most 10000
//	4·z       uint32 column of each entry, row after row
//	2·z       uint16 similarity·65535 of each entry, at least 1, in descending
//	          order within a row, ties in ascending column
//	1·z       origins of each entry; only if the header names origins
//	1·n       length of the form of each term in bytes, 0 for none; only if
//	          the header counts forms
//	Σ length  the forms, UTF-8; likewise. U+001E is before each other form of
//	          the term, U+001F before the note on an expression
//	32        SHA-256 of everything before it
const (
	fileMagic   = "akin-S\r\n" // shows at once a transfer that changed line ends
	fileVersion = 4
	maxHeader   = 1 << 20
	// chunkBytes is read or written at a time. Memory for what a file claims to
	// contain is allocated as it arrives: this much first, then at most readAhead
	// times what has been read.
	chunkBytes = 1 << 16
	readAhead  = 8
)

// Errors of [Decode], wrapped by more specific ones.
var (
	ErrFormat        = errors.New("not a valid matrix file") // or cut short, or with impossible content
	ErrFormatVersion = errors.New("matrix file of another format version")
	ErrChecksum      = errors.New("matrix file is damaged: its checksum does not match")
)

// Encode writes m to w. Equal matrices give equal bytes.
func Encode(w io.Writer, m *Matrix) error {
	err := m.table.write(w)
	if err == nil {
		_, err = w.Write(m.checksum[:])
	}
	if err != nil {
		return fmt.Errorf("writing the matrix: %w", err)
	}
	return nil
}

// write writes all but the checksum. The table has been checked.
func (t *Table) write(w io.Writer) error {
	header, err := json.Marshal(t.Meta)
	if err != nil {
		return err
	}
	if len(header) > maxHeader {
		return fmt.Errorf("source and parameters take %d bytes, at most %d", len(header), maxHeader)
	}
	b := bufio.NewWriterSize(w, chunkBytes)
	head := append([]byte(nil), fileMagic...)
	head = binary.LittleEndian.AppendUint32(head, t.Meta.fileVersion())
	head = binary.LittleEndian.AppendUint32(head, uint32(min(len(header), maxHeader)))
	_, _ = b.Write(append(head, header...)) // the last call returns a bufio.Writer's first error
	lengths, counts := make([]uint16, len(t.Terms)), make([]uint16, len(t.Terms))
	for i, term := range t.Terms {
		cols, _ := t.Row(i)
		lengths[i] = uint16(min(len(term), MaxTermBytes))
		counts[i] = uint16(min(len(cols), MaxNeighbors))
	}
	writeInts(b, lengths)
	for _, term := range t.Terms {
		_, _ = b.WriteString(term)
	}
	writeInts(b, t.DocFreqs)
	writeInts(b, counts)
	writeInts(b, t.Cols)
	writeInts(b, t.Sims)
	_, _ = b.Write(t.Origins)
	for _, form := range t.Forms {
		_ = b.WriteByte(byte(min(len(form), MaxFormBytes)))
	}
	for _, form := range t.Forms {
		_, _ = b.WriteString(form)
	}
	return b.Flush()
}

// fileVersion is the format version of a file with this header: programs that
// do not know forms, expressions or other forms can read files without them.
func (m *Meta) fileVersion() uint32 {
	switch {
	case m.OtherForms > 0:
		return fileVersion
	case m.Expressions > 0:
		return 3
	case m.Forms > 0:
		return 2
	}
	return 1
}

func writeInts[T uint16 | uint32](b *bufio.Writer, values []T) {
	var chunk []byte
	for len(values) > 0 {
		n := min(len(values), chunkBytes/4)
		chunk, _ = binary.Append(chunk[:0], binary.LittleEndian, values[:n]) // fails only for values without a fixed size
		_, _ = b.Write(chunk)
		values = values[n:]
	}
}

// IsEncoded reports whether r begins with a matrix file. It consumes nothing.
func IsEncoded(r *bufio.Reader) bool {
	head, err := r.Peek(len(fileMagic))
	return err == nil && string(head) == fileMagic
}

// Decode reads a matrix file to its end and checks all of it. It allocates in
// proportion to what it has read, not to what the file claims. Errors wrap
// [ErrFormat], [ErrFormatVersion], [ErrChecksum] or the error of r. They name
// the byte where the file is cut short or its parts do not fit.
func Decode(r io.Reader) (*Matrix, error) {
	d := &decoder{r: bufio.NewReaderSize(r, chunkBytes), hash: sha256.New()}
	claimed, err := d.header()
	if err != nil {
		return nil, err
	}
	m, err := d.matrix(claimed)
	if err != nil {
		return nil, err
	}
	if err := m.table.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if counted := m.table.describe(); !reflect.DeepEqual(counted, claimed) {
		for _, same := range []*Meta{&claimed, &counted} { // these may be long
			same.Source = ""
			same.Params = nil
			same.Origins = nil
		}
		return nil, fmt.Errorf("%w: the header does not describe the matrix: it says %+v, not %+v", ErrFormat, claimed, counted)
	}
	return m, nil
}

type decoder struct {
	r      *bufio.Reader
	hash   hash.Hash
	offset int64 // bytes read
	err    error // the first; after it nothing is read
}

// full reads a complete part of a section, or sets the error.
func (d *decoder) full(p []byte, section string) {
	if d.err != nil {
		return
	}
	n, err := io.ReadFull(d.r, p)
	d.offset += int64(n)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		d.err = fmt.Errorf("%w: ends at byte %d, inside the %s", ErrFormat, d.offset, section)
	case err != nil:
		d.err = fmt.Errorf("reading the %s at byte %d: %w", section, d.offset, err)
	default:
		d.hash.Write(p)
	}
}

func (d *decoder) header() (Meta, error) {
	var fixed [len(fileMagic) + 8]byte
	if d.full(fixed[:], "head"); d.err != nil {
		return Meta{}, d.err
	}
	numbers := fixed[len(fileMagic):]
	if string(fixed[:len(fileMagic)]) != fileMagic {
		return Meta{}, fmt.Errorf("%w: it does not begin like one, at byte 0", ErrFormat)
	}
	version := binary.LittleEndian.Uint32(numbers)
	if version < 1 || version > fileVersion {
		return Meta{}, fmt.Errorf("%w: %d, this program reads 1 to %d", ErrFormatVersion, version, fileVersion)
	}
	size := binary.LittleEndian.Uint32(numbers[4:])
	if size > maxHeader {
		return Meta{}, fmt.Errorf("%w: header of %d bytes, at most %d, at byte %d", ErrFormat, size, maxHeader, d.offset)
	}
	start := d.offset
	header := readInts[byte](d, uint64(size), "header")
	if d.err != nil {
		return Meta{}, d.err
	}
	var meta Meta
	dec := json.NewDecoder(bytes.NewReader(header))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&meta); err != nil {
		return Meta{}, fmt.Errorf("%w: header at byte %d: %w", ErrFormat, start, err)
	}
	if dec.InputOffset() != int64(len(header)) {
		return Meta{}, fmt.Errorf("%w: header at byte %d: more than one JSON value", ErrFormat, start+dec.InputOffset())
	}
	if version != meta.fileVersion() {
		return Meta{}, fmt.Errorf("%w: header at byte %d: version %d with %d forms, %d other forms and %d expressions", ErrFormat, start, version, meta.Forms, meta.OtherForms, meta.Expressions)
	}
	if meta.Terms > MaxTerms || meta.NonZeros > meta.Terms*MaxNeighbors {
		return Meta{}, fmt.Errorf("%w: header at byte %d: %d terms, %d non-zeros", ErrFormat, start, meta.Terms, meta.NonZeros)
	}
	return meta, nil
}

// matrix reads the sections after the header and the checksum. It checks
// lengths against the header, but not the entries.
func (d *decoder) matrix(meta Meta) (*Matrix, error) {
	lengths := readInts[uint16](d, meta.Terms, "term lengths")
	text := readInts[byte](d, sum(lengths), "terms")
	m := &Matrix{table: Table{Meta: meta}}
	t := &m.table
	if d.err == nil {
		t.Terms = cut(string(text), lengths)
	}
	t.DocFreqs = readInts[uint32](d, meta.Terms, "document frequencies")
	counts := readInts[uint16](d, meta.Terms, "row lengths")
	if total := sum(counts); d.err == nil && total != meta.NonZeros {
		return nil, fmt.Errorf("%w: the row lengths that end at byte %d are of %d entries, the header says %d", ErrFormat, d.offset, total, meta.NonZeros)
	}
	t.Offsets = make([]int, 1, len(counts)+1)
	for i, c := range counts {
		t.Offsets = append(t.Offsets, t.Offsets[i]+int(c))
	}
	t.Cols = readInts[uint32](d, meta.NonZeros, "columns")
	t.Sims = readInts[uint16](d, meta.NonZeros, "similarities")
	if len(meta.Origins) > 0 {
		t.Origins = readInts[uint8](d, meta.NonZeros, "origins")
	}
	if meta.Forms > 0 {
		lengths := readInts[byte](d, meta.Terms, "form lengths")
		text := readInts[byte](d, sum(lengths), "forms")
		if d.err == nil {
			t.Forms = cut(string(text), lengths)
		}
	}
	want := d.hash.Sum(nil)
	if d.full(m.checksum[:], "checksum"); d.err != nil {
		return nil, d.err
	}
	if !bytes.Equal(want, m.checksum[:]) {
		return nil, fmt.Errorf("%w: that at byte %d is not of the bytes before it", ErrChecksum, d.offset-checksumSize)
	}
	switch _, err := d.r.ReadByte(); {
	case err == nil:
		return nil, fmt.Errorf("%w: more bytes after the checksum, at byte %d", ErrFormat, d.offset)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("reading the end at byte %d: %w", d.offset, err)
	}
	return m, nil
}

// readInts reads n numbers. The slice grows with what is read.
func readInts[T byte | uint16 | uint32](d *decoder, n uint64, section string) []T {
	const perChunk = chunkBytes / 4
	var values []T
	var chunk [chunkBytes]byte
	width := binary.Size(T(0))
	for uint64(len(values)) < n && d.err == nil {
		if len(values) == cap(values) {
			room := n // grow to an eighth of n, then to n, and so on: little is copied and discarded
			for room > max(perChunk, readAhead*uint64(len(values))) {
				room = (room + readAhead - 1) / readAhead
			}
			values = append(make([]T, 0, room), values...)
		}
		from := len(values)
		to := min(cap(values), from+perChunk)
		raw := chunk[:(to-from)*width]
		if d.full(raw, section); d.err != nil {
			return nil
		}
		values = values[:to]
		_, d.err = binary.Decode(raw, binary.LittleEndian, values[from:]) // fails only for a short buffer
	}
	return values
}

func sum[T byte | uint16](values []T) uint64 {
	var total uint64
	for _, v := range values {
		total += uint64(v)
	}
	return total
}

// cut splits text, whose length is the sum of lengths.
func cut[T byte | uint16](text string, lengths []T) []string {
	parts := make([]string, len(lengths))
	for i, l := range lengths {
		parts[i], text = text[:l], text[l:]
	}
	return parts
}
