package expand

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// mostNear is how many words of a search are looked up, at some milliseconds
// each.
const mostNear = 8

// nearWords sets the near texts of targets with unknown words: words that no
// document contains and that have no row. There these words have the rows of
// the nearest known words. The first words of all clauses are looked up before
// the second ones. Words that get no row may become optional.
func (a *expansion) nearWords(ctx context.Context, targets []*target) error {
	if !a.s.profile.NearestWords && a.s.profile.Relax == RelaxNone {
		return nil
	}
	unknown := make([][]string, len(targets))
	if err := recovery.InParallel(len(targets), sideBySide, func(i int) (err error) {
		unknown[i], err = a.findUnknown(ctx, targets[i])
		return err
	}); err != nil {
		return failed(StageStatistics, err)
	}
	type word struct {
		*target
		text string
		turn int // its number in the clause
	}
	var words []word
	turns := map[*form.Clause]int{}
	for i, t := range targets {
		for _, text := range unknown[i] {
			if at := t.text.Index(text); !a.s.profile.NearestWords || isName(t, &t.text[at]) {
				continue
			}
			words = append(words, word{t, text, turns[t.clause]})
			turns[t.clause]++
		}
	}
	slices.SortStableFunc(words, func(a, b word) int { return cmp.Compare(a.turn, b.turn) })
	type question struct {
		of   Rows
		text string
	}
	type near struct {
		known      []string
		similarity float32
		first      int // the index of its first row among those of the matrix
	}
	nearest := map[question]near{}
	known := map[Rows][]string{}
	rows := map[Rows][]simmatrix.Row{}
	for _, w := range words {
		q := question{w.rows, w.text}
		if _, asked := nearest[q]; asked || len(nearest) == mostNear {
			continue
		}
		if err := ctx.Err(); err != nil { // the client is gone
			return failed(StageRows, err)
		}
		n := near{first: len(known[q.of])}
		n.known, n.similarity = q.of.Nearest(q.text)
		nearest[q], known[q.of] = n, append(known[q.of], n.known...)
	}
	for of, all := range known {
		rows[of] = make([]simmatrix.Row, len(all))
		if err := of.Rows(ctx, all, rows[of]); err != nil {
			return failed(StageRows, err)
		}
	}
	for _, w := range words {
		n, text := nearest[question{w.rows, w.text}], w.near
		if text == nil {
			text = slices.Clone(w.target.text)
		}
		// If a clause counts words, a part of a compound would count as the whole
		// word: there only both parts together stand for it.
		together := len(n.known) > 1 && w.clause.Parsed.Counted()
		if len(n.known) == 0 || together && (!a.s.profile.Expressions || noExpressions(w.clause, w.Field) != 0) || slices.ContainsFunc(n.known, text.Has) {
			continue
		}
		at := text.Index(w.text)
		if together {
			text[at] = text[at].ByParts(n.known, rows[w.rows][n.first:], n.similarity)
		} else {
			text[at] = text[at].ByNearest(n.known, rows[w.rows][n.first:], n.similarity)
		}
		w.near = text
	}
	for i, t := range targets {
		t.optional = a.optional(t, unknown[i])
		if err := a.nearExpressions(ctx, t); err != nil {
			return failed(StageRows, err)
		}
	}
	return nil
}

// nearExpressions recognizes the expressions of a text with the nearest known
// words in the place of unknown ones, unless an expression has these.
func (a *expansion) nearExpressions(ctx context.Context, t *target) error {
	has := t.rows.Expressions()
	if t.near == nil || has == nil || !a.s.profile.Expressions {
		return nil
	}
	known, spelled := slices.Clone(t.near), slices.Clone(t.Analysis.Terms)
	for i := range known {
		typed := func(e terms.Expression) bool { return slices.Contains(e.Origins, i) }
		if o := &known[i]; len(o.Nearest) == 1 && !o.InParts() && !slices.ContainsFunc(t.expressions, typed) {
			o.Term = o.Nearest[0]
		}
	}
	for k, term := range spelled {
		spelled[k] = known[t.near.Index(term)].Term
	}
	found := known.Recognize(spelled, t.Analysis.Positions, has)
	words := make([]string, len(found))
	for k := range found {
		words[k] = found[k].Term
	}
	rows := make([]simmatrix.Row, len(found))
	if err := t.rows.Rows(ctx, words, rows); err != nil {
		return err
	}
	for k := range found {
		found[k].Row = rows[k]
	}
	t.nearExpressions = found
	return nil
}

// optional returns the unknown words of a target that need not match: those
// for which nothing stands, unless these are all words of the text, or another
// field may have them.
func (a *expansion) optional(t *target, unknown []string) []string {
	c := t.clause
	unread := func(f form.Field) bool { return f.Analysis == nil }
	apart := c.Parsed.Words > 0 && len(c.Fields) > 1 && !c.Parsed.TermCentric()
	if a.s.profile.Relax == RelaxNone || a.s.profile.Matching == Same || !c.Parsed.OperatorAnd || matchesOf(c) >= dsl.Same ||
		c.Parsed.Role == dsl.InFilter || apart || slices.ContainsFunc(c.Fields, unread) {
		return nil
	}
	if t.near != nil {
		unknown = slices.DeleteFunc(unknown, func(word string) bool {
			o := &t.near[t.near.Index(word)]
			return o.Nearest != nil && !o.InParts() // whose parts need not be in a row anywhere
		})
	}
	known := func(term string) bool { return !slices.Contains(unknown, term) }
	if len(t.Prefixes) == 0 && !slices.ContainsFunc(t.Analysis.Terms, known) {
		return nil
	}
	return unknown
}

// findUnknown returns the words of a target that have no row and that no field
// of its clause contains.
func (a *expansion) findUnknown(ctx context.Context, t *target) (unknown []string, err error) {
	if t.clause.Parsed.Fuzzy || t.clause.Parsed.Unrelated() != "" { // the engine itself finds words with a similar spelling, or phrases of just these words
		return nil, nil
	}
	t.text.Expanded(func(o *terms.Origin) {
		if o.Unknown() && (a.s.profile.Relax == RelaxUnknown || !isName(t, o)) {
			unknown = append(unknown, o.Term)
		}
	})
	for _, f := range t.clause.Fields {
		if len(unknown) == 0 || f.Analysis == nil && !t.clause.Parsed.TermCentric() { // fields without analysis are not text
			continue
		}
		docFreqs := make([]int64, len(unknown))
		stats, err := a.cluster.Statistics(ctx, a.s.indices, f.Name, unknown, docFreqs)
		if err != nil || stats.Uncounted { // then a document may have them
			return nil, err
		}
		var absent []string
		for k, text := range unknown {
			if docFreqs[k] == 0 {
				absent = append(absent, text)
			}
		}
		unknown = absent
	}
	return unknown, nil
}

// isName reports whether a word is written as names and abbreviations are,
// which other words only resemble: all in capitals or, where the field keeps
// them, with a capital in a text that has no other.
func isName(t *target, o *terms.Origin) bool {
	typed := o.Term
	if written := t.Analysis.Written; written != nil {
		typed = cmp.Or(written[o.First], typed)
	}
	hasCapital := func(text string) bool { return strings.ContainsFunc(text, unicode.IsUpper) }
	if !strings.ContainsFunc(typed, unicode.IsLower) {
		return hasCapital(typed)
	}
	return hasCapital(o.Term) && !hasCapital(strings.ReplaceAll(t.clause.Parsed.Text, typed, ""))
}
