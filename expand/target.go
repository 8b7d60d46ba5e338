package expand

import (
	"cmp"
	"context"
	"slices"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/query"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// A target is a field of a clause that may get terms, with what is known about
// it.
type target struct {
	*form.Field
	clause *form.Clause
	// text has the terms of the clause with their rows. It is nil if the field was
	// left alone earlier.
	text terms.Text
	// freqs are how often stored documents have the terms of the text, nil where it
	// is no text of these.
	freqs []int
	// near is the text with the rows of the nearest known words for unknown ones,
	// nil if it has none or the measure has not asked.
	near terms.Text
	// optional are the words that need not match, see [expansion.optional].
	optional []string
	// expressions are those of the text that the matrix has, with their rows.
	// nearExpressions are those of near.
	expressions, nearExpressions []terms.Expression
	rows                         Rows
	// named says that a matrix is bound to the field's full name.
	named bool
	// weights are set in the modes that need them, nil if none are bound.
	weights Weights
	// linear and vector are what a measure has asked, nil if it has not.
	linear *linearField
	vector *vectorField
}

// begin returns copies of the clauses and targets, in which a measure chooses.
func (a *expansion) begin() *chosen {
	c := &chosen{clauses: form.Copied(a.clauses), targets: slices.Clone(a.targets), open: make([]*target, 0, len(a.open))}
	next := 0 // targets are in the order of the clauses and their fields
	for i := range c.clauses {
		for k := range c.clauses[i].Fields {
			if next < len(c.targets) && c.targets[next].Field == &a.clauses[i].Fields[k] {
				c.targets[next].clause, c.targets[next].Field = &c.clauses[i], &c.clauses[i].Fields[k]
				next++
			}
		}
	}
	for i := range c.targets {
		t := &c.targets[i]
		if t.text != nil { // ModeSoft may compare those left alone
			t.Terms = a.m.selection()
			t.Terms.Start(t.text)
			t.Terms.Expressions, t.Terms.NoFit = t.expressions, !a.s.profile.Fit
			t.Terms.PerWord = 0
			if a.s.profile.Matching == Auto && !a.s.order && t.clause.Counted() {
				t.Terms.PerWord = perWord
				if a.recipe.Effort == form.Low {
					t.Terms.PerWord = fewPerWord
				}
			}
			byPairs := func(f form.Field) bool { return f.Analysis != nil && f.Analysis.Phrases == mapping.ByPairs }
			t.Terms.Spans = (byPairs(*t.Field) || t.clause.Parsed.TermCentric() && slices.ContainsFunc(t.clause.Fields, byPairs)) && t.clause.Parsed.Slop == 0 && !t.clause.Parsed.Prefix
			t.Terms.Phrase = t.clause.Parsed.Phrase
			t.Terms.NoAlternatives, t.Terms.NoExpressions = t.clause.Parsed.Across == dsl.AsOne, noExpressions(t.clause, t.Field)
			if !a.s.profile.Expressions {
				t.Terms.NoAlternatives, t.Terms.NoExpressions = true, 0
			}
		}
		if !t.closed() {
			c.open = append(c.open, t)
		}
	}
	return c
}

// noExpressions returns why expressions cannot stand for words of a field, or
// 0.
func noExpressions(c *form.Clause, f *form.Field) terms.Why {
	noPhrases := func(f form.Field) bool { return f.Analysis != nil && f.Analysis.Phrases == mapping.NoPhrases }
	switch {
	case c.Parsed.Across == dsl.AsOne:
		return terms.Combined
	case f.Analysis.Graph && !c.Whole:
		return terms.Graph
	case noPhrases(*f), c.Parsed.TermCentric() && slices.ContainsFunc(c.Fields, noPhrases):
		return terms.NoPositions
	}
	return 0
}

func (t *target) closed() bool { return t.Reason != "" || t.clause.Reason != "" }

// lead returns the field whose selection the target uses, and follows reports
// whether that is another.
func (t *target) lead() *form.Field {
	if t.clause.Parsed.TermCentric() {
		return &t.clause.Fields[0]
	}
	return t.Field
}

func (t *target) follows() bool { return t.lead() != t.Field }

func stillOpen(some []*target) []*target { return without(some, (*target).closed) }

// leading returns those with a selection of their own.
func leading(some []*target) []*target { return without(some, (*target).follows) }

func without(some []*target, drop func(t *target) bool) []*target {
	if slices.ContainsFunc(some, drop) {
		return slices.DeleteFunc(slices.Clone(some), drop)
	}
	return some
}

// sideBySide is how many questions one search asks at a time. OpenSearch queues
// 16 analyses on one thread and rejects more.
const sideBySide = 8

// each calls f for each target, several at the same time.
func each(some []*target, f func(t *target) error) error {
	return recovery.InParallel(len(some), sideBySide, func(i int) error { return f(some[i]) })
}

// supposedDocs is the number of documents in place of one that neither the
// cluster nor the matrix tells: then all words count alike.
const supposedDocs = 1000

// statistics sets docFreqs to those of words in a field with the text of t. If
// the cluster does not count terms, they are those of the matrix, at least 1.
func (a *expansion) statistics(ctx context.Context, t *target, field string, words []string, docFreqs []int64) (esclient.FieldStatistics, error) {
	stats, err := a.cluster.Statistics(ctx, a.s.indices, field, words, docFreqs)
	if err != nil || !stats.Uncounted {
		return stats, err
	}
	rows := make([]simmatrix.Row, len(words))
	if err := t.rows.Rows(ctx, words, rows); err != nil {
		return stats, err
	}
	asNeighbor := map[string]int64{} // some have no row of their own
	for _, text := range []terms.Text{t.text, t.near} {
		for i := range text {
			for n := range text[i].Row.All() {
				asNeighbor[n.Term] = int64(n.DocFreq)
			}
		}
	}
	for k, row := range rows {
		docFreqs[k] = max(int64(row.DocFreq()), asNeighbor[words[k]], 1)
	}
	stats.DocCount = cmp.Or(t.rows.Docs(), supposedDocs)
	return stats, nil
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
