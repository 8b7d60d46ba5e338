package combine

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// Bounds of a file of overrides, which is written by hand: larger sources of
// pairs belong in a matrix of their own.
const (
	maxOverrideBytes = 32 << 20
	// maxProblems is how many bad lines are named at once.
	maxProblems = 100
)

// ErrOverrides is wrapped by the errors of [ParseOverrides]: the file has bad
// lines, or too many.
var ErrOverrides = errors.New("bad overrides")

// oneWaySign stands between the terms of a rule that goes one way.
const oneWaySign = "->"

// ParseOverrides reads a file of overrides, at most one rule a line:
//
//	set car automobile 0.9       each is a neighbor of the other, at 0.9
//	set car -> vehicle 0.5       vehicle is a neighbor of car, at 0.5
//	pin car automobile           the similarity of the source stays
//	ban car jaguar               never neighbors
//	ban car -> "station wagon"   a term with blanks, quoted as in Go
//
// Words are separated by blanks or tabs. A # that begins a word begins a
// comment. A term is quoted if it has blanks or control characters, begins with
// # or a double quote, or is ->. Terms are index terms. A second rule for an
// entry is an error, even if it is the same.
//
// The error wraps [ErrOverrides] and names the bad lines, at most a hundred; a
// file of more than [simmatrix.MaxOverrideLines] lines or 32 MiB is refused.
// Errors of r are returned as they are.
func ParseOverrides(r io.Reader) (*Overrides, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxOverrideBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxOverrideBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrOverrides, maxOverrideBytes)
	}
	if mark := string(data[:min(len(data), 2)]); mark == "\xff\xfe" || mark == "\xfe\xff" {
		return nil, fmt.Errorf("%w: the file is UTF-16: save it as UTF-8", ErrOverrides)
	}
	o := &Overrides{}
	var problems []error
	for text := range strings.Lines(string(data)) {
		switch {
		case len(o.lines) == simmatrix.MaxOverrideLines:
			return nil, fmt.Errorf("%w: more than %d lines", ErrOverrides, simmatrix.MaxOverrideLines)
		case len(problems) == maxProblems:
			problems = append(problems, fmt.Errorf("and more from line %d on", len(o.lines)+1))
			return nil, fmt.Errorf("%w:\n%w", ErrOverrides, errors.Join(problems...))
		}
		mark := ""
		if len(o.lines) == 0 && strings.HasPrefix(text, lines.ByteOrderMark) {
			mark = lines.ByteOrderMark
		}
		line, err := parseOverrideLine(text[len(mark):])
		line.before = mark + line.before
		o.lines = append(o.lines, line)
		if err == nil && line.rule != nil {
			err = o.adopt(line)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", len(o.lines), err))
		}
	}
	if problems != nil {
		return nil, fmt.Errorf("%w:\n%w", ErrOverrides, errors.Join(problems...))
	}
	return o, nil
}

func parseOverrideLine(text string) (*overrideLine, error) {
	words, start, end, err := splitWords(text)
	line := &overrideLine{before: text[:start], body: text[start:end], after: text[end:]}
	if err == nil && len(words) > 0 {
		line.rule, err = parseOverride(words)
	}
	return line, err
}

const maxWords = 5

// A word of a line, without its quotes.
type word struct {
	text   string
	quoted bool
}

// splitWords returns the words before a comment or the end of the line, and
// where the first begins and the last ends.
func splitWords(line string) (words []word, start, end int, err error) {
	const blanks = " \t"
	text := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	start = len(text) - len(strings.TrimLeft(text, blanks))
	end = start
	for at := start; at < len(text) && text[at] != '#'; {
		if len(words) == maxWords {
			return words, start, len(text), errors.New("more words than a rule has: a term with blanks needs double quotes, # begins a comment")
		}
		rest := text[at:]
		size := strings.IndexAny(rest, blanks)
		if size < 0 {
			size = len(rest)
		}
		w := word{text: rest[:size]}
		if rest[0] == '"' {
			quote, err := strconv.QuotedPrefix(rest)
			if err == nil {
				w.text, err = strconv.Unquote(quote)
			}
			if size = len(quote); err != nil || (size < len(rest) && !strings.ContainsRune(blanks, rune(rest[size]))) {
				return words, start, len(text), fmt.Errorf("no word in double quotes: %.40q", rest)
			}
			w.quoted = true
		}
		words = append(words, w)
		end = at + size
		at = len(text) - len(strings.TrimLeft(text[end:], blanks))
	}
	return words, start, end, nil
}

func parseOverride(words []word) (*Override, error) {
	r := &Override{Action: Action(words[0].text)}
	want := 3
	switch r.Action {
	case ActionSet:
		want = 4
	case ActionPin, ActionBan:
	default:
		return nil, fmt.Errorf("%.40q is not set, pin or ban", words[0].text)
	}
	sign := word{text: oneWaySign}
	for k, w := range words {
		switch {
		case w == sign && k != 2:
			return nil, fmt.Errorf("%s stands between the terms: %s", oneWaySign, overrideForm(r.Action))
		case w != sign && !w.quoted && quoteTerm(w.text) != w.text:
			return nil, fmt.Errorf("%.40q has to stand in double quotes", w.text)
		}
	}
	if len(words) > 2 && words[2] == sign {
		r.OneWay = true
		words = append(words[:2:2], words[3:]...)
	}
	if len(words) != want {
		return nil, fmt.Errorf("%d words, want %s; a term with blanks needs double quotes", len(words), overrideForm(r.Action))
	}
	r.Term, r.Neighbor = words[1].text, words[2].text
	if r.Action == ActionSet {
		s, ok := lines.ParseDecimal(words[3].text, 64)
		if !ok {
			return nil, fmt.Errorf("similarity %.40q is no decimal number", words[3].text)
		}
		r.Similarity = s
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

func overrideForm(a Action) string {
	form := string(a) + " TERM [" + oneWaySign + "] NEIGHBOR"
	if a == ActionSet {
		form += " SIMILARITY"
	}
	return form
}

// String returns the rule as a line of a file, without a line end.
func (r *Override) String() string {
	words := []string{string(r.Action), quoteTerm(r.Term)}
	if r.OneWay {
		words = append(words, oneWaySign)
	}
	words = append(words, quoteTerm(r.Neighbor))
	if r.Action == ActionSet {
		words = append(words, settings.FormatFloat(r.Similarity))
	}
	return strings.Join(words, " ")
}

func quoteTerm(t string) string {
	plain := t != "" && t != oneWaySign && t[0] != '"' && t[0] != '#'
	for _, c := range t {
		plain = plain && unicode.IsPrint(c) && !unicode.IsSpace(c) && c != unicode.ReplacementChar
	}
	if plain {
		return t
	}
	return strconv.Quote(t)
}
