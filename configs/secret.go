package configs

import (
	"fmt"
	"io"
	"log/slog"
)

// A Secret is a text that must not be printed. Whatever formats, marshals or
// logs it gets a fixed mark instead; only [Secret.Reveal] gives it out. The
// zero Secret holds none.
type Secret struct {
	value string
}

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

// Format writes [Secret.String] for every verb but %T and %p, which package fmt
// keeps to itself. Without it verbs that do not fit a Stringer, such as %d and
// %#v, print the field inside.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is [Secret.String].
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is [Secret.String] for package slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
