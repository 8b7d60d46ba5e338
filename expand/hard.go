package expand

import (
	"cmp"
	"context"
	"strings"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/recovery"
)

// [ModeHard] makes the score of a hit the length-normalized soft cosine of the
// text x and a field y of the document:
//
//	(Wx)ᵀS(Wy) / (‖Wx‖·‖Wy‖) = Σ_j v_j·y_j / (‖Wx‖·‖Wy‖),  v_j = Σ_i x_i w_i s_ij w_j
//
// with s_ii = 1, over the terms j of the text and all of their neighbors. W
// are weights that were frozen: idf, see [Weights]. The sum is written as
// one term query for each j on a field that scores linearly in tf, see
// [esclient.Linear], with the boost
//
//	v_j / (‖Wx‖·c·idf_j)    c and idf_j the engine's,
//	v_j / ‖Wx‖              where a script scores,
//
// and a function_score divides it by ‖Wy‖, a doc value of the hit. The original
// decides what is found, as in the other forms, and scores
// nothing. Several fields are combined as the clause combines them.
//
// The scores of BM25 are of another scale: where one clause of a search that
// looks for text cannot be scored like this, none is, and each says why.

const (
	// maxExactTerms bounds the terms that are added to a search: the neighbors of
	// 50 terms with 200 each, and about 700 KiB.
	maxExactTerms = 10_000
	// maxSharedTerms bounds the terms that are added to all searches of one
	// request, which get the same share of them: about 5 MiB.
	maxSharedTerms = 1 << 16
	// shareOfEngine is the share of the clauses, 16 of 1,024, that is left for the
	// engine.
	shareOfEngine = 64
)

// ask asks for the linear field of a target.
func (a hard) ask(ctx context.Context, t *target) error {
	x := t.exact
	linear, err := a.weights.Linear(ctx, a.s.indices, t.Name, t.weights.ID())
	x.linear = linear
	if x.reason, x.failure = reasonOf(err); err == nil && (a.s.Redefines(linear.Field) || a.s.Redefines(linear.Norm)) {
		x.reason = reason.RuntimeField
	}
	return nil // a failure counts only where the measure is taken
}

// hard is the measure of [ModeHard].
type hard struct{ *asker }

// asksAbout returns the targets that have weights, none where something that
// is known already speaks against the measure.
func (a hard) asksAbout(targets []*target) (weighted []*target) {
	for i := range a.clauses {
		if c := &a.clauses[i]; !c.Note {
			c.ModeReason = a.notExact(c)
		}
	}
	if a.leaveExact() || a.weights == nil {
		return nil
	}
	for _, t := range targets {
		if t.weights != nil && t.weights.Docs() > 0 {
			t.exact = new(exactField)
			weighted = append(weighted, t)
		}
	}
	return weighted
}

// notExact returns why the request does not let a clause be scored by it.
func (a hard) notExact(c *form.Clause) reason.Reason {
	switch {
	case c.Reason != "":
		return c.Reason
	case a.s.Scores.Min:
		return reason.MinScore // it is meant for other scores
	case a.s.OwnRescore && !a.s.profile.RescoreQueries:
		return reason.Rescore // so is what it adds
	case strings.Contains(c.Parsed.Path, ".nested."):
		return reason.NoNorms // they stand in the document around the nested ones
	case !c.Additive || c.TermCentric:
		return reason.NotAdditive
	}
	return ""
}

// leaveExact reports whether one of the clauses cannot be scored by the
// measure. Then those that could be have the reason of the first that cannot.
func (a *asker) leaveExact() bool {
	var first reason.Reason
	for i := range a.clauses {
		c := &a.clauses[i]
		for k := range c.Fields {
			if why := c.Fields[k].Reason; why != reason.NoTerms { // which finds nothing
				c.ModeReason = cmp.Or(c.ModeReason, why)
			}
		}
		first = cmp.Or(first, c.ModeReason)
	}
	for i := range a.clauses {
		a.clauses[i].ModeReason = cmp.Or(a.clauses[i].ModeReason, first)
	}
	return first != ""
}

// targetNotExact is notExact for an analyzed target.
func (a hard) targetNotExact(t *target) reason.Reason {
	switch c, x := t.clause, t.exact; {
	case !c.Additive || !t.OneTermPerWord():
		return reason.NotAdditive
	case c.TooDeep(form.Hard):
		return reason.TooDeep
	case x == nil:
		return reason.NoWeights
	case x.reason != "":
		return x.reason
	case !x.linear.Scripted:
		return a.s.shardReason(t.Analysis)
	}
	return ""
}

// choose asks for what the measure takes and selects the terms. Where the
// search cannot be scored by it, terms are added as in [ModeBM25], and the
// clauses say why.
func (a hard) choose(ctx context.Context, open []*target) error {
	for _, t := range open {
		t.clause.ModeReason = cmp.Or(t.clause.ModeReason, a.targetNotExact(t))
	}
	if a.leaveExact() || len(open) == 0 {
		return bm25(a).choose(ctx, open)
	}
	for _, t := range open {
		if err := t.exact.failure; err != nil {
			return failed(StageLinear, err)
		}
	}
	most := min(exactLimit(a.clauseLimit), maxExactTerms, maxSharedTerms/a.together)
	gather(open, min(candidatesPerTerm*most, maxExactTerms))
	if err := each(open, func(t *target) error {
		m := &a.m.weighing
		if len(open) > 1 { // they are weighed at the same time
			m = new(weighing)
		}
		return a.weigh(ctx, t, m)
	}); err != nil {
		return err
	}
	added := 0
	for _, t := range open {
		t.clause.Exact, t.Added = true, t.Terms.Candidates
		added += len(t.Added)
	}
	form.CutExact(a.clauses, added-most) // before any of them is written
	return nil
}

// exactLimit returns how many clauses such a search may have: a few less than
// the cluster takes, for the filters of aliases, nested documents and users.
func exactLimit(known int) int {
	limit := cmp.Or(known, defaultClauseLimit)
	return limit - limit/shareOfEngine
}

// gather collects the neighbors, and keeps the best of their share of total.
func gather(targets []*target, total int) {
	sizes := make([]int, len(targets))
	for i, t := range targets {
		t.Terms.Gather(t.rows.Docs())
		sizes[i] = len(t.Terms.Candidates)
	}
	quota, _ := terms.Share(sizes, total)
	for _, t := range targets {
		if len(t.Terms.Candidates) > quota {
			t.Terms.KeepBest(quota)
			t.Truncated = true
		}
	}
}

// weigh fetches the weights of the terms and their live statistics.
func (a hard) weigh(ctx context.Context, t *target, m *weighing) error {
	m.terms = t.Terms.Terms(m.terms[:0])
	m.rows, m.docFreqs = sized(m.rows, len(m.terms)), sized(m.docFreqs, len(m.terms))
	err := recovery.InParallel(2, 2, func(i int) (err error) {
		if i == 0 {
			return failed(StageWeights, t.weights.Rows(ctx, m.terms, m.rows))
		}
		t.Stats, err = a.cluster.Statistics(ctx, a.s.indices, t.exact.linear.Field, m.terms, m.docFreqs)
		return failed(StageStatistics, err)
	})
	if err != nil {
		return err
	}
	frozen := func(k int) int64 { return int64(m.rows[k].DocFreq()) }
	norm := t.Terms.SettleFrozen(t.weights.Docs(), frozen, t.Stats.DocCount, m.docFreqs)
	t.Exact = &form.Exact{Linear: t.exact.linear, QueryNorm: norm}
	return nil
}
