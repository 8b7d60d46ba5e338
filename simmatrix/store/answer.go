package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

// checksumBytes is the size of the checksum at the end of a row.
const checksumBytes = 4

// Errors of a look-up. The search continues unexpanded.
var (
	// ErrUnavailable says that Redis did not answer in time, or was not asked
	// because the breaker is open.
	ErrUnavailable = errors.New("the row store is unavailable")
	// ErrBadRow says that Redis has something other than a row.
	ErrBadRow = errors.New("the row store holds a bad row")
	// ErrMissingRows says that Redis lacks pushed rows, or has another number of
	// them, so that a missing row proves nothing.
	ErrMissingRows = errors.New("the row store has lost rows")
	// ErrGone says that the version is not in Redis: deleted, evicted or flushed.
	ErrGone = errors.New("the version is gone from the row store")
	// ErrNoVersion says that no version of the matrix is active.
	ErrNoVersion = errors.New("no version is active")
)

var errChecksum = fmt.Errorf("%w: its checksum is another", simmatrix.ErrRow)

// seal returns what Redis stores for a term: the encoded row and a CRC-32C of
// row and term, little endian. It detects every flipped bit and a row under the
// wrong term. A row marks its own end, so different pairs of row and term never
// have the same bytes.
func seal(term, encoded string) string {
	return string(binary.LittleEndian.AppendUint32([]byte(encoded), checksum(term, encoded)))
}

func checksum(term, encoded string) uint32 {
	return crc32.Update(crc32.Checksum([]byte(encoded), castagnoli), castagnoli, []byte(term))
}

// unseal undoes [seal]. Its errors, like those of openRow, wrap
// [simmatrix.ErrRow].
func unseal(term, sealed string) (encoded string, err error) {
	n := len(sealed) - checksumBytes
	if n < 0 || binary.LittleEndian.Uint32([]byte(sealed[n:])) != checksum(term, sealed[:n]) {
		return "", errChecksum
	}
	return sealed[:n], nil
}

// openRow returns the row that Redis stores for a term.
func openRow(codec *simmatrix.RowCodec, term, sealed string) (simmatrix.Row, error) {
	encoded, err := unseal(term, sealed)
	if err != nil {
		return simmatrix.Row{}, err
	}
	row, err := codec.Decode(encoded, maxRowBytes)
	if err == nil && row.IsZero() {
		err = fmt.Errorf("%w: it is empty", simmatrix.ErrRow)
	}
	return row, err
}

// An answer is Redis's answer about a version and the rows of some terms.
type answer struct {
	fields *redis.IntCmd // number of fields in the hash of rows
	values *redis.Cmd    // the mark of a complete version, then a value per term
}

// ask queues the commands for an answer. It counts fields first, so that rows
// restored in between do not look like terms that the version never had.
func ask(ctx context.Context, pipe redis.Pipeliner, key string, terms []string) answer {
	args := make([]any, 0, 3+len(terms))
	args = append(args, "hmget", key, completeField)
	for _, term := range terms {
		args = append(args, term)
	}
	// The library's HMGet takes a number in any answer, even +99999999999, as the
	// length of an array, and allocates that.
	return answer{pipe.HLen(ctx, key), pipe.Do(ctx, args...)}
}

// askHeader queues the commands for the header of a version and an answer.
func askHeader(ctx context.Context, pipe redis.Pipeliner, name, id string, terms []string) (*redis.StringCmd, answer) {
	return pipe.Get(ctx, metaKey(name, id)), ask(ctx, pipe, rowsKey(name, id), terms)
}

// failure returns the first error of a pipeline that counts against Redis, else
// an answer about a key, if any.
func failure(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		if e := cmd.Err(); e != nil && !refusal(e) {
			return e
		}
	}
	return err
}

// rows returns the rows of the requested terms. It returns [ErrGone] if the
// version is not complete, and [ErrMissingRows] if it does not have as many
// rows as were pushed. bad are the terms with bad rows, or without one although
// they must have one; then the error wraps [simmatrix.ErrRow] or
// [ErrMissingRows]. Other errors are about a malformed answer. Errors name no
// term, which would come from a user's query.
func (a *answer) rows(
	codec *simmatrix.RowCodec, v *Version, terms []string, must func(term string) bool,
) (rows []simmatrix.Row, bad []string, err error) {
	values, err := a.values.Slice()
	if err == nil {
		err = a.fields.Err()
	}
	switch {
	case err != nil:
		return nil, nil, err
	case len(values) != 1+len(terms):
		return nil, nil, fmt.Errorf("%d values, want %d", len(values), 1+len(terms))
	case values[0] != any(v.ID):
		return nil, nil, ErrGone
	}
	if err := v.checkFields(a.fields.Val()); err != nil {
		return nil, nil, err
	}
	rows = make([]simmatrix.Row, len(terms))
	for k, value := range values[1:] {
		var rowErr error
		switch sealed := value.(type) {
		case nil:
			if must(terms[k]) {
				rowErr = fmt.Errorf("%w: of terms that it has", ErrMissingRows)
			}
		case string:
			rows[k], rowErr = openRow(codec, terms[k], sealed)
		default:
			return nil, nil, fmt.Errorf("a row is a %T", value)
		}
		if rowErr != nil {
			bad, err = append(bad, terms[k]), rowErr
		}
	}
	return rows, bad, err
}

// checkFields returns an error that wraps [ErrMissingRows] unless the hash of
// rows has as many fields as were pushed: this shows a lost row before it is
// read, unless somebody also adds a field.
func (v *Version) checkFields(fields int64) error {
	if rows := uint64(max(fields-1-int64(v.chunks()), 0)); rows != v.Terms { // one field is the mark
		return fmt.Errorf("%w: %d rows, want %d", ErrMissingRows, rows, v.Terms)
	}
	return nil
}

const (
	fingerprintBytes = 8
	// chunkTerms is the average number of fingerprints in a chunk: 16 KiB.
	chunkTerms = 2048
	// maxSetTerms limits what a proxy reads and keeps of a version: 64 MiB. Larger
	// matrices have only their number of rows checked.
	maxSetTerms = 1 << 23
	// chunkField begins the fields of chunks. Unlike terms it is not UTF-8.
	chunkField = "\xff"
)

// A termSet knows the terms of a version, to distinguish a lost row from a term
// that the matrix lacks, and to find expressions in texts without asking Redis.
// It has a fingerprint of each term, sorted. The probability that it has a term
// that the matrix lacks is the number of terms divided by 2^64. Nobody can
// choose such a term without the version's ID, which is part of the hash.
type termSet []uint64

// fingerprint is the beginning of a SHA-256.
func fingerprint(id, term string) uint64 {
	sum := sha256.Sum256([]byte(id + "\x00" + term))
	return binary.BigEndian.Uint64(sum[:])
}

// has reports whether a term of version id is in the set.
func (s termSet) has(id, term string) bool {
	_, found := slices.BinarySearch(s, fingerprint(id, term))
	return found
}

func (v *Version) chunks() int {
	if v.Terms > maxSetTerms {
		return 0
	}
	return int((v.Terms + chunkTerms - 1) / chunkTerms)
}

// termChunks returns the set of the terms of m, version v, as Redis holds it:
// in chunks of equal ranges.
func termChunks(m *simmatrix.Matrix, v *Version) [][]byte {
	chunks := make([][]byte, v.chunks())
	if len(chunks) == 0 {
		return nil
	}
	set := make(termSet, 0, m.Len())
	for term := range m.Rows() {
		set = append(set, fingerprint(v.ID, term))
	}
	slices.Sort(set)
	for _, f := range set {
		k, _ := bits.Mul64(f, uint64(len(chunks)))
		chunks[k] = binary.BigEndian.AppendUint64(chunks[k], f)
	}
	return chunks
}

// A termReader reads the set of terms of a version. After a failure it goes on
// where it was.
type termReader struct {
	id   string // of the version
	next int    // chunk to read next
	set  termSet
}

// read reads the set of v, of whose rows get reads a field. Errors are those of
// get, or wrap [ErrMissingRows] or [simmatrix.ErrRow] if a chunk is bad.
func (t *termReader) read(v *Version, get func(field string) (string, error)) error {
	if t.id != v.ID {
		*t = termReader{id: v.ID, set: make(termSet, 0, v.chunks()*chunkTerms)}
	}
	for ; t.next < v.chunks(); t.next++ {
		field := chunkField + strconv.Itoa(t.next)
		sealed, err := get(field)
		if errors.Is(err, redis.Nil) {
			err = fmt.Errorf("%w: a part of the set of terms", ErrMissingRows)
		}
		if err != nil {
			return err
		}
		chunk, err := unseal(v.ID+field, sealed)
		if err != nil {
			return err
		}
		for b := []byte(chunk); len(b) >= fingerprintBytes; b = b[fingerprintBytes:] {
			t.set = append(t.set, binary.BigEndian.Uint64(b))
		}
	}
	return nil
}
