package configs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Duration is a non-negative time span, written as numbers with units:
// "50ms", "1m30s". The units are those of [time.ParseDuration].
type Duration time.Duration

// ParseDuration parses a Duration. The number needs a unit and has no sign.
func ParseDuration(s string) (Duration, error) {
	if s == "" || s[0] < '.' || s[0] > '9' || s == "0" { // a leading sign or a bare 0
		return 0, errDuration
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		err = errDuration
	}
	return Duration(d), err
}

var errDuration = errors.New("must be a duration: a number with a unit, such as 50ms, 30s or 1m30s")

// String returns d as [ParseDuration] reads it, without trailing zero units:
// "1m", not "1m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText returns [Duration.String].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Bytes is a non-negative size, written as a whole number with a unit: B; kB,
// MB, GB (powers of 1000); KiB, MiB, GiB (powers of 1024).
type Bytes int64

const (
	kibibyte Bytes = 1 << 10
	mebibyte Bytes = 1 << 20
	gibibyte Bytes = 1 << 30
)

type unit struct {
	name string
	size Bytes
}

// units returns the units in the order that String prefers.
func units() []unit {
	return []unit{{"GiB", gibibyte}, {"MiB", mebibyte}, {"KiB", kibibyte}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}
}

var errBytes = errors.New("must be a size: a whole number with a unit of B, kB, MB, GB, KiB, MiB or GiB, such as 64MiB")

// ParseBytes parses a size. There is no space before the unit, and case
// matters.
func ParseBytes(s string) (Bytes, error) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil {
		return 0, errBytes
	}
	for _, u := range units() {
		if s[digits:] == u.name && n <= math.MaxInt64/int64(u.size) {
			return Bytes(n) * u.size, nil
		}
	}
	return 0, errBytes
}

// String returns b as [ParseBytes] reads it, in the first of GiB, MiB, KiB, GB,
// MB, kB and B that gives a whole number.
func (b Bytes) String() string {
	for _, u := range units() {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return "0B"
}

// MarshalText returns [Bytes.String].
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// A Secret is a text that must not be printed. Formatting, marshaling and
// logging give a fixed mark; only [Secret.Reveal] returns the text.
type Secret struct{ value string }

// NewSecret wraps s.
func NewSecret(s string) Secret { return Secret{value: s} }

// Reveal returns the text, or "" if there is none. Pass it only to code that
// connects, never to code that writes.
func (s Secret) Reveal() string { return s.value }

// String returns "[redacted]", or "" if the secret is empty.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "[redacted]"
}

// Format writes [Secret.String] for all verbs except %T and %p. Without it %d
// and %#v would print the field.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns [Secret.String].
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns [Secret.String] for package slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// nameRule describes what isName accepts. nameChars are the allowed characters.
const (
	nameRule  = "1 to 64 letters (A to Z, a to z), digits, dots, _ and -"
	nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
)

// isName reports whether s can be the name of a matrix or profile: in Redis
// keys, on the command line, and in metric labels.
func isName(s string) bool { return s != "" && len(s) <= 64 && strings.Trim(s, nameChars) == "" }

// hasSpace reports whether s contains white space or control characters.
func hasSpace(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}
