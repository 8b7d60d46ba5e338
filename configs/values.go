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

// A Duration is a span of time, never negative, written as numbers with units:
// "50ms", "1m30s". The units are those of [time.ParseDuration].
type Duration time.Duration

// ParseDuration reads a Duration. The number must have a unit and no sign.
func ParseDuration(s string) (Duration, error) {
	if s == "" || s[0] < '.' || s[0] > '9' || s == "0" { // A leading sign or a bare 0.
		return 0, errDuration
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		err = errDuration
	}
	return Duration(d), err
}

var errDuration = errors.New("must be a duration: a number with a unit, such as 50ms, 30s or 1m30s")

// String writes d so that [ParseDuration] reads it back, without units that
// are zero at the end: "1m", not "1m0s".
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

// MarshalText is [Duration.String].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Bytes is an amount of memory or data, never negative, written as a whole
// number with a unit: B; kB, MB, GB (powers of 1000); KiB, MiB, GiB (powers of
// 1024).
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

// units returns the units, the one to prefer in writing first.
func units() []unit {
	return []unit{{"GiB", gibibyte}, {"MiB", mebibyte}, {"KiB", kibibyte}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}
}

var errBytes = errors.New("must be a size: a whole number with a unit of B, kB, MB, GB, KiB, MiB or GiB, such as 64MiB")

// ParseBytes reads an amount. Nothing stands between the number and the unit;
// upper and lower case count.
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

// String writes b so that [ParseBytes] reads it back, in the first of GiB,
// MiB, KiB, GB, MB, kB and B that gives a whole number.
func (b Bytes) String() string {
	for _, u := range units() {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return "0B"
}

// MarshalText is [Bytes.String].
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// A Secret is a text that must not be printed. Whatever formats, marshals or
// logs it gets a fixed mark instead; only [Secret.Reveal] gives it out.
type Secret struct{ value string }

// NewSecret wraps s.
func NewSecret(s string) Secret { return Secret{value: s} }

// Reveal returns the text, "" where there is none. Give it only to code that
// connects, never to code that writes.
func (s Secret) Reveal() string { return s.value }

// String returns "[redacted]", or "" where there is nothing to hide.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "[redacted]"
}

// Format writes [Secret.String] for every verb but %T and %p. Without it %d and
// %#v print the field inside.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is [Secret.String].
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is [Secret.String] for package slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// nameRule says what isName wants, nameChars are the characters in it.
const (
	nameRule  = "1 to 64 letters (A to Z, a to z), digits, dots, _ and -"
	nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
)

// isName reports whether s can name a matrix or a profile: in keys of Redis, on
// the command line and as a label of metrics.
func isName(s string) bool { return s != "" && len(s) <= 64 && strings.Trim(s, nameChars) == "" }

// hasSpace reports whether s holds white space or control characters.
func hasSpace(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}
