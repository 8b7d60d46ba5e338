package searches

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxBytes is the length of the longest text, fields and index that are kept.
// People type less.
const maxBytes = 256

// Text returns a text as it is counted: in lower case, in Unicode's form NFC,
// with single blanks and without control characters. It returns "" for a text
// that is not kept: one of more than 256 bytes, and one that has something like
// an e-mail address, a number of ten digits or a token in it.
func Text(typed string) string {
	if len(typed) > 4*maxBytes {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
			return ' '
		}
		if unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' { // some scripts need joiners
			return -1
		}
		return r
	}, typed)
	text = norm.NFC.String(strings.ToLower(strings.Join(strings.Fields(text), " ")))
	if len(text) > maxBytes || isPrivate(norm.NFKC.String(text)) {
		return ""
	}
	return text
}

// manyDigits is how many digits in a row, or in groups, may be the number of a
// person or an account; betweenDigits may stand between the groups.
const (
	manyDigits    = 10
	betweenDigits = " .,:;/()+_-"
)

// isPrivate reports whether a text may be about a person: has something like an
// e-mail address, a long number or a token in it.
func isPrivate(text string) bool {
	digits := 0
	before, beforeThat := ' ', ' '
	for _, r := range text {
		switch {
		case before == '@' && beforeThat != ' ' && r != ' ':
			return true
		case unicode.IsDigit(r):
			digits++
		case !strings.ContainsRune(betweenDigits, r):
			digits = 0
		}
		if digits == manyDigits {
			return true
		}
		before, beforeThat = r, before
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		if isToken(word) {
			return true
		}
	}
	return false
}

// minToken is the length of the shortest token.
const minToken = 16

// isToken reports whether a word is long and mixes letters and digits as people
// do not: has four digits, or changes between the two twice.
func isToken(word string) bool {
	var digits, letters, changes int
	before := ' '
	for _, r := range word {
		switch {
		case '0' <= r && r <= '9':
			digits++
			if 'a' <= before && before <= 'z' {
				changes++
			}
		case 'a' <= r && r <= 'z':
			letters++
			if '0' <= before && before <= '9' {
				changes++
			}
		}
		before = r
	}
	return len(word) >= minToken && letters > 0 && (digits >= 4 || changes >= 2)
}
