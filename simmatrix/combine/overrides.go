package combine

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/internal/lines"
	"github.com/akin-search/akin/simmatrix/internal/settings"
)

// An Action is what an [Override] does to a pair.
type Action string

// The actions of an override.
const (
	ActionSet Action = "set" // gives the pair a similarity, whatever the source has
	ActionPin Action = "pin" // keeps the pair, with the source's similarity, where sparsification would drop it
	ActionBan Action = "ban" // removes the pair
)

// An Override is one rule on the similarity of two terms: as people write them,
// see [Overrides.Resolve], or index terms, which are what the field's analyzer
// makes of words.
type Override struct {
	Action         Action
	Term, Neighbor string
	OneWay         bool    // only for Neighbor as a neighbor of Term
	Similarity     float64 // in (0, 1] for [ActionSet], 0 for the others
}

func (r *Override) check() error {
	if r.Action == ActionSet {
		if r.Similarity == 0 {
			return errors.New("similarity 0: use ban")
		}
		if !(r.Similarity > 0 && r.Similarity <= 1) { // written so that NaN fails
			return fmt.Errorf("similarity %v not in (0, 1]", r.Similarity)
		}
	}
	if r.Term == r.Neighbor {
		return fmt.Errorf("%.40q is its own neighbor", r.Term)
	}
	if err := simmatrix.CheckTerm(r.Term); err != nil {
		return err
	}
	return simmatrix.CheckTerm(r.Neighbor)
}

// A direction identifies one entry: neighbor in the row of term.
type direction struct{ term, neighbor string }

func (r *Override) directions() []direction {
	there := direction{r.Term, r.Neighbor}
	if r.OneWay {
		return []direction{there}
	}
	return []direction{there, {r.Neighbor, r.Term}}
}

func (r *Override) same(other *Override) bool {
	if *r == *other {
		return true
	}
	turned := *other
	turned.Term, turned.Neighbor = other.Neighbor, other.Term
	return !r.OneWay && *r == turned
}

// Overrides are the rules of a file that a person keeps with a matrix, at most
// one for each entry. The zero value is ready for use. It must not change while
// other goroutines use it. Changes touch only the lines concerned.
type Overrides struct {
	lines []*overrideLine
	ruled map[direction]*overrideLine
}

type overrideLine struct {
	before string    // the blanks before the rule
	rule   *Override // nil on a line without a rule
	body   string    // the rule as written, "" on a line without one
	after  string    // blanks, a comment, the end of the line
}

func (l *overrideLine) write(r Override) { l.rule, l.body = &r, r.String() }

// All yields the rules in the order of the file.
func (o *Overrides) All() iter.Seq[Override] {
	return func(yield func(Override) bool) {
		for _, l := range o.lines {
			if l.rule != nil && !yield(*l.rule) {
				return
			}
		}
	}
}

// String returns the file. Unchanged lines are as [ParseOverrides] read them.
func (o *Overrides) String() string {
	var b strings.Builder
	for _, l := range o.lines {
		b.WriteString(l.before + l.body + l.after)
	}
	return b.String()
}

// Protects reports whether a rule sets or pins neighbor in the row of term.
func (o *Overrides) Protects(term, neighbor string) bool {
	l := o.ruled[direction{term, neighbor}]
	return l != nil && l.rule.Action != ActionBan
}

// Remove removes the rules on neighbor in the row of term and, unless oneWay,
// on term in that of neighbor. It reports whether there was one.
func (o *Overrides) Remove(term, neighbor string, oneWay bool) bool {
	r := Override{Term: term, Neighbor: neighbor, OneWay: oneWay}
	before := o.ruling(&r)
	for _, l := range before {
		if !o.narrow(l, &r) {
			o.drop(l)
		}
	}
	return len(before) > 0
}

// Put adds a rule. It replaces earlier rules on the same entries, in the line
// of the first; a rule both ways stays for the other direction, in the line
// before. It returns an error, and changes nothing, for a rule that no matrix
// can follow or if the file would get too long.
func (o *Overrides) Put(r Override) error {
	if err := r.check(); err != nil {
		return err
	}
	before := o.ruling(&r)
	if len(before) == 1 && before[0].rule.same(&r) {
		return nil
	}
	if len(before) > 0 && (!r.OneWay || before[0].rule.OneWay) {
		return o.replace(before, r)
	}
	if len(o.lines) >= simmatrix.MaxOverrideLines {
		return fmt.Errorf("%w: %d lines already, at most %d", ErrOverrides, len(o.lines), simmatrix.MaxOverrideLines)
	}
	at := len(o.lines)
	if len(before) > 0 {
		o.narrow(before[0], &r)
		at = slices.Index(o.lines, before[0]) + 1
	}
	end := "\n" // as in the first line
	if len(o.lines) > 0 && strings.HasSuffix(o.lines[0].after, "\r\n") {
		end = "\r\n"
	}
	if at > 0 && !strings.HasSuffix(o.lines[at-1].after, "\n") {
		o.lines[at-1].after += end
	}
	line := &overrideLine{rule: &r, body: r.String(), after: end}
	o.lines = slices.Insert(o.lines, at, line)
	return o.adopt(line)
}

func (o *Overrides) replace(lines []*overrideLine, r Override) error {
	for _, l := range lines[1:] {
		o.drop(l)
	}
	line := lines[0]
	o.forget(line)
	if was := line.rule; !r.OneWay && !was.OneWay { // keep the order of the terms
		r.Term, r.Neighbor = was.Term, was.Neighbor
	}
	line.write(r)
	return o.adopt(line)
}

// ruling returns the lines, at most two, with a rule on a direction of r.
func (o *Overrides) ruling(r *Override) []*overrideLine {
	var lines []*overrideLine
	for _, d := range r.directions() {
		if l := o.ruled[d]; l != nil && !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	if len(lines) == 2 && slices.Index(o.lines, lines[0]) > slices.Index(o.lines, lines[1]) {
		slices.Reverse(lines)
	}
	return lines
}

// narrow removes the direction of r from a rule both ways. It reports false,
// and does nothing, if no direction would be left.
func (o *Overrides) narrow(l *overrideLine, r *Override) bool {
	if l.rule.OneWay || !r.OneWay {
		return false
	}
	rest := *l.rule
	rest.Term, rest.Neighbor, rest.OneWay = r.Neighbor, r.Term, true
	delete(o.ruled, direction{r.Term, r.Neighbor})
	l.write(rest)
	return true
}

// adopt puts the rule of a line in force, unless there is one already.
func (o *Overrides) adopt(l *overrideLine) error {
	for _, d := range l.rule.directions() {
		if other := o.ruled[d]; other != nil {
			return fmt.Errorf("%.40s -> %.40s has a rule in line %d: %.120s",
				quoteTerm(d.term), quoteTerm(d.neighbor), slices.Index(o.lines, other)+1, other.rule)
		}
	}
	if o.ruled == nil {
		o.ruled = make(map[direction]*overrideLine)
	}
	for _, d := range l.rule.directions() {
		o.ruled[d] = l
	}
	return nil
}

// forget takes the rule of a line out of force.
func (o *Overrides) forget(l *overrideLine) {
	for _, d := range l.rule.directions() {
		delete(o.ruled, d)
	}
}

func (o *Overrides) drop(l *overrideLine) {
	o.forget(l)
	at := slices.Index(o.lines, l)
	o.lines = slices.Delete(o.lines, at, at+1)
}

// maxOverrideBytes bounds a file of overrides, which is written by hand: larger
// sources of pairs belong in a matrix of their own.
const maxOverrideBytes = 32 << 20

// maxProblems is how many bad lines are named at once.
const maxProblems = 100

// oneWaySign is between the terms of a rule that goes one way.
const oneWaySign = "->"

// Resolve returns the rules with the index terms of a matrix in place of the
// words that people write for them, see [simmatrix.Matrix.TermsOf], and the
// words that the matrix does not know, ascending, which stay. It returns an
// error where two rules are then about one entry.
func (o *Overrides) Resolve(m *simmatrix.Matrix) (resolved *Overrides, unknown []string, err error) {
	var words []string
	for r := range o.All() {
		words = append(words, r.Term, r.Neighbor)
	}
	terms := m.TermsOf(words...)
	term := func(word string) string {
		if t, known := terms[word]; known {
			return t
		}
		unknown = append(unknown, word)
		return word
	}
	resolved = &Overrides{}
	for k, l := range o.lines {
		own := *l
		resolved.lines = append(resolved.lines, &own)
		if l.rule == nil {
			continue
		}
		r := *l.rule
		r.Term, r.Neighbor = term(r.Term), term(r.Neighbor)
		own.write(r)
		if err = r.check(); err == nil {
			err = resolved.adopt(&own)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: line %d: %v: with the terms of the matrix: %w", ErrOverrides, k+1, l.rule, err)
		}
	}
	slices.Sort(unknown)
	return resolved, slices.Compact(unknown), nil
}

// ErrOverrides is wrapped by the errors of [ParseOverrides].
var ErrOverrides = errors.New("bad overrides")

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
// # or a double quote, or is ->. A second rule for an entry is an error.
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
	if simmatrix.LooksUTF16(string(data[:min(len(data), 2)])) {
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
		words, start, end, err := splitWords(text[len(mark):])
		text = text[len(mark):]
		line := &overrideLine{before: mark + text[:start], body: text[start:end], after: text[end:]}
		o.lines = append(o.lines, line)
		if err == nil && len(words) > 0 {
			if line.rule, err = parseOverride(words); err == nil {
				err = o.adopt(line)
			}
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

const maxWords = 5 // of a rule

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
