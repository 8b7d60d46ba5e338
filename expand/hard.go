package expand

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/akin-search/akin/esclient"
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

// hard is the measure of [ModeHard].
type hard struct {
	*asker

	// reasons say, by clause, why the request does not let it be scored by the
	// measure, and linear what is known of a target with weights.
	reasons []reason.Reason
	linear  map[*target]*linearField
}

// A linearField is what a target is scored by.
type linearField struct {
	esclient.Linear

	reason  reason.Reason // why there is none
	failure error         // why that is not known
}

// asksAbout returns the targets that have weights, none where something that
// is known already speaks against the measure.
func (a *hard) asksAbout(targets []*target) (weighted []*target) {
	a.linear = map[*target]*linearField{}
	a.reasons = a.notRanked(reason.NoNorms, true, func(c *form.Clause) reason.Reason {
		if !c.Additive || c.TermCentric {
			return reason.NotAdditive
		}
		return ""
	})
	if why := allOrNone(a.clauses, a.reasons); why != nil {
		a.reasons = why
		return nil
	}
	for _, t := range targets {
		if t.weights != nil && t.weights.Docs() > 0 {
			a.linear[t] = new(linearField)
			weighted = append(weighted, t)
		}
	}
	return weighted
}

// ask asks for the linear field of a target.
func (a *hard) ask(ctx context.Context, t *target) error {
	x := a.linear[t]
	linear, err := a.weights.Linear(ctx, a.s.indices, t.field.Name, t.weights.ID())
	x.Linear = linear
	if x.reason, x.failure = reasonOf(err); err == nil && (a.s.Redefines(linear.Field) || a.s.Redefines(linear.Norm)) {
		x.reason = reason.RuntimeField
	}
	return nil // a failure counts only where the measure is taken
}

// notRanked returns, by clause, why the request does not let a measure rank by
// it. nested is the reason of clauses that search nested documents: what the
// measure needs stands in the document around them. otherScale says that its
// scores are of another scale, and special returns what else speaks against a
// clause.
func (a *asker) notRanked(nested reason.Reason, otherScale bool, special func(c *form.Clause) reason.Reason) []reason.Reason {
	reasons := make([]reason.Reason, len(a.clauses))
	for i := range a.clauses {
		switch c := &a.clauses[i]; {
		case c.Note:
		case c.Reason != "":
			reasons[i] = c.Reason
		case a.s.Scores.Min:
			reasons[i] = reason.MinScore // it is meant for other scores
		case otherScale && a.s.OwnRescore && !a.s.profile.RescoreQueries:
			reasons[i] = reason.Rescore // so is what it adds
		case strings.Contains(c.Parsed.Path, ".nested."):
			reasons[i] = nested
		default:
			reasons[i] = special(c)
		}
	}
	return reasons
}

// allOrNone returns why the clauses of a search are not scored by a measure
// whose scores are of another scale, nil where all are. reasons say it of some
// of them, by their numbers; the others have that of the first.
func allOrNone(clauses []form.Clause, reasons []reason.Reason) []reason.Reason {
	all, first := slices.Clone(reasons), reason.Reason("")
	for i := range clauses {
		for k := range clauses[i].Fields {
			if why := clauses[i].Fields[k].Reason; why != reason.NoTerms { // which finds nothing
				all[i] = cmp.Or(all[i], why)
			}
		}
		first = cmp.Or(first, all[i])
	}
	if first == "" {
		return nil
	}
	for i := range all {
		all[i] = cmp.Or(all[i], first)
	}
	return all
}

// targetNotExact returns why an analyzed target cannot be scored by the
// measure.
func (a *hard) targetNotExact(t *target) reason.Reason {
	switch c, x := t.clause, a.linear[t]; {
	case !c.Additive || !t.field.OneTermPerWord():
		return reason.NotAdditive
	case c.TooDeep(form.Hard):
		return reason.TooDeep
	case x == nil:
		return reason.NoWeights
	case x.reason != "":
		return x.reason
	case !x.Scripted:
		return a.s.shardReason(t.field.Analysis)
	}
	return ""
}

// choose asks for what the measure takes and selects the terms. Where the
// search cannot be scored by it, terms are added as in [ModeBM25], and the
// clauses say why.
func (a *hard) choose(ctx context.Context, targets []*target) (chosen, error) {
	for _, t := range targets {
		a.reasons[t.at[0]] = cmp.Or(a.reasons[t.at[0]], a.targetNotExact(t))
	}
	if why := allOrNone(a.clauses, a.reasons); why != nil || len(targets) == 0 {
		c, err := bm25{a.asker}.choose(ctx, targets)
		c.notInMode = why
		return c, err
	}
	for _, t := range targets {
		if err := a.linear[t].failure; err != nil {
			return chosen{}, failed(StageLinear, err)
		}
	}
	clauses, open := a.begin(targets)
	most := min(exactLimit(a.clauseLimit), maxExactTerms, maxSharedTerms/a.together)
	gather(open, min(candidatesPerTerm*most, maxExactTerms))
	if err := each(open, func(t choice) error {
		m := &a.m.weighing
		if len(open) > 1 { // they are weighed at the same time
			m = new(weighing)
		}
		return a.weigh(ctx, t, m)
	}); err != nil {
		return chosen{}, err
	}
	added := 0
	for _, t := range open {
		t.clause.Exact, t.Added = true, t.Terms.Candidates
		added += len(t.Added)
	}
	clauses, _ = form.CutExact(clauses, added-most) // before any of them is written
	return chosen{clauses: clauses}, nil
}

// exactLimit returns how many clauses such a search may have: a few less than
// the cluster takes, for the filters of aliases, nested documents and users.
func exactLimit(known int) int {
	limit := cmp.Or(known, defaultClauseLimit)
	return limit - limit/shareOfEngine
}

// gather collects the neighbors, and keeps the best of their share of total.
func gather(open []choice, total int) {
	sizes := make([]int, len(open))
	for i, t := range open {
		t.Terms.Gather(t.of.rows.Docs())
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

// weigh fetches the weights of the terms and their live statistics.
func (a *hard) weigh(ctx context.Context, t choice, m *weighing) error {
	m.terms = t.Terms.Terms(m.terms[:0])
	m.rows, m.docFreqs = sized(m.rows, len(m.terms)), sized(m.docFreqs, len(m.terms))
	linear, weights := a.linear[t.of].Linear, t.of.weights
	err := recovery.InParallel(2, 2, func(i int) (err error) {
		if i == 0 {
			return failed(StageWeights, weights.Rows(ctx, m.terms, m.rows))
		}
		t.Stats, err = a.cluster.Statistics(ctx, a.s.indices, linear.Field, m.terms, m.docFreqs)
		return failed(StageStatistics, err)
	})
	if err != nil {
		return err
	}
	frozen := func(k int) int64 { return int64(m.rows[k].DocFreq()) }
	norm := t.Terms.SettleFrozen(weights.Docs(), frozen, t.Stats.DocCount, m.docFreqs)
	t.Exact = &form.Exact{Linear: linear, QueryNorm: norm}
	return nil
}
