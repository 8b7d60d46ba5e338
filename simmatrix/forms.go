package simmatrix

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxFormBytes is the length of the longest form of a term.
const MaxFormBytes = 255

// CheckForm returns an error for what is no form of a term: for what is empty,
// too long or not UTF-8, or has characters that would change how the text
// around it looks.
func CheckForm(form string) error {
	odd := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
	switch {
	case form == "" || len(form) > MaxFormBytes:
		return fmt.Errorf("form %.40q: %d bytes, want 1 to %d", form, len(form), MaxFormBytes)
	case !utf8.ValidString(form):
		return fmt.Errorf("form %.40q: not UTF-8", form)
	case strings.ContainsFunc(form, odd):
		return fmt.Errorf("form %.40q: has control characters", form)
	}
	return nil
}

// TakeForms sets the forms of the table's terms: of each that of the first
// source that has one. Forms that [CheckForm] refuses are none.
func (t *Table) TakeForms(sources ...func(term string) string) {
	t.Forms = nil
	for i, term := range t.Terms {
		for _, form := range sources {
			f := form(term)
			if CheckForm(f) != nil {
				continue
			}
			if f != term {
				if t.Forms == nil {
					t.Forms = make([]string, len(t.Terms))
				}
				t.Forms[i] = f
			}
			break
		}
	}
}

// Form returns the form in which people write a term, "" where that is the term
// itself or is not known.
func (t *Table) Form(term string) string {
	if t.Forms == nil {
		return ""
	}
	i, ok := slices.BinarySearch(t.Terms, term)
	if !ok {
		return ""
	}
	return t.Forms[i]
}

// Form returns the form in which people write a term, "" where that is the term
// itself or is not known.
func (m *Matrix) Form(term string) string { return m.table.Form(term) }

// checkForms returns an error for forms that TakeForms would not set.
func (t *Table) checkForms() error {
	if t.Forms == nil {
		return nil
	}
	if len(t.Forms) != len(t.Terms) || t.countForms() == 0 {
		return errors.New("forms of other terms, or none")
	}
	for i, form := range t.Forms {
		if form == "" {
			continue
		}
		if err := CheckForm(form); err != nil {
			return err
		}
		if form == t.Terms[i] {
			return fmt.Errorf("form %.40q is the term itself", form)
		}
	}
	return nil
}

func (t *Table) countForms() (n uint64) {
	for _, form := range t.Forms {
		if form != "" {
			n++
		}
	}
	return n
}

// Forms yields the terms that people write in another form, with that form, in
// ascending byte order of the term.
func (m *Matrix) Forms() iter.Seq2[string, string] {
	return func(yield func(term, form string) bool) {
		for i, form := range m.table.Forms {
			if form != "" && !yield(m.table.Terms[i], form) {
				return
			}
		}
	}
}
