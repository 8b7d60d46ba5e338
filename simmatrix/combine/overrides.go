package combine

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/akin-search/akin/simmatrix"
)

// An Action is what an [Override] does to a pair.
type Action string

// The actions of an override.
const (
	// ActionSet gives the pair a similarity, whatever the source has.
	ActionSet Action = "set"
	// ActionPin keeps the pair, with the source's similarity, where
	// sparsification would drop it.
	ActionPin Action = "pin"
	// ActionBan removes the pair.
	ActionBan Action = "ban"
)

// An Override is one rule on the similarity of two index terms.
type Override struct {
	// Action is what happens to the pair.
	Action Action
	// Term and Neighbor are index terms: what the field's analyzer makes of
	// words.
	Term, Neighbor string
	// OneWay limits the rule to Neighbor as a neighbor of Term.
	OneWay bool
	// Similarity is in (0, 1] for [ActionSet], and 0 for the others.
	Similarity float64
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

func (l *overrideLine) write(r Override) {
	l.rule, l.body = &r, r.String()
}

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

// String returns the file.
func (o *Overrides) String() string {
	var b strings.Builder
	for _, l := range o.lines {
		b.WriteString(l.before)
		b.WriteString(l.body)
		b.WriteString(l.after)
	}
	return b.String()
}

// WriteTo implements [io.WriterTo]. Unchanged lines are written as
// [ParseOverrides] read them.
func (o *Overrides) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, o.String())
	return int64(n), err
}

// Protects reports whether a rule sets or pins neighbor in the row of term. It
// fits the Protect options.
func (o *Overrides) Protects(term, neighbor string) bool {
	l := o.ruled[direction{term, neighbor}]
	return l != nil && l.rule.Action != ActionBan
}

// Set adds the rule that neighbor is in the row of term with a similarity in
// (0, 1] and, unless oneWay, term in that of neighbor. It replaces earlier
// rules on the same entries; a rule both ways stays for the other direction. It
// returns an error, and changes nothing, for a rule that no matrix can follow
// or if the file would get too long.
func (o *Overrides) Set(term, neighbor string, similarity float64, oneWay bool) error {
	return o.put(Override{Action: ActionSet, Term: term, Neighbor: neighbor, OneWay: oneWay, Similarity: similarity})
}

// Pin adds the rule that neighbor stays in the row of term; see
// [Overrides.Set].
func (o *Overrides) Pin(term, neighbor string, oneWay bool) error {
	return o.put(Override{Action: ActionPin, Term: term, Neighbor: neighbor, OneWay: oneWay})
}

// Ban adds the rule that neighbor is never in the row of term; see
// [Overrides.Set].
func (o *Overrides) Ban(term, neighbor string, oneWay bool) error {
	return o.put(Override{Action: ActionBan, Term: term, Neighbor: neighbor, OneWay: oneWay})
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

// put writes r into the line of the first rule that it replaces, after the one
// that it narrows, or at the end.
func (o *Overrides) put(r Override) error {
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
	line := o.insert(at)
	line.write(r)
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

// ruling returns the lines, at most two, with a rule on a direction of r, in
// the order of the file.
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

// insert adds an empty line with the line end of the first.
func (o *Overrides) insert(at int) *overrideLine {
	end := "\n"
	if len(o.lines) > 0 && strings.HasSuffix(o.lines[0].after, "\r\n") {
		end = "\r\n"
	}
	if at > 0 && !strings.HasSuffix(o.lines[at-1].after, "\n") {
		o.lines[at-1].after += end
	}
	line := &overrideLine{after: end}
	o.lines = slices.Insert(o.lines, at, line)
	return line
}

// adopt puts the rule of a line in force. It returns an error where another
// line has a rule on one of its directions.
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
