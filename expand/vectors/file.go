package vectors

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/akin-search/akin/simmatrix"
)

// The format of a model's file. Numbers are little endian:
//
//	bytes     content
//	8         magic "akin-V\r\n"
//	4         uint32 format version: 1
//	4         uint32 length h of the header, at most 1 MiB
//	h         header: Meta as JSON
//	8         uint64 length t of the table
//	t         S and the document frequencies, as a matrix file
//	4·n·r     float32 coordinates, term after term, r of each; none in a model
//	          for sparse vectors or one that has not learned
//	32        SHA-256 of everything before it
const (
	fileMagic   = "akin-V\r\n"
	fileVersion = 1
	maxHeader   = 1 << 20
	chunkFloats = 1 << 14
	idDigits    = 16
)

// Errors of [Read].
var (
	ErrFormat   = errors.New("not a valid file of a model of vectors")
	ErrChecksum = errors.New("the model of vectors is damaged: its checksum does not match")
)

func idOf(sum []byte) string {
	text := hex.EncodeToString(sum)
	return text[:min(len(text), idDigits)]
}

// A counter counts the bytes written to it.
type counter struct{ n uint64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += uint64(len(p))
	return len(p), nil
}

// Write writes the model's file. Equal models give equal bytes.
func (m *Model) Write(w io.Writer) error {
	if _, err := m.write(w); err != nil {
		return fmt.Errorf("writing the model: %w", err)
	}
	return nil
}

// write returns the checksum at the end of the file.
func (m *Model) write(w io.Writer) ([]byte, error) {
	header, err := json.Marshal(m.meta)
	if err != nil {
		return nil, err
	}
	if len(header) > maxHeader {
		return nil, fmt.Errorf("%w: a header of %d bytes", ErrModel, len(header))
	}
	var table counter
	if err := simmatrix.Encode(&table, m.matrix); err != nil {
		return nil, err
	}
	hash := sha256.New()
	b := bufio.NewWriter(io.MultiWriter(w, hash))
	head := append([]byte(nil), fileMagic...)
	head = binary.LittleEndian.AppendUint32(head, fileVersion)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(header))) //nolint:gosec // at most maxHeader
	head = binary.LittleEndian.AppendUint64(append(head, header...), table.n)
	_, _ = b.Write(head) // the last call returns a bufio.Writer's first error
	if err := simmatrix.Encode(b, m.matrix); err != nil {
		return nil, err
	}
	var chunk []byte
	for from := 0; from < len(m.vectors); from += chunkFloats {
		chunk, _ = binary.Append(chunk[:0], binary.LittleEndian, m.vectors[from:min(from+chunkFloats, len(m.vectors))]) // fails only for values without a fixed size
		_, _ = b.Write(chunk)
	}
	if err := b.Flush(); err != nil {
		return nil, err
	}
	sum := hash.Sum(nil)
	_, err = w.Write(sum)
	return sum, err
}

// Read reads a model's file to its end and checks all of it. It allocates in
// proportion to what it has read, not to what the file claims. Errors wrap
// [ErrFormat], [ErrChecksum], those of [simmatrix.Decode], or the error of r.
func Read(r io.Reader) (*Model, error) {
	hash := sha256.New()
	whole := bufio.NewReader(r)
	body := io.TeeReader(whole, hash)
	m, err := readBody(body)
	if err != nil {
		return nil, err
	}
	want, got := hash.Sum(nil), make([]byte, sha256.Size)
	if _, err := io.ReadFull(whole, got); err != nil {
		return nil, broken(err, "checksum")
	}
	if !bytes.Equal(want, got) {
		return nil, ErrChecksum
	}
	if _, err := whole.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more bytes after the checksum (%w)", ErrFormat, errors.Join(err))
	}
	m.id = idOf(got)
	return m, nil
}

func broken(err error, part string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends inside the %s", ErrFormat, part)
	}
	return fmt.Errorf("reading the %s: %w", part, err)
}

// readBody reads everything before the checksum.
func readBody(r io.Reader) (*Model, error) {
	var fixed [len(fileMagic) + 8]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil {
		return nil, broken(err, "head")
	}
	numbers := fixed[len(fileMagic):]
	size := binary.LittleEndian.Uint32(numbers[4:])
	switch version := binary.LittleEndian.Uint32(numbers); {
	case string(fixed[:len(fileMagic)]) != fileMagic:
		return nil, fmt.Errorf("%w: it does not begin like one", ErrFormat)
	case version != fileVersion:
		return nil, fmt.Errorf("%w: of version %d, this program reads %d", ErrFormat, version, fileVersion)
	case size > maxHeader:
		return nil, fmt.Errorf("%w: header of %d bytes, at most %d", ErrFormat, size, maxHeader)
	}
	header := make([]byte, size+8)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, broken(err, "header")
	}
	m := &Model{}
	err := json.Unmarshal(header[:size], &m.meta)
	if again, _ := json.Marshal(m.meta); err == nil && !bytes.Equal(again, header[:size]) { // NaN cannot be encoded, and is not in JSON
		err = errors.New("not as it is written")
	}
	if err == nil {
		err = m.meta.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	bytesOfTable := binary.LittleEndian.Uint64(header[size:])
	table := &io.LimitedReader{R: r, N: int64(min(bytesOfTable, 1<<62))}
	if m.matrix, err = simmatrix.Decode(table); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	m.table = m.matrix.Table()
	if m.table.Meta.Docs == 0 {
		return nil, fmt.Errorf("%w: no documents", ErrFormat)
	}
	return m, m.readVectors(r)
}

// readVectors reads the coordinates of all terms.
func (m *Model) readVectors(r io.Reader) error {
	if !m.meta.Store.Dense() {
		return nil
	}
	n := m.matrix.Len() * m.meta.Rank()
	raw := make([]byte, 4*chunkFloats)
	for len(m.vectors) < n {
		more := min(n-len(m.vectors), chunkFloats)
		if _, err := io.ReadFull(r, raw[:4*more]); err != nil {
			return broken(err, "coordinates of terms")
		}
		from := len(m.vectors)
		m.vectors = append(m.vectors, make([]float32, more)...)
		if _, err := binary.Decode(raw[:4*more], binary.LittleEndian, m.vectors[from:]); err != nil {
			return err
		}
		for _, v := range m.vectors[from:] {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("%w: a coordinate of a term is %v", ErrFormat, v)
			}
		}
	}
	return nil
}
