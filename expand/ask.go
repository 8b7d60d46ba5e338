package expand

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

const (
	// maxText is the length in bytes of the longest text that is analyzed: 64 for
	// each of the 1,024 terms that MaxQueryTerms allows.
	maxText = 64 << 10
	// maxTerms is how many terms an expanded text may have: the clauses that
	// engines accept in a query by default.
	maxTerms = 1024
	// maxExplainedIndices is how many indices without a matrix an explanation
	// names.
	maxExplainedIndices = 10
)

// An expansion is of one search: it asks the cluster and the matrices for what
// the clauses need. A measure chooses in copies, so that the answers stay as
// they are.
type expansion struct {
	sources

	s    *search
	m    *memory
	pins pins
	// together is the number of searches in the request. clauseLimit is how many
	// clauses the indices accept in a query, 0 if unknown.
	together, clauseLimit int
	// clauses are those of the search with what is known of them. targets are
	// their fields that may be expanded.
	clauses []form.Clause
	targets []target
	// open are the targets that may still get terms.
	open []*target
	// notNested explains clauses without the nested ones that their fields allow.
	notNested []Explanation
	// first are the first hits whose terms are added, nil before the first pass.
	first []FirstHit
	// recipe says how many terms are written.
	recipe *form.Recipe
	// key and followUp are [Rerank.Key] and [Part.FollowUp]. onlyIfAdded says that
	// hits are put in order only if a word is added to the search.
	key         HitsKey
	followUp    *Request
	onlyIfAdded bool
}

// A measure ranks the hits of a search.
type measure interface {
	// asksAbout returns the targets for which ask is called while their texts are
	// analyzed.
	asksAbout(open []*target) []*target
	ask(ctx context.Context, t *target) error
	// choose returns the terms to add to the targets that are still open. If the
	// measure cannot rank the search, each clause has the reason.
	choose(ctx context.Context) (*chosen, error)
}

// A chosen search is its clauses with the terms to add, their targets, and
// those that were open before.
type chosen struct {
	clauses []form.Clause
	targets []target
	open    []*target
	enough  Enough // hits, if it is ordered
	nothing bool   // the search as typed finds none
}

// ask finds out what the search is rewritten from. It returns why it is left
// alone, or "".
func (a *expansion) ask(ctx context.Context, m measure) (reason.Reason, error) {
	if err := a.nest(ctx); err != nil {
		return "", err
	}
	if err := a.learn(ctx, m); err != nil {
		return "", err
	}
	return a.pipeline(ctx)
}

// learn finds the fields of the clauses, the matrices bound to them, the terms
// of the texts and the rows of these terms.
func (a *expansion) learn(ctx context.Context, m measure) error {
	if err := ctx.Err(); err != nil { // the client is gone
		return err
	}
	a.start()
	if err := run(ctx, StageFields, func(ctx context.Context) (err error) {
		if err = a.findFields(ctx); err == nil {
			err = a.bind(ctx)
		}
		return err
	}); err != nil {
		return err
	}
	some := m.asksAbout(a.open)
	if len(some) == 0 {
		return a.texts(ctx)
	}
	return recovery.InParallel(2, 2, func(i int) error {
		if i == 1 {
			return each(some, func(t *target) error { return m.ask(ctx, t) })
		}
		return a.texts(ctx)
	})
}

// start takes the clauses of the search.
func (a *expansion) start() {
	a.clauseLimit = int(a.limits.of(LimitClauses, a.s.req.Index))
	a.clauses = make([]form.Clause, 0, len(a.s.Clauses))
	for i := range a.s.Clauses {
		parsed := &a.s.Clauses[i]
		c := form.Clause{Parsed: parsed, Additive: parsed.Additive, Matches: parsed.Matches, Reason: parsed.Reason}
		switch mode := a.s.profile.Mode; {
		case a.s.profile.Matching == Same:
			c.Matches = dsl.Fixed
		case a.s.order && !mode.adds(): // these have no alternatives
			c.Matches = max(c.Matches, dsl.Same)
		}
		c.Fields = make([]form.Field, 0, len(parsed.Fields))
		for _, f := range parsed.Fields {
			c.Fields = append(c.Fields, form.Field{Name: f.Name, Boost: f.Boost})
		}
		a.clauses = append(a.clauses, c)
	}
}

// findFields sets the full names of each clause's fields: the default fields if
// the clause names none, and the matches of its patterns.
func (a *expansion) findFields(ctx context.Context) error {
	fields := 0
	for i := range a.clauses {
		c := &a.clauses[i]
		if c.Reason != "" {
			continue
		}
		if len(c.Fields) == 0 {
			c.Additive = false
			for _, field := range a.s.profile.DefaultFields {
				c.Fields = append(c.Fields, form.Field{Name: field, Boost: 1})
			}
			if len(c.Fields) == 0 {
				c.Reason = reason.NoDefaultFields
				continue
			}
		}
		if err := a.matchPatterns(ctx, c); err != nil {
			return err
		}
		if len(c.Fields) == 0 {
			c.Reason = reason.NoField
		}
		if c.Reason == "" {
			fields += len(c.Fields)
		}
	}
	for i := range a.clauses { // patterns can match many
		if c := &a.clauses[i]; c.Reason == "" && c.Parsed.Unrelated() != "" && fields > dsl.MaxFields {
			c.Reason = reason.Phrase
			fields -= len(c.Fields)
		}
	}
	for i := range a.clauses {
		if c := &a.clauses[i]; c.Reason == "" && fields > dsl.MaxFields {
			c.Reason = reason.TooManyClauses
		}
	}
	return nil
}

// matchPatterns replaces patterns by the fields that match them. Like the
// engines, it multiplies the boosts of a field that is named twice.
func (a *expansion) matchPatterns(ctx context.Context, c *form.Clause) (err error) {
	isPattern := func(f form.Field) bool { return strings.Contains(f.Name, "*") }
	if !c.Parsed.Patterns || !slices.ContainsFunc(c.Fields, isPattern) {
		return nil
	}
	var matched []form.Field
	for _, f := range c.Fields {
		names := []string{f.Name}
		if isPattern(f) {
			names, err = a.cluster.Fields(ctx, a.s.indices, f.Name)
		}
		if c.Reason, err = reasonOf(err); c.Reason != "" || err != nil {
			return err
		}
		for _, name := range names {
			at := slices.IndexFunc(matched, func(r form.Field) bool { return r.Name == name })
			if at < 0 {
				matched = append(matched, form.Field{Name: name, Boost: f.Boost})
			} else {
				matched[at].Boost *= f.Boost
			}
		}
		if len(matched) > dsl.MaxFields {
			c.Reason = reason.TooManyClauses
			return nil
		}
	}
	c.Fields = matched
	return nil
}

// bind finds the fields that may be expanded, with their matrices, and sets the
// reason of the others. It also chooses the recipe, which depends on the
// matrices.
func (a *expansion) bind(ctx context.Context) error {
	n := 0
	for i := range a.clauses {
		n += len(a.clauses[i].Fields)
	}
	a.targets = make([]target, 0, n) // it must not grow: open points into it
	a.open = make([]*target, 0, n)
	for i := range a.clauses {
		c := &a.clauses[i]
		for k := range c.Fields {
			if c.Reason != "" {
				break
			}
			t := target{clause: c, Field: &c.Fields[k]}
			why, err := a.bindField(ctx, &t)
			if err != nil {
				return err
			}
			switch {
			case why != "" && c.Parsed.Across == dsl.ByTerm: // the others are searched apart
				t.Reason = why
				continue
			case why != "":
				c.LeaveField(t.Field, why)
				continue
			}
			a.targets = append(a.targets, t)
			a.open = append(a.open, &a.targets[len(a.targets)-1])
		}
		if noField := !slices.ContainsFunc(c.Fields, func(f form.Field) bool { return f.Reason == "" }); c.Parsed.Unrelated() != "" && noField {
			c.Reason = cmp.Or(c.Reason, reason.Phrase)
		}
	}
	a.recipe = a.recipeOf(a.s.order)
	return nil
}

// recipeOf returns the recipe. order says that related words only put the
// hits in order.
func (a *expansion) recipeOf(order bool) *form.Recipe {
	mixed := len(a.open) > 0 && !slices.ContainsFunc(a.open, func(t *target) bool { return t.rows.Model() == "" })
	effort := cmp.Or(a.s.req.Effort, a.s.profile.Effort)
	exact := !a.s.Hybrid && (a.s.profile.exact() || a.s.profile.Mode == ModeVectors)
	switch {
	case exact: // these order more hits than a normal effort scores
		return form.High.Recipe(mixed, false)
	case a.s.besideVectors():
		return effort.Recipe(mixed, order).BesideVectors()
	case order && a.s.profile.Matching == Auto:
		return effort.Ordering()
	}
	return effort.Recipe(mixed, order)
}

func (a *expansion) bindField(ctx context.Context, t *target) (reason.Reason, error) {
	if a.s.Redefines(t.Name) {
		return reason.RuntimeField, nil
	}
	bound, err := a.pins.Matrices.For(ctx, a.s.indices, t.Name)
	if err != nil {
		return reasonOf(err)
	}
	if t.rows, t.named = bound.Rows, bound.Named; t.rows == nil {
		t.Indices = bound.Resolved[:min(len(bound.Resolved), maxExplainedIndices)]
		return reason.NoMatrix, nil
	}
	t.Matrix, t.Model = t.rows.Version(), t.rows.Model()
	if a.pins.Weights != nil {
		t.weights, err = a.pins.Weights.Weights(ctx, a.s.indices, t.Name)
	}
	return reasonOf(err)
}

// texts sets the targets' terms and rows.
func (a *expansion) texts(ctx context.Context) error {
	if err := run(ctx, StageAnalyze, func(ctx context.Context) error { return a.analyze(ctx, a.open) }); err != nil {
		return err
	}
	for i := range a.clauses {
		understand(&a.clauses[i])
	}
	a.open = stillOpen(a.open)
	if err := each(leading(a.open), func(t *target) error { return a.limitTerms(ctx, t) }); err != nil {
		return failed(StageStatistics, err)
	}
	a.open = stillOpen(a.open)
	return run(ctx, StageRows, func(ctx context.Context) error { return a.fetchRows(ctx, leading(a.open)) })
}

// limitTerms leaves neighbors only to the most selective terms of a long text.
func (a *expansion) limitTerms(ctx context.Context, t *target) error {
	if t.clause.Parsed.Like != nil {
		if err := a.likeTerms(ctx, t); err != nil {
			return err
		}
	}
	if len(t.text) <= a.s.profile.MaxQueryTerms || a.s.profile.exact() {
		return nil
	}
	words := t.text.Terms()
	docFreqs := make([]int64, len(words))
	stats, err := a.statistics(ctx, t, t.Name, words, docFreqs)
	if err == nil {
		t.text.Limit(docFreqs, stats.DocCount, a.s.profile.MaxQueryTerms)
	}
	return err
}

func (a *expansion) analyze(ctx context.Context, targets []*target) error {
	return each(targets, func(t *target) error {
		if like := t.clause.Parsed.Like; like != nil && len(like.Stored) > 0 {
			return a.storedTerms(ctx, t)
		}
		text := t.clause.Parsed.Text
		if len(text) > maxText {
			t.Reason = reason.TooManyTerms
			return nil
		}
		analysis, err := a.cluster.Analyze(ctx, a.s.indices, t.Name, t.clause.Parsed.Analyzer, text)
		if t.Reason, err = reasonOf(err); t.Reason != "" || err != nil {
			return err
		}
		if t.clause.Parsed.Prefix { // the terms at the last position are prefixes
			n, trimmed := len(analysis.Terms), *analysis
			for n > 0 && analysis.Positions[n-1] == analysis.Positions[len(analysis.Positions)-1] {
				n--
			}
			trimmed.Terms, trimmed.Positions = analysis.Terms[:n], analysis.Positions[:n]
			t.Prefixes = analysis.Terms[n:]
			t.PrefixGap = n > 0 && analysis.Positions[n] > analysis.Positions[n-1]+1
			analysis = &trimmed
		}
		switch {
		case analysis.NotWords != "" && !t.named:
			t.Reason = reason.NotWords
		case len(analysis.Terms) == 0:
			t.Reason = reason.NoTerms
			if len(t.Prefixes) > 0 {
				t.Reason = cmp.Or(t.clause.Parsed.Unrelated(), t.Reason)
			}
		case len(analysis.Terms) > maxTerms, a.s.profile.exact() && len(analysis.Terms) > a.s.profile.MaxQueryTerms:
			t.Reason = reason.TooManyTerms
		default:
			t.Analysis, t.text = analysis, terms.Read(analysis.Terms, analysis.Positions)
		}
		return nil
	})
}

// understand derives properties of a clause from the analyses of all its
// fields.
func understand(c *form.Clause) {
	if c.Reason == "" && c.Parsed.Across == dsl.ByTerm && slices.ContainsFunc(c.Fields, func(f form.Field) bool { return f.Reason != "" || differ(&f, &c.Fields[0]) }) {
		// The engine makes groups of the fields with one analyzer. For added terms
		// each field is a group of its own, which finds no more.
		apart := *c.Parsed
		apart.Across = dsl.Apart
		c.Parsed = &apart
	}
	c.Whole = !c.Parsed.Phrase && !c.Parsed.Prefix && !c.Parsed.TermCentric() && c.Matches != dsl.Fixed &&
		!slices.ContainsFunc(c.Fields, func(f form.Field) bool { return f.Analysis == nil || f.Analysis.Whole == 0 })
	c.SingleWord = !slices.ContainsFunc(c.Fields, func(f form.Field) bool { return f.Analysis == nil || f.Words() > 1 })
	for k := range c.Fields {
		f := &c.Fields[k]
		switch {
		case c.Reason != "":
		case f.Reason != "":
			c.LeaveField(f, f.Reason)
		case c.Parsed.TermCentric() && differ(f, &c.Fields[0]):
			c.Reason = reason.FieldsDiffer
		case f.Analysis.Graph, f.Analysis.Spanned:
			c.Additive = false
		}
	}
	c.Matches = max(c.Matches, matchesOf(c))
}

// differ reports whether the engine cannot search two fields as one. OpenSearch
// 2 searches fields whose analyzers have different names separately, even if
// these give the same terms.
func differ(f, first *form.Field) bool {
	return f.Analysis.Analyzer != first.Analysis.Analyzer || !slices.Equal(f.Analysis.Terms, first.Analysis.Terms)
}

// matchesOf returns what a clause matches where related words find documents.
func matchesOf(c *form.Clause) dsl.Matches {
	for k := range c.Fields {
		switch f := &c.Fields[k]; {
		case f.Analysis == nil:
		case f.Analysis.Graph:
			// The engine searches for a term that spans several positions as part of a
			// phrase. Its other words alone find nothing, so a related word must not
			// either.
			return max(c.Parsed.Matches, dsl.Same)
		case c.Parsed.Words > 0 && !f.Splits(c.Parsed.Words):
			return max(c.Parsed.Matches, dsl.Same)
		}
	}
	return c.Parsed.Matches
}

// fetchRows sets the rows of the targets' terms. It makes one round trip for
// consecutive targets of the same matrix.
func (a *expansion) fetchRows(ctx context.Context, targets []*target) error {
	for len(targets) > 0 {
		matrix, n := targets[0].rows, 0
		words := make([]string, 0, len(targets[0].text))
		for ; n < len(targets) && targets[n].rows == matrix; n++ {
			t := targets[n]
			a.withRows(t, func(o *terms.Origin) { words = append(words, o.Term) })
			if has := matrix.Expressions(); has != nil && a.s.profile.Expressions && t.clause.Parsed.Like == nil {
				t.expressions = t.text.Recognize(t.Analysis.Terms, t.Analysis.Positions, has)
			}
			for _, e := range t.expressions {
				words = append(words, e.Term)
			}
		}
		rows := make([]simmatrix.Row, len(words))
		if err := matrix.Rows(ctx, words, rows); err != nil {
			return fmt.Errorf("%s: %w", matrix.Version(), err)
		}
		k := 0
		for _, t := range targets[:n] {
			a.withRows(t, func(o *terms.Origin) {
				o.Row = rows[k]
				k++
			})
			for i := range t.expressions {
				t.expressions[i].Row = rows[k]
				k++
			}
		}
		targets = targets[n:]
	}
	return nil
}

// withRows calls f for each term of a text whose row is needed: of a long text
// most terms get only alternatives.
func (a *expansion) withRows(t *target, f func(o *terms.Origin)) {
	if !a.s.profile.Expressions {
		t.text.Expanded(f)
		return
	}
	for i := range t.text {
		f(&t.text[i])
	}
}

// filtered reports whether an alias shows the client only some documents. The
// added terms may come from the hidden ones, too.
func filtered(clauses []form.Clause) bool {
	for _, f := range form.Fields(clauses) {
		if f.Analysis != nil && f.Analysis.Filtered {
			return true
		}
	}
	return false
}
