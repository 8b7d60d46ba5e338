package rowstore

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Bounds on the parts of a key.
const (
	maxNameBytes = 64
	// idLayout sorts by time as text; UTC.
	idLayout = "20060102T150405.000000"
)

// ErrName is wrapped by the errors for a matrix name or a version that cannot
// be part of a key.
var ErrName = errors.New("bad name")

func activeKey(name string) string   { return "akin:{" + name + "}:active" }
func versionsKey(name string) string { return "akin:{" + name + "}:versions" }
func historyKey(name string) string  { return "akin:{" + name + "}:history" }
func metaKey(name, id string) string { return "akin:{" + name + "}:meta:" + id }
func rowsKey(name, id string) string { return "akin:{" + name + "}:rows:" + id }

// completeField is the field of a rows hash that holds the version's own ID
// once the version is complete. No term is empty, so it collides with none.
const completeField = ""

// newID returns a version ID that sorts by time and is unique even within a
// microsecond.
func newID(now time.Time) string {
	var b [4]byte
	rand.Read(b[:]) // never fails, says crypto/rand
	return now.UTC().Format(idLayout) + "-" + hex.EncodeToString(b[:])
}

// checkName returns an error that wraps [ErrName] unless s has 1 to 64 bytes,
// each a letter, a digit, '.', '_' or '-'. What says which name it is.
func checkName(what, s string) error {
	if s == "" || len(s) > maxNameBytes {
		return fmt.Errorf("%w: %s has %d bytes, want 1 to %d", ErrName, what, len(s), maxNameBytes)
	}
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return fmt.Errorf("%w: %s %q may hold letters, digits, '.', '_' and '-'", ErrName, what, s)
		}
	}
	return nil
}
