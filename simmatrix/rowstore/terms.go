package rowstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/akin-search/akin/simmatrix"
)

const (
	fingerprintBytes = 8
	// chunkTerms is the average number of fingerprints in a chunk: 16 KiB.
	chunkTerms = 2048
	// maxSetTerms bounds what a proxy reads and keeps of a version: 64 MiB. Of
	// larger matrices only the number of rows is checked.
	maxSetTerms = 1 << 23
	// chunkField begins the fields of chunks. It is not UTF-8, as terms are.
	chunkField = "\xff"
)

// A termSet knows the terms of a version, so that a lost row is not taken for a
// term that the matrix lacks. It has a fingerprint of each term, sorted, in
// chunks of equal ranges. The chance that it has a term that the matrix lacks
// is the number of terms divided by 2^64. Nobody can choose such a term without
// the version's ID, which is part of the hash.
type termSet []string

// fingerprint is the beginning of a SHA-256.
func fingerprint(id, term string) uint64 {
	sum := sha256.Sum256([]byte(id + "\x00" + term))
	return binary.BigEndian.Uint64(sum[:])
}

// chunkOf returns which of n chunks has a fingerprint.
func chunkOf(fingerprint uint64, n int) int {
	k, _ := bits.Mul64(fingerprint, uint64(n))
	return int(k)
}

// chunks returns the number of chunks of the version's set of terms.
func (v *Version) chunks() int {
	if v.Format < termsFormat || v.Terms > maxSetTerms {
		return 0
	}
	return int((v.Terms + chunkTerms - 1) / chunkTerms)
}

// newTermSet returns the set of the terms of m, the version v.
func newTermSet(m *simmatrix.Matrix, v *Version) termSet {
	set := make(termSet, v.chunks())
	if len(set) == 0 {
		return nil
	}
	all := make([]uint64, 0, m.Len())
	for term := range m.Rows() {
		all = append(all, fingerprint(v.ID, term))
	}
	slices.Sort(all)
	chunks := make([][]byte, len(set))
	for _, f := range all {
		k := chunkOf(f, len(set))
		chunks[k] = binary.BigEndian.AppendUint64(chunks[k], f)
	}
	for k, chunk := range chunks {
		set[k] = string(chunk)
	}
	return set
}

// has reports whether a term of version id is in the set.
func (s termSet) has(id, term string) bool {
	if len(s) == 0 {
		return false
	}
	want := fingerprint(id, term)
	chunk := s[chunkOf(want, len(s))]
	_, found := sort.Find(len(chunk)/fingerprintBytes, func(k int) int {
		return cmp.Compare(want, binary.BigEndian.Uint64([]byte(chunk[k*fingerprintBytes:(k+1)*fingerprintBytes])))
	})
	return found
}

// field returns the field of the k-th chunk and what Redis stores there.
func (s termSet) field(id string, k int) (field, sealed string) {
	field = chunkField + strconv.Itoa(k)
	return field, seal(id+field, s[k])
}

// readTerms appends to set the chunks that it lacks. Each is read in one call
// of call, whose errors it returns. Errors that wrap [ErrMissingRows] or
// [errChecksum] say that a chunk is missing or damaged.
func readTerms(
	ctx context.Context, c redis.Cmdable, name string, v *Version, set *termSet,
	call func(context.Context, func(context.Context) error) error,
) error {
	for k := len(*set); k < v.chunks(); k++ {
		field := chunkField + strconv.Itoa(k)
		var sealed string
		err := call(ctx, func(ctx context.Context) (err error) {
			sealed, err = c.HGet(ctx, rowsKey(name, v.ID), field).Result()
			return err
		})
		if errors.Is(err, redis.Nil) {
			err = fmt.Errorf("%w: a part of the set of terms", ErrMissingRows)
		}
		if err != nil {
			return err
		}
		chunk, ok := unseal(v.ID+field, sealed)
		if !ok {
			return errChecksum
		}
		*set = append(*set, chunk)
	}
	return nil
}
