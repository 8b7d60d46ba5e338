package rowstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

// checksumBytes is the size of the checksum at the end of a row.
const checksumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errChecksum = fmt.Errorf("%w: its checksum is another", simmatrix.ErrRow)

// seal returns what Redis stores for a term: the encoded row and a CRC-32C of
// row and term, little endian. It detects every flipped bit and a row under the
// wrong term. A row marks its own end, so no two pairs of row and term are the
// same bytes.
func seal(term, encoded string) string {
	return string(binary.LittleEndian.AppendUint32([]byte(encoded), checksum(term, encoded)))
}

func checksum(term, encoded string) uint32 {
	return crc32.Update(crc32.Checksum([]byte(encoded), castagnoli), castagnoli, []byte(term))
}

// unseal undoes [seal]. It reports whether the checksum is right.
func unseal(term, sealed string) (encoded string, ok bool) {
	n := len(sealed) - checksumBytes
	if n < 0 || binary.LittleEndian.Uint32([]byte(sealed[n:])) != checksum(term, sealed[:n]) {
		return "", false
	}
	return sealed[:n], true
}

// openRow returns the row that Redis stores for a term. Its errors wrap
// [simmatrix.ErrRow].
func openRow(codec *simmatrix.RowCodec, term, sealed string) (simmatrix.Row, error) {
	encoded, ok := unseal(term, sealed)
	if !ok {
		return simmatrix.Row{}, errChecksum
	}
	row, err := codec.Decode(encoded, maxRowBytes)
	if err == nil && row.IsZero() {
		err = fmt.Errorf("%w: it is empty", simmatrix.ErrRow)
	}
	return row, err
}

// An answer is Redis's answer about some terms of a version.
type answer struct {
	fields int64 // of the whole hash of rows
	values []any // the mark of a complete version, then the value of each term
}

// lookUp reads the rows of terms in one round trip. It counts the fields first,
// so that rows restored in between do not look like terms that the version
// never had.
func lookUp(ctx context.Context, c redis.UniversalClient, key string, terms []string) (answer, error) {
	args := make([]any, 0, 3+len(terms))
	args = append(args, "hmget", key, completeField)
	for _, term := range terms {
		args = append(args, term)
	}
	pipe := c.Pipeline()
	fields := pipe.HLen(ctx, key)
	// The library's HMGet reads a number in any answer, even +99999999999, as the
	// length of an array, and allocates that.
	values := pipe.Do(ctx, args...)
	if err := execute(ctx, pipe); err != nil {
		return answer{}, err
	}
	all, err := values.Slice()
	return answer{fields.Val(), all}, err
}

// rows returns the rows of the requested terms. It returns [ErrGone] if the
// version is not complete and [ErrMissingRows] if it has another number of rows
// than were pushed. With bad, the terms whose row is bad or missing although
// the set has them, comes an error that wraps [simmatrix.ErrRow] or
// [ErrMissingRows]. Other errors are about a malformed answer. They name no
// term, which comes from a user's query.
func (a *answer) rows(
	codec *simmatrix.RowCodec, v *Version, set termSet, terms []string,
) (rows []simmatrix.Row, bad []string, err error) {
	if len(a.values) != 1+len(terms) {
		return nil, nil, fmt.Errorf("%d values, want %d", len(a.values), 1+len(terms))
	}
	switch mark := a.values[0].(type) {
	case nil:
		return nil, nil, ErrGone
	case string:
		if mark != v.ID {
			return nil, nil, fmt.Errorf("marked as version %.80q", mark)
		}
	default:
		return nil, nil, fmt.Errorf("marked with a %T", mark)
	}
	if err := v.checkFields(a.fields); err != nil {
		return nil, nil, err
	}
	rows = make([]simmatrix.Row, len(terms))
	for k, value := range a.values[1:] {
		switch sealed := value.(type) {
		case nil:
			if set.has(v.ID, terms[k]) {
				bad, err = append(bad, terms[k]), fmt.Errorf("%w: of terms that it has", ErrMissingRows)
			}
		case string:
			row, rowErr := openRow(codec, terms[k], sealed)
			if rowErr != nil {
				bad, err = append(bad, terms[k]), rowErr
			}
			rows[k] = row
		default:
			return nil, nil, fmt.Errorf("a row is a %T", value)
		}
	}
	return rows, bad, err
}

// checkFields returns an error that wraps [ErrMissingRows] unless the hash of
// rows has as many fields as were pushed: this shows a lost row before it is
// read, unless somebody also adds a field.
func (v *Version) checkFields(fields int64) error {
	if rows := uint64(max(fields-1-int64(v.chunks()), 0)); rows != v.Terms { // one is the mark
		return fmt.Errorf("%w: %d rows, want %d", ErrMissingRows, rows, v.Terms)
	}
	return nil
}

// isDamage reports whether err says that rows of a version are missing or bad,
// not that Redis is unavailable.
func isDamage(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, ErrMissingRows) || errors.Is(err, simmatrix.ErrRow)
}
