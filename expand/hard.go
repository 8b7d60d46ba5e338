package expand

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
)

// In [ModeHard] the score of a hit is the length-normalized soft cosine of the
// text x and a field y of the document:
//
//	(Wx)ᵀS(Wy) / (‖Wx‖·‖Wy‖) = Σ_j v_j·y_j / (‖Wx‖·‖Wy‖),  v_j = Σ_i x_i w_i s_ij w_j
//
// with s_ii = 1, over the terms j of the text and all of their neighbors. W are
// frozen weights: idf, see [Weights]. The sum is written as one term query for
// each j on a field that scores linearly in tf, see [esclient.Linear], with the
// boost
//
//	v_j / (‖Wx‖·c·idf_j)    c and idf_j the engine's,
//	v_j / ‖Wx‖              if a script scores,
//
// and a function_score divides it by ‖Wy‖, a doc value of the hit. The original
// decides which documents match, as in the other forms, and adds nothing to the
// score. Several fields are combined as the clause combines them.
//
// BM25 scores have another scale. So if one text clause of a search cannot be
// scored this way, none is, and each clause gives the reason.

const (
	// maxExactTerms is how many terms are added to a search: the neighbors of 50
	// terms with 200 each, about 700 KiB.
	maxExactTerms = 10_000
	// maxSharedTerms is how many terms are added to all searches of one request,
	// in equal shares: about 5 MiB.
	maxSharedTerms = 1 << 16
	// 1/shareOfEngine of the clauses, 16 of 1,024, is left for the engine.
	shareOfEngine = 64
)

// hard is the measure of [ModeHard], or with soft that of [ModeSoftCosine].
type hard struct {
	*expansion

	soft bool
}

// A linearField is the field that scores a target.
type linearField struct {
	esclient.Linear

	reason  reason.Reason // why there is none
	failure error         // why the cluster gave no answer
}

// asksAbout returns the targets that have weights, or none if a known reason
// already rules out the measure.
func (a *hard) asksAbout(targets []*target) []*target {
	a.notRanked(reason.NoNorms, true, func(c *form.Clause) reason.Reason {
		if !c.Additive || c.Parsed.TermCentric() {
			return reason.NotAdditive
		}
		return ""
	})
	if !a.allOrNone() {
		return nil
	}
	return withWeights(targets)
}

// withWeights returns the targets that have weights, of clauses that may be
// ranked by them.
func withWeights(targets []*target) (weighted []*target) {
	for _, t := range targets {
		if t.weights != nil && t.weights.Docs() > 0 && t.clause.ModeReason == "" {
			t.linear = new(linearField)
			weighted = append(weighted, t)
		}
	}
	return weighted
}

// ask asks for the linear field of a target.
func (a *hard) ask(ctx context.Context, t *target) error {
	x := t.linear
	matrix := ""
	if a.soft {
		matrix = t.rows.Checksum()
	}
	linear, err := a.weights.Linear(ctx, a.s.indices, t.Name, t.weights.ID(), matrix)
	x.Linear = linear
	x.reason, x.failure = reasonOf(err)
	if err == nil && (a.s.Redefines(linear.Field) || a.s.Redefines(linear.Norm)) {
		x.reason = reason.RuntimeField
	}
	return nil // a failure counts only if the measure is used
}

// notRanked sets why a measure cannot rank clauses. nested is the reason for
// clauses inside nested queries: what the measure needs is in the parent
// document. otherScale says that the measure's scores have another scale.
// special returns further reasons of a clause.
func (a *expansion) notRanked(nested reason.Reason, otherScale bool, special func(c *form.Clause) reason.Reason) {
	for i := range a.clauses {
		switch c := &a.clauses[i]; {
		case c.Parsed.Role == dsl.Note:
		case c.Reason != "":
			c.ModeReason = c.Reason
		case a.s.Scores.Min:
			c.ModeReason = reason.MinScore // it is meant for BM25 scores
		case otherScale && a.s.OwnRescore && !a.s.profile.RescoreQueries:
			c.ModeReason = reason.Rescore // its scores are added to BM25 scores
		case strings.Contains(c.Parsed.Path, ".nested."):
			c.ModeReason = nested
		default:
			c.ModeReason = special(c)
		}
	}
}

// allOrNone reports whether a measure whose scores have another scale can rank
// all clauses. If not, those that it could rank get the first reason.
func (a *expansion) allOrNone() bool {
	first := reason.Reason("")
	for i := range a.clauses {
		c := &a.clauses[i]
		for k := range c.Fields {
			if why := c.Fields[k].Reason; why != reason.NoTerms { // a clause without terms finds nothing
				c.ModeReason = cmp.Or(c.ModeReason, why)
			}
		}
		first = cmp.Or(first, c.ModeReason)
	}
	for i := range a.clauses {
		a.clauses[i].ModeReason = cmp.Or(a.clauses[i].ModeReason, first)
	}
	return first == ""
}

// targetNotExact returns why the measure cannot score an analyzed target, or
// "".
func (a *hard) targetNotExact(t *target) reason.Reason {
	switch c, x := t.clause, t.linear; {
	case !c.Additive || !t.OneTermPerWord():
		return reason.NotAdditive
	case c.HardTooDeep():
		return reason.TooDeep
	case x == nil:
		return reason.NoWeights
	case x.reason != "":
		return x.reason
	case !x.Scripted:
		return a.s.shardReason(t.Analysis)
	}
	return ""
}

// choose fetches weights and statistics and selects the terms. If the measure
// cannot score the search, it adds terms as in [ModeBM25], with the reason of
// each clause.
func (a *hard) choose(ctx context.Context) (*chosen, error) {
	for _, t := range a.open {
		t.clause.ModeReason = cmp.Or(t.clause.ModeReason, a.targetNotExact(t))
	}
	if !a.allOrNone() || len(a.open) == 0 {
		return bm25{a.expansion}.choose(ctx)
	}
	for _, t := range a.open {
		if err := t.linear.failure; err != nil {
			return nil, failed(StageLinear, err)
		}
	}
	c := a.begin()
	most := min(exactLimit(a.clauseLimit), maxExactTerms, maxSharedTerms/a.together)
	gather(c.open, min(candidatesPerTerm*most, maxExactTerms))
	if err := each(c.open, func(t *target) (err error) {
		t.Exact, t.Stats, err = a.weigh(ctx, t, t.Terms)
		return err
	}); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(c.open, func(t *target) bool { return t.Stats.Uncounted && !t.Exact.Scripted }) {
		for _, t := range a.open {
			t.clause.ModeReason = reason.NoFrequencies
		}
		a.allOrNone()
		return bm25{a.expansion}.choose(ctx)
	}
	added := 0
	for _, t := range c.open {
		t.clause.Exact, t.Added = true, t.Terms.Candidates
		added += len(t.Added)
	}
	form.CutExact(c.clauses, added-most) // before the body is written
	return c, nil
}

// exactLimit returns how many clauses a search in [ModeHard] may have. It
// leaves some of the cluster's limit to the filters of aliases, nested
// documents and users.
func exactLimit(known int) int {
	limit := cmp.Or(known, defaultClauseLimit)
	return limit - limit/shareOfEngine
}

// gather collects the neighbors of each target, and keeps the best of its share
// of total.
func gather(open []*target, total int) {
	sizes := make([]int, len(open))
	for i, t := range open {
		t.Terms.Gather(t.rows.Docs())
		sizes[i] = len(t.Terms.Candidates)
	}
	quota, _ := terms.Share(sizes, total)
	for _, t := range open {
		if len(t.Terms.Candidates) > quota {
			t.Terms.KeepBest(quota)
			t.Truncated = true
		}
	}
}

// weigh settles the terms of a target by their weights and live statistics.
func (a *hard) weigh(ctx context.Context, t *target, sel *terms.Selection) (x *form.Exact, stats esclient.FieldStatistics, err error) {
	words := sel.Terms()
	rows, docFreqs := make([]simmatrix.Row, len(words)), make([]int64, len(words))
	linear, weights := t.linear.Linear, t.weights
	err = recovery.InParallel(2, 2, func(i int) (err error) {
		if i == 0 {
			return failed(StageWeights, weights.Rows(ctx, words, rows))
		}
		stats, err = a.statistics(ctx, t, linear.Field, words, docFreqs)
		return failed(StageStatistics, err)
	})
	if err != nil {
		return nil, stats, err
	}
	frozen := func(k int) int64 { return int64(rows[k].DocFreq()) }
	norm := sel.SettleFrozen(weights.Docs(), frozen, stats.DocCount, docFreqs)
	if a.soft {
		norm = sel.SoftNorm()
	}
	return &form.Exact{Linear: linear, QueryNorm: norm, Soft: a.soft}, stats, nil
}
