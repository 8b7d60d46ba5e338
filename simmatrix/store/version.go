package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/akin-search/akin/simmatrix"
)

const (
	// metaFormat is the version of the layout in Redis, and expressionsFormat that
	// of a matrix with expressions, which earlier programs do not serve.
	metaFormat, expressionsFormat = 4, 5
	// maxByBytes limits [Version.By], maxNameBytes a part of a key.
	maxByBytes, maxNameBytes = 256, 64
	// idLayout is UTC and sorts by time as text.
	idLayout = "20060102T150405.000000"
)

// Errors that other errors wrap: for a version of another format, damaged or in
// an unreadable matrix file; and for a bad part of a key.
var (
	ErrBadVersion = errors.New("the version cannot be served")
	ErrName       = errors.New("bad name")
)

// A Version is a complete version of a matrix in Redis. Its JSON is the header
// there, without the checksum.
type Version struct {
	// ID identifies the version; IDs sort by time as text.
	ID     string `json:"-"`
	Format int    `json:"format"` // of the layout in Redis
	simmatrix.Meta
	// Checksum identifies the content, as [simmatrix.Matrix.Checksum] does.
	Checksum string `json:"checksum"`
	// Pushed is when the push began, UTC; of a file, when it was written.
	Pushed time.Time `json:"pushed"`
	// By is who pushed it, such as user@host, or "": at most 256 bytes without
	// control characters.
	By string `json:"by,omitempty"`
	// Changed says that [Admin.Change] made it from the version before it.
	Changed bool `json:"changed,omitempty"`
	// Frequent are the terms with the highest document frequencies, at most 256. A
	// proxy reads their rows before it serves the version. It is empty if the
	// matrix has no document frequencies.
	Frequent []string `json:"frequent,omitempty"`
	// Words are its known words; nil if an earlier program pushed it.
	Words *Words `json:"words,omitempty"`
	// Active reports whether proxies serve this version.
	Active bool `json:"-"`
}

func activeKey(name string) string   { return "akin:{" + name + "}:active" }
func versionsKey(name string) string { return "akin:{" + name + "}:versions" }
func historyKey(name string) string  { return "akin:{" + name + "}:history" }
func metaKey(name, id string) string { return "akin:{" + name + "}:meta:" + id }
func rowsKey(name, id string) string { return "akin:{" + name + "}:rows:" + id }

func formsKey(name, id string) string { return "akin:{" + name + "}:forms:" + id }
func wordsKey(name, id string) string { return "akin:{" + name + "}:words:" + id }

// completeField is the field of a rows hash with the version's own ID, set when
// the version is complete. No term is empty.
const completeField = ""

// newID returns a version ID that sorts by time and is unique.
func newID(now time.Time) string {
	var b [4]byte
	rand.Read(b[:]) // never fails, says crypto/rand
	return now.UTC().Format(idLayout) + "-" + hex.EncodeToString(b[:])
}

// checkName returns an error that wraps [ErrName] unless s has 1 to 64 letters,
// digits, '.', '_' or '-'. what says what s names.
func checkName(what, s string) error {
	if s == "" || len(s) > maxNameBytes {
		return fmt.Errorf("%w: %s has %d bytes, want 1 to %d", ErrName, what, len(s), maxNameBytes)
	}
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return fmt.Errorf("%w: %s %q may have letters, digits, '.', '_' and '-'", ErrName, what, s)
		}
	}
	return nil
}

// checkBy returns an error for a By that would not fit in a line of a list.
func checkBy(by string) error {
	if len(by) > maxByBytes || !utf8.ValidString(by) || strings.ContainsFunc(by, unicode.IsControl) {
		return fmt.Errorf("%w: who pushes: %.40q is longer than %d bytes, not UTF-8 or has control characters", ErrName, by, maxByBytes)
	}
	return nil
}

// formatOf returns the version of the layout for a matrix.
func formatOf(m *simmatrix.Meta) int {
	if m.Expressions > 0 {
		return expressionsFormat
	}
	return metaFormat
}

func encodeVersion(v Version) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode the header: %w", err)
	}
	return sealHeader(string(b)), nil
}

// sumMember is the last member of a header: the CRC-32C of the rest.
const sumMember = `,"crc32c":`

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sealHeader(text string) string {
	return strings.TrimSuffix(text, "}") + sumMember + strconv.FormatUint(uint64(crc32.Checksum([]byte(text), castagnoli)), 10) + "}"
}

// parseVersion parses the meta key of version id. Errors wrap [ErrBadVersion].
func parseVersion(id, text string) (Version, error) {
	v := Version{ID: id}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return Version{}, fmt.Errorf("%w: header of %s: %w", ErrBadVersion, id, err)
	}
	if v.Format != formatOf(&v.Meta) {
		return Version{}, fmt.Errorf("%w: %s has format %d, this program reads %d, and %d with expressions; push the matrix with this program",
			ErrBadVersion, id, v.Format, metaFormat, expressionsFormat)
	}
	if end := strings.LastIndex(text, sumMember); end < 0 || sealHeader(text[:end]+"}") != text {
		return Version{}, fmt.Errorf("%w: header of %s: its checksum is another", ErrBadVersion, id)
	}
	if v.Terms == 0 || v.Terms > simmatrix.MaxTerms || v.Checksum == "" {
		return Version{}, fmt.Errorf("%w: header of %s: %d terms, checksum %q", ErrBadVersion, id, v.Terms, v.Checksum)
	}
	return v, nil
}
