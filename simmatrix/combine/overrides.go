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
	ActionSet Action = "set" // sets the pair's similarity, whatever the source has
	ActionPin Action = "pin" // keeps the pair, with the source's similarity, in spite of sparsification
	ActionBan Action = "ban" // removes the pair
)

// An Override is a rule on the similarity of two terms: as people write them,
// see [Overrides.Resolve], or index terms, as made by the field's analyzer.
type Override struct {
	Action         Action
	Term, Neighbor string
	OneWay         bool    // only Neighbor as a neighbor of Term
	Similarity     float64 // in (0, 1] for [ActionSet], else 0
}

func (r *Override) check() error {
	if r.Action == ActionSet {
		if r.Similarity == 0 {
			return errors.New("similarity 0: use ban")
		}
		if !(r.Similarity > 0 && r.Similarity <= 1) { // so written that NaN fails
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

// A direction identifies an entry: neighbor in the row of term.
type direction struct{ term, neighbor string }

func (r *Override) directions() []direction {
	there := direction{r.Term, r.Neighbor}
	if r.OneWay {
		return []direction{there}
	}
	return []direction{there, {r.Neighbor, r.Term}}
}

// Overrides are the rules in a file that a person keeps with a matrix, at most
// one per entry. The zero value has none and is ready for use. It must not
// change while other goroutines use it.
type Overrides struct {
	rules []Override
	ruled map[direction]ruling
}

// A ruling is the rule on an entry, and its line.
type ruling struct {
	rule *Override
	line int
}

// All yields the rules in file order.
func (o *Overrides) All() iter.Seq[Override] { return slices.Values(o.rules) }

// Protects reports whether a rule sets or pins neighbor in the row of term.
func (o *Overrides) Protects(term, neighbor string) bool {
	r := o.ruled[direction{term, neighbor}].rule
	return r != nil && r.Action != ActionBan
}

// Add adds a rule. It returns an error, and changes nothing, if no matrix can
// follow the rule or an entry already has one.
func (o *Overrides) Add(r Override) error { return o.add(r, len(o.rules)+1) }

func (o *Overrides) add(r Override, line int) error {
	if err := r.check(); err != nil {
		return err
	}
	for _, d := range r.directions() {
		if other, there := o.ruled[d]; there {
			return fmt.Errorf("%.40s -> %.40s has a rule in line %d: %.120s", quoteTerm(d.term), quoteTerm(d.neighbor), other.line, other.rule)
		}
	}
	if o.ruled == nil {
		o.ruled = make(map[direction]ruling)
	}
	o.rules = append(o.rules, r)
	for _, d := range r.directions() {
		o.ruled[d] = ruling{&r, line}
	}
	return nil
}

// maxOverrideBytes limits a file of overrides, which is written by hand; larger
// sources of pairs belong in a matrix of their own.
const maxOverrideBytes = 32 << 20

// maxProblems limits the bad lines named at once.
const maxProblems = 100

// oneWaySign is between the terms of a one-way rule.
const oneWaySign = "->"

// Resolve returns the rules with a matrix's index terms in place of words
// that people write for them, see [simmatrix.Matrix.TermsOf]. Of other
// words it takes what the field's analyzer makes of them, as in
// [ProjectOptions.IndexTerms], or where that is not known of several known
// words an expression. Words that the matrix does not know either way stay;
// it returns them, ascending. It returns an error if two rules then concern
// one entry, and for each word of a rule that sets an entry of which no search
// makes a term, see [UnreachedError].
func (o *Overrides) Resolve(m *simmatrix.Matrix, indexTerms map[string][]string) (resolved *Overrides, unknown []string, err error) {
	words := o.Words()
	for _, word := range words {
		words = append(words, strings.Fields(word)...)
	}
	terms := m.TermsOf(words...)
	var unreached []string // words of a rule that become no term
	termsOf := func(word string) []string {
		if t, known := terms[word]; known {
			return []string{t}
		}
		analyzed := indexTerms[word]
		if !slices.ContainsFunc(analyzed, func(t string) bool { return m.Has(t) || simmatrix.IsExpression(t) }) {
			unknown = append(unknown, word)
		}
		if len(analyzed) > 0 {
			return analyzed
		}
		var parts []string
		var positions []int
		for k, part := range strings.Fields(word) {
			parts, positions = append(parts, terms[part]), append(positions, k)
		}
		if expression, err := simmatrix.Expression(parts, positions); err == nil {
			unknown = unknown[:len(unknown)-1]
			return []string{expression}
		}
		unreached = append(unreached, word)
		return []string{word}
	}
	resolved = &Overrides{}
	var errs []error
	for _, written := range o.rules {
		line, r := o.ruled[written.directions()[0]].line, written
		unreached = unreached[:0]
		own, neighbors := termsOf(written.Term), termsOf(written.Neighbor)
		if written.Action == ActionSet {
			for _, word := range unreached {
				errs = append(errs, &UnreachedError{Line: line, Rule: written, Word: word, Nearest: m.Nearest(word), Analyzed: indexTerms != nil})
			}
		}
		for _, term := range own {
			for _, neighbor := range neighbors {
				r.Term, r.Neighbor = term, neighbor
				if r.Term == r.Neighbor && len(own)*len(neighbors) > 1 { // a variant of both
					continue
				}
				if err := resolved.add(r, line); err != nil {
					return nil, nil, fmt.Errorf("%w: line %d: %v: with the terms of the matrix: %w", ErrOverrides, line, written, err)
				}
			}
		}
	}
	if errs != nil {
		return nil, nil, fmt.Errorf("%w:\n%w", ErrOverrides, errors.Join(errs...))
	}
	slices.Sort(unknown)
	return resolved, slices.Compact(unknown), nil
}

// An UnreachedError is about a rule that sets an entry for a word of which no
// search makes a term, as far as is known: its row would never be looked up.
type UnreachedError struct {
	Line     int
	Rule     Override
	Word     string
	Nearest  string // the known word that is spelled most like it, or ""
	Analyzed bool   // the field's analyzer makes no term of it
}

// Error names line and word, and what to do.
func (e *UnreachedError) Error() string {
	text := fmt.Sprintf("line %d: %v: no search looks up %s: ", e.Line, &e.Rule, quoteTerm(e.Word))
	if e.Analyzed {
		return text + "the field's analyzer makes no term of it"
	}
	if e.Nearest != "" {
		text += "did you mean " + quoteTerm(e.Nearest) + "? "
	}
	return text + "To have the field's analyzer say what it becomes, give --cluster, --index and --field, or a configuration"
}

// Words returns the words of the rules, of each rule both.
func (o *Overrides) Words() (words []string) {
	for r := range o.All() {
		words = append(words, r.Term, r.Neighbor)
	}
	return words
}

// ErrOverrides is wrapped by errors of [ParseOverrides].
var ErrOverrides = errors.New("bad overrides")

// ParseOverrides reads a file of overrides, at most one rule per line:
//
//	set car automobile 0.9       each is a neighbor of the other, at 0.9
//	set car -> vehicle 0.5       vehicle is a neighbor of car, at 0.5
//	pin car automobile           the similarity of the source stays
//	ban car jaguar               never neighbors
//	ban car -> "station wagon"   a term with blanks, quoted as in Go
//
// Words are separated by blanks or tabs. A # that begins a word begins a
// comment. A term is quoted if it has blanks or control characters, begins with
// # or a double quote, or is ->.
//
// The error wraps [ErrOverrides] and names the bad lines, at most a hundred. A
// file of more than [simmatrix.MaxOverrideLines] lines or 32 MiB is refused.
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
	line := 0
	var problems []error
	for text := range strings.Lines(strings.TrimPrefix(string(data), lines.ByteOrderMark)) {
		switch {
		case line == simmatrix.MaxOverrideLines:
			return nil, fmt.Errorf("%w: more than %d lines", ErrOverrides, simmatrix.MaxOverrideLines)
		case len(problems) == maxProblems:
			problems = append(problems, fmt.Errorf("and more from line %d on", line+1))
			return nil, fmt.Errorf("%w:\n%w", ErrOverrides, errors.Join(problems...))
		}
		line++
		words, err := splitWords(text)
		if err == nil && len(words) > 0 {
			var rule *Override
			if rule, err = parseOverride(words); err == nil {
				err = o.add(*rule, line)
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("line %d: %w", line, err))
		}
	}
	if problems != nil {
		return nil, fmt.Errorf("%w:\n%w", ErrOverrides, errors.Join(problems...))
	}
	return o, nil
}

const maxWords = 5 // of a rule

// A word of a line, unquoted.
type word struct {
	text   string
	quoted bool
}

// splitWords returns the words before a comment or the end of the line.
func splitWords(line string) (words []word, err error) {
	const blanks = " \t"
	rest := strings.TrimLeft(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), blanks)
	for rest != "" && rest[0] != '#' {
		if len(words) == maxWords {
			return nil, errors.New("more words than a rule has: a term with blanks needs double quotes, # begins a comment")
		}
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
				return nil, fmt.Errorf("no word in double quotes: %.40q", rest)
			}
			w.quoted = true
		}
		words = append(words, w)
		rest = strings.TrimLeft(rest[size:], blanks)
	}
	return words, nil
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
	return r, nil
}

func overrideForm(a Action) string {
	form := string(a) + " TERM [" + oneWaySign + "] NEIGHBOR"
	if a == ActionSet {
		form += " SIMILARITY"
	}
	return form
}

// String returns the rule as a line of a file, without line end.
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
