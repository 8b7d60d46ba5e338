package expand

import (
	"slices"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/recovery"
)

// A target is a field of a clause that may get terms, with what is known about
// it.
type target struct {
	clause *form.Clause
	field  *form.Field
	at     [2]int // the indexes of clause and field
	// text has the terms of the clause with their rows. It is nil if the field was
	// left alone earlier.
	text terms.Text
	// near is the text with the rows of the nearest known words for unknown ones,
	// nil if it has none or the measure has not asked.
	near terms.Text
	// expressions are those of the text that the matrix has, with their rows.
	expressions []terms.Expression
	rows        Rows
	// named says that a matrix is bound to the field's full name.
	named bool
	// weights are set in the modes that need them, nil if none are bound.
	weights Weights
}

// A choice is what a measure chooses for a target. It points to a copy of the
// clause and field.
type choice struct {
	*form.Field
	clause *form.Clause
	of     *target
	// docFreqs are the live document frequencies of the selection's terms.
	docFreqs []int64
}

// begin returns copies of the clauses, with a choice for each open target.
func (a *expansion) begin(open []*target) ([]form.Clause, []choice) {
	clauses, choices := form.Copied(a.clauses), make([]choice, 0, len(open))
	for i := range a.targets { // ModeSoft may compare those left alone
		if t := &a.targets[i]; t.text != nil {
			f := &clauses[t.at[0]].Fields[t.at[1]]
			f.Terms = a.m.selection()
			if t.near != nil {
				f.Terms.Start(t.near)
			} else {
				f.Terms.Start(t.text)
			}
			f.Terms.Expressions, f.Terms.NoFit = t.expressions, !a.s.profile.Fit
			byPairs := func(f form.Field) bool { return f.Analysis != nil && f.Analysis.Phrases == mapping.ByPairs }
			f.Terms.Spans = (byPairs(*f) || t.clause.TermCentric && slices.ContainsFunc(t.clause.Fields, byPairs)) && t.clause.Parsed.Slop == 0
			f.Terms.NoAlternatives, f.Terms.NoExpressions = t.clause.Combined, noExpressions(t.clause, f)
			if !a.s.profile.Expressions {
				f.Terms.NoAlternatives, f.Terms.NoExpressions = true, 0
			}
		}
	}
	for _, t := range open {
		c := &clauses[t.at[0]]
		choices = append(choices, choice{Field: &c.Fields[t.at[1]], clause: c, of: t})
	}
	return clauses, choices
}

// noExpressions returns why expressions cannot stand for words of a field, or
// 0.
func noExpressions(c *form.Clause, f *form.Field) terms.Why {
	noPhrases := func(f form.Field) bool { return f.Analysis != nil && f.Analysis.Phrases == mapping.NoPhrases }
	switch {
	case c.Combined:
		return terms.Combined
	case f.Analysis.Graph:
		return terms.Graph
	case noPhrases(*f), c.TermCentric && slices.ContainsFunc(c.Fields, noPhrases):
		return terms.NoPositions
	}
	return 0
}

func (t *target) closed() bool { return t.field.Reason != "" || t.clause.Reason != "" }
func (c choice) closed() bool  { return c.Reason != "" || c.clause.Reason != "" }

// follows reports whether the target uses the selection of the first field.
func (t *target) follows() bool { return t.clause.TermCentric && t.at[1] != 0 }
func (c choice) follows() bool  { return c.of.follows() }

// lead returns the field whose selection c uses.
func (c choice) lead() *form.Field {
	if c.clause.TermCentric {
		return &c.clause.Fields[0]
	}
	return c.Field
}

func stillOpen[T interface{ closed() bool }](some []T) []T {
	return slices.DeleteFunc(some, func(t T) bool { return t.closed() })
}

// leading returns those with a selection of their own.
func leading[T interface{ follows() bool }](some []T) []T {
	if follows := func(t T) bool { return t.follows() }; slices.ContainsFunc(some, follows) {
		return slices.DeleteFunc(slices.Clone(some), follows)
	}
	return some
}

// sideBySide is how many questions one search asks at a time. OpenSearch queues
// 16 analyses on one thread and rejects more.
const sideBySide = 8

// each calls f for each element, several at the same time.
func each[T any](some []T, f func(t T) error) error {
	return recovery.InParallel(len(some), sideBySide, func(i int) error { return f(some[i]) })
}

// memory is reused from one expansion to the next: what takes most, the
// neighbors of a text above all. Without the selections an expansion takes 20
// times the memory, without the queries twice or three times.
type memory struct {
	parser     *dsl.Parser
	queries    query.Tree
	selections []*terms.Selection
	used       int // of the selections
}

func (m *memory) selection() *terms.Selection {
	if m.used == len(m.selections) {
		m.selections = append(m.selections, new(terms.Selection))
	}
	m.used++
	return m.selections[m.used-1]
}

func (m *memory) release() {
	const keep = 16
	if len(m.selections) > keep {
		clear(m.selections[keep:])
		m.selections = m.selections[:keep]
	}
	for _, sel := range m.selections {
		sel.Context = nil
	}
	m.used = 0
	m.queries.Reset()
	m.parser.Release()
}
