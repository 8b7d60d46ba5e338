// Package terminal is how the commands speak to who runs them: mistakes in what
// the user wrote, progress, and text that is safe to print.
package terminal

import (
	"strconv"
	"strings"
	"unicode"
)

// A UsageError is an error in what the user wrote: flags, arguments,
// configuration.
type UsageError struct{ error }

// Usage marks an error, if there is one, as one of usage.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Unwrap returns the error that is marked.
func (e UsageError) Unwrap() error { return e.error }

// Visible returns text as it can be printed in a line of a table: quoted where
// it has what would move the cursor.
func Visible(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
