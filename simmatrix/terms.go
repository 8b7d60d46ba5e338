package simmatrix

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckTerm returns an error for a term that cannot have a row.
func CheckTerm(t string) error {
	switch {
	case t == "":
		return errors.New(`term "" is empty`)
	case len(t) > MaxTermBytes:
		return fmt.Errorf("term %.40q: too long, %d bytes of at most %d", t, len(t), MaxTermBytes)
	case LooksUTF16(t):
		return fmt.Errorf("term %.40q: not UTF-8, it looks like UTF-16", t)
	case !utf8.ValidString(t):
		return fmt.Errorf("term %.40q: not UTF-8", t)
	case IsExpression(t):
		return checkExpression(t)
	}
	return nil
}

// LooksUTF16 reports whether text begins with a UTF-16 byte order mark.
func LooksUTF16(text string) bool {
	return strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff")
}

// MaxFormBytes is the length of the longest form of a term.
const MaxFormBytes = 255

// A form has formMark before each other form of the term, and noteMark before a
// note on it.
const (
	formMark = "\x1e"
	noteMark = "\x1f"
)

// WithForms returns the form of a term that people write as written, "" if
// unknown, and in other forms, from the most frequent one. What a form cannot
// have, repeats or is too long with what is before it is left out. It returns
// "" if nothing is left.
func WithForms(term, written string, others ...string) string {
	form := ""
	if written != term && CheckForm(written) == nil {
		form = written
	}
	seen := []string{term, form}
	for _, other := range others {
		if len(form)+len(formMark)+len(other) > MaxFormBytes || CheckForm(other) != nil || slices.Contains(seen, other) {
			continue
		}
		form += formMark + other
		seen = append(seen, other)
	}
	return form
}

// OtherForms returns the forms of a term in its form but for the one that
// people write most, see [WithForms].
func OtherForms(form string) []string {
	form, _, _ = strings.Cut(form, noteMark)
	_, others, some := strings.Cut(form, formMark)
	if !some {
		return nil
	}
	return strings.Split(others, formMark)
}

// WithNote returns a form with a note on where an expression comes from, such
// as "acronym of 12 documents". It goes where the form goes. What is too long
// is cut.
func WithNote(written, note string) string {
	if note == "" {
		return written
	}
	form := written + noteMark + note
	return strings.ToValidUTF8(form[:min(len(form), MaxFormBytes)], "")
}

// SplitForm returns how people write a term, "" if unknown, and the note on it,
// "" for none.
func SplitForm(form string) (written, note string) {
	written, note, _ = strings.Cut(form, noteMark)
	written, _, _ = strings.Cut(written, formMark)
	return written, note
}

// CheckForm returns an error for a bad form of a term: empty, too long, not
// UTF-8, or with characters that change how surrounding text looks, but for the
// marks of other forms and of a note.
func CheckForm(form string) error {
	before, note, noted := strings.Cut(form, noteMark)
	if noted && note == "" {
		return fmt.Errorf("form %.40q: an empty note", form)
	}
	others := strings.Split(before, formMark)[1:]
	odd := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
	switch {
	case form == "" || len(form) > MaxFormBytes:
		return fmt.Errorf("form %.40q: %d bytes, want 1 to %d", form, len(form), MaxFormBytes)
	case !utf8.ValidString(form):
		return fmt.Errorf("form %.40q: not UTF-8", form)
	case slices.Contains(others, ""):
		return fmt.Errorf("form %.40q: an empty other form", form)
	case strings.ContainsFunc(strings.ReplaceAll(before, formMark, ""), odd) || strings.ContainsFunc(note, odd):
		return fmt.Errorf("form %.40q: has control characters", form)
	}
	return nil
}

// evidencePrefix begins the names of origins learned from clicks or judgments.
const evidencePrefix = "learned: "

// EvidenceOrigin returns the origin's name of an entry that was learned from
// count units, such as "learned: 2 clicks". unit is in the singular.
func EvidenceOrigin(count int, unit string) string {
	if count != 1 {
		unit += "s"
	}
	return evidencePrefix + strconv.Itoa(count) + " " + unit
}

// DescribeOrigins returns the names of an entry's origins, with all of
// "learned:" added up to one, such as "learned: 31 clicks".
func DescribeOrigins(origins []string) []string {
	var said []string
	count, unit := 0, ""
	for _, name := range origins {
		number, of, _ := strings.Cut(strings.TrimPrefix(name, evidencePrefix), " ")
		if n, err := strconv.Atoi(number); strings.HasPrefix(name, evidencePrefix) && err == nil {
			count, unit = count+n, strings.TrimSuffix(of, "s")
		} else {
			said = append(said, name)
		}
	}
	if count > 0 {
		said = append(said, EvidenceOrigin(count, unit))
	}
	return said
}
