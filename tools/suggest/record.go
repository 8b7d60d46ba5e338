package suggest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

// Errors of a [Record]: a pair cannot be accepted, and nobody decided about it.
var (
	ErrRefused   = errors.New("not accepted")
	ErrUndecided = errors.New("nobody accepted or dismissed it")
)

// A Decision is what a person decided about a pair.
type Decision struct {
	Word string `json:"word"`
	To   string `json:"to"`
	// Similarity is 0 for a pair that was dismissed.
	Similarity float64   `json:"similarity,omitempty"`
	At         time.Time `json:"at"`
	By         string    `json:"by"` // the name that the person typed
	// Index, Fields and Text are of the search that it was proposed for.
	Index  string `json:"index,omitempty"`
	Fields string `json:"fields,omitempty"`
	Text   string `json:"text,omitempty"`
	// Terms are the matrix's terms for both words, as the field's analyzer makes
	// them. The pair is set for each two of them.
	Terms [2][]string `json:"terms"`
	// Was are the entries that an accepted pair replaced, to undo it.
	Was []Entry `json:"was,omitempty"`
}

// An Entry is one of a matrix: a neighbor of a term. Similarity is 0 if there
// was none, and New says that the term had no row.
type Entry struct {
	Term       string   `json:"term"`
	Neighbor   string   `json:"neighbor"`
	Similarity float64  `json:"similarity"`
	Origins    []string `json:"origins,omitempty"`
	New        bool     `json:"new,omitempty"`
}

// A Record is a file of overrides with the decisions in it: an accepted pair is
// a rule, with the rest of the decision in the comment behind it, and a
// dismissed one a comment. The other lines are as people wrote them.
type Record struct {
	lines []string
	rules *combine.Overrides
}

// mark begins the comment of a decision.
const mark = "# akin "

// ReadRecord reads a file of overrides. The error wraps [combine.ErrOverrides].
func ReadRecord(text string) (*Record, error) {
	rules, err := combine.ParseOverrides(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	rec := &Record{rules: rules}
	for line := range strings.Lines(text) {
		rec.lines = append(rec.lines, strings.TrimRight(line, "\r\n"))
	}
	return rec, nil
}

// String returns the file.
func (rec *Record) String() string {
	if len(rec.lines) == 0 {
		return ""
	}
	return strings.Join(rec.lines, "\n") + "\n"
}

// decision returns that of a line. A comment that another program wrote is
// none. The mark may also be in the words of the rule, but no JSON up to the
// end of the line is behind it there.
func decision(line string) (d Decision, ok bool) {
	for at := range len(line) {
		text, marked := strings.CutPrefix(line[at:], mark)
		if marked && json.Unmarshal([]byte(text), &d) == nil && d.Word != "" && d.To != "" {
			return d, (d.Similarity > 0) == (strings.TrimSpace(line[:at]) != "")
		}
	}
	return Decision{}, false
}

// Decisions returns all decisions, the oldest first.
func (rec *Record) Decisions() (all []Decision) {
	for _, line := range rec.lines {
		if d, ok := decision(line); ok {
			all = append(all, d)
		}
	}
	return all
}

// Find returns the decision about a pair.
func (rec *Record) Find(word, to string) (d Decision, decided bool) {
	for _, d := range rec.Decisions() {
		if d.Word == word && d.To == to {
			return d, true
		}
	}
	return Decision{}, false
}

func (rec *Record) write(rule string, d *Decision) error {
	data, err := json.Marshal(d)
	if err == nil {
		rec.lines = append(rec.lines, strings.TrimSpace(rule+" "+mark+string(data)))
	}
	return err
}

// Dismiss notes that a pair is not proposed again.
func (rec *Record) Dismiss(d Decision) error {
	if _, decided := rec.Find(d.Word, d.To); decided {
		return nil
	}
	d.Similarity, d.Was = 0, nil
	return rec.write("", &d)
}

// Accept notes an accepted pair; [Record.Apply] then sets it. It returns the
// matrix without the entries of the same pair with another similarity. The
// error wraps [ErrRefused], and nothing is noted, if the pair contradicts a
// rule or what another file of overrides set, or if no search makes a term of a
// word. Accepting what is accepted changes nothing.
func (rec *Record) Accept(m *simmatrix.Matrix, d Decision) (*simmatrix.Matrix, error) {
	if before, decided := rec.Find(d.Word, d.To); decided {
		if before.Similarity == d.Similarity {
			return m, nil
		}
		var err error
		if m, _, err = rec.Undo(m, d.Word, d.To); err != nil {
			return nil, err
		}
	}
	rule := combine.Override{Action: combine.ActionSet, Term: d.Word, Neighbor: d.To, OneWay: true, Similarity: d.Similarity}
	for k, word := range []string{d.Word, d.To} {
		if len(d.Terms[k]) == 0 {
			return nil, fmt.Errorf("%w: the field's analyzer makes no term of %s", ErrRefused, strconv.Quote(word))
		}
	}
	if slices.ContainsFunc(d.Terms[0], func(t string) bool { return slices.Contains(d.Terms[1], t) }) {
		return nil, fmt.Errorf("%w: %q and %q are the same word for the field's analyzer", ErrRefused, d.Word, d.To)
	}
	for r := range rec.rules.All() { // also where the file has other forms of the words
		if about(m, r.Term, d.Terms[0]) && about(m, r.Neighbor, d.Terms[1]) || !r.OneWay && about(m, r.Neighbor, d.Terms[0]) && about(m, r.Term, d.Terms[1]) {
			return nil, fmt.Errorf("%w: the file of overrides has a rule on both words, %s: change it there", ErrRefused, r.String())
		}
	}
	d.Was = entries(m, &d)
	for _, e := range d.Was {
		if slices.Contains(e.Origins, simmatrix.OriginOverrides) && e.Similarity != float64(simmatrix.QuantizeSimilarity(d.Similarity)) {
			return nil, fmt.Errorf("%w: overrides have set %s -> %s to %.3g in the matrix: change it in their file", ErrRefused, simmatrix.Spelled(e.Term), simmatrix.Spelled(e.Neighbor), e.Similarity)
		}
	}
	if err := rec.rules.Add(rule); err != nil {
		return nil, fmt.Errorf("%w: the file of overrides contradicts it: %w", ErrRefused, err)
	}
	return m, rec.write(rule.String(), &d)
}

// about reports whether a word of a rule is one of the terms.
func about(m *simmatrix.Matrix, word string, terms []string) bool {
	return slices.Contains(terms, cmp.Or(m.TermsOf(word)[word], word))
}

// entries returns what the matrix has where a pair is to be set.
func entries(m *simmatrix.Matrix, d *Decision) (was []Entry) {
	for _, term := range d.Terms[0] {
		for _, neighbor := range d.Terms[1] {
			e := Entry{Term: term, Neighbor: neighbor, New: !m.Has(term)}
			names := m.Meta().Origins
			for n := range m.Row(term).All() {
				if n.Term != neighbor {
					continue
				}
				e.Similarity = float64(n.Similarity)
				for k, name := range names {
					if n.Origins&(1<<k) != 0 {
						e.Origins = append(e.Origins, name)
					}
				}
			}
			was = append(was, e)
		}
	}
	return was
}

// added reports whether a term had no row before.
func (d *Decision) added(term string) bool {
	return slices.ContainsFunc(d.Was, func(e Entry) bool { return e.Term == term && e.New })
}

// Param names, in [simmatrix.Meta.Params], how many accepted pairs a matrix
// has, and which was the last.
const Param = "accepted"

// Apply returns a matrix with all accepted pairs, itself if it has them. A word
// that no document has also gets the neighbors of one that is as good as it, so
// that searches find as much by it as by the other.
func (rec *Record) Apply(m *simmatrix.Matrix) (*simmatrix.Matrix, error) {
	rules := &combine.Overrides{}
	count, last := 0, Decision{}
	for _, d := range rec.Decisions() {
		if d.Similarity == 0 {
			continue
		}
		count++
		last = d
		for _, term := range d.Terms[0] {
			for _, neighbor := range d.Terms[1] {
				// Of two pairs for the same terms the first counts.
				set := combine.Override{Action: combine.ActionSet, Term: term, Neighbor: neighbor, OneWay: true, Similarity: d.Similarity}
				// Each neighbor of an expression would stand for the whole text.
				if rules.Add(set) != nil || d.Similarity < 1 || !d.added(term) || simmatrix.IsExpression(term) {
					continue
				}
				for n := range m.Row(neighbor).All() {
					set.Neighbor, set.Similarity = n.Term, float64(n.Similarity)
					_ = rules.Add(set) // not the term itself
				}
			}
		}
	}
	out, _, err := rules.Apply(m)
	if err != nil {
		return nil, err
	}
	said := ""
	if count > 0 {
		said = fmt.Sprintf("%d pairs, last %s -> %s by %s at %s", count, last.Word, last.To, last.By, last.At.UTC().Format(time.RFC3339))
	}
	return describe(out, m.Meta().Params, said)
}

// describe returns the matrix with other Params: with said, and without what
// was added about overrides, which would grow with each pair.
func describe(m *simmatrix.Matrix, params map[string]string, said string) (*simmatrix.Matrix, error) {
	params = maps.Clone(params)
	if params == nil {
		params = map[string]string{}
	}
	params[Param] = said
	if said == "" {
		delete(params, Param)
	}
	if maps.Equal(params, m.Meta().Params) {
		return m, nil
	}
	t := *m.Table()
	t.Meta.Params = params
	return t.Matrix()
}

// Undo takes back a decision, and returns the matrix with what the pair
// replaced; [Record.Apply] then sets what is left. The error wraps
// [ErrUndecided].
func (rec *Record) Undo(m *simmatrix.Matrix, word, to string) (*simmatrix.Matrix, Decision, error) {
	at := slices.IndexFunc(rec.lines, func(line string) bool {
		d, ok := decision(line)
		return ok && d.Word == word && d.To == to
	})
	if at < 0 {
		return nil, Decision{}, fmt.Errorf("%w: %q -> %q", ErrUndecided, word, to)
	}
	d, _ := decision(rec.lines[at])
	rec.lines = slices.Delete(rec.lines, at, at+1)
	rules, err := combine.ParseOverrides(strings.NewReader(rec.String()))
	if err != nil {
		return nil, d, err
	}
	rec.rules = rules
	if d.Similarity == 0 {
		return m, d, nil
	}
	for _, e := range d.Was {
		if m, err = combine.Restore(m, e.Term, e.Neighbor, e.Similarity, e.Origins, e.New); err != nil {
			return nil, d, err
		}
	}
	return m, d, nil
}
