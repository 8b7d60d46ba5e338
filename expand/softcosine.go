package expand

import (
	"cmp"
	"context"
	"slices"

	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/simmatrix"
)

// In [ModeSoftCosine] the engine computes the soft cosine measure of the text x
// and a field y,
//
//	(Wx)ᵀS(Wy) / (√((Wx)ᵀS(Wx)) · √((Wy)ᵀS(Wy)))
//
// as it does the measure of [ModeHard], with other norms: that of the text is in
// the boosts, and that of the document in a doc value (Novotný 2018, theorem
// 4.2), for this S and W. With w = [Profile.SoftWeight] = 1 it is the score of
// every hit, see hard.go. With less, the score of a clause is
//
//	score + w/(1 − w)·M·soft    M = scale·Σ_i x_i idf_i, the largest BM25 score
//
// where the score is that of [ModeBM25], with its added terms. In a rescore only
// that has the measure, so that the engine computes it for the first hits. The
// measure then has the terms of the text and, of their neighbors, those with the
// largest v_j, [Profile.MaxAddedTerms] in all fields together.
//
// A clause that cannot be scored so is scored as in ModeBM25, with the reason.

// softCosine is the measure of [ModeSoftCosine] beside BM25.
type softCosine struct{ hard }

// asksAbout returns the targets that have weights.
func (a *softCosine) asksAbout(targets []*target) []*target {
	if a.s.unscored {
		return nil
	}
	a.notRanked(reason.NoNorms, false, func(*form.Clause) reason.Reason { return "" })
	return withWeights(targets)
}

// choose adds terms as in [ModeBM25], and the measure to each clause that
// allows it.
func (a *softCosine) choose(ctx context.Context) (*chosen, error) {
	if a.s.unscored {
		return bm25{a.expansion}.choose(ctx)
	}
	for _, t := range a.open {
		why := &t.clause.ModeReason
		if *why = cmp.Or(*why, a.targetNotExact(t)); *why == "" && t.clause.Parsed.TermCentric() {
			*why = reason.NotAdditive
		}
		if *why == "" && len(t.text) > a.s.profile.MaxQueryTerms {
			*why = reason.TooManyTerms
		}
	}
	c, err := bm25{a.expansion}.choose(ctx)
	if err != nil {
		return nil, err
	}
	some := without(c.open, func(t *target) bool { return t.clause.ModeReason != "" })
	most := max(a.s.profile.MaxAddedTerms/max(len(some), 1), 1)
	for _, t := range some { // the memory of selections is shared
		t.Beside = &form.Beside{Terms: a.m.selection()}
		t.Beside.Terms.Start(t.text)
		t.Beside.Terms.NoAlternatives = true
	}
	if err := each(some, func(t *target) error { return a.measure(ctx, t, most) }); err != nil {
		return nil, err
	}
	nothing := []reason.Reason{reason.NoNeighbors, reason.NeighborsTooFrequent, reason.TermLimit}
	for i := range c.clauses {
		clause := &c.clauses[i]
		clause.Scoring = form.Linear // until a plan has another form
		if clause.HasBeside() && a.newPlan().TooDeep(&a.m.queries, clause) {
			for k := range clause.Fields {
				clause.Fields[k].Beside = nil
			}
			clause.ModeReason = reason.TooDeep
		}
		for k := range clause.Fields {
			if f := &clause.Fields[k]; f.Beside != nil && slices.Contains(nothing, f.Reason) {
				f.Reason = "" // the measure has the terms of the text, too
			}
		}
	}
	return c, nil
}

// measure sets the measure of a target over the terms of its text and the most
// important of their neighbors.
func (a *softCosine) measure(ctx context.Context, t *target, most int) error {
	b := t.Beside
	if err := t.linear.failure; err != nil {
		return failed(StageLinear, err)
	}
	b.Terms.Gather(t.rows.Docs())
	b.Terms.KeepBest(candidatesPerTerm * most)
	x, stats, err := a.weigh(ctx, t, b.Terms)
	if err != nil {
		return err
	}
	if stats.Uncounted && !x.Scripted {
		t.clause.ModeReason, t.Beside = reason.NoFrequencies, nil
		return nil
	}
	b.Terms.KeepBest(most)
	b.Exact, b.Docs = *x, stats.DocCount
	b.Most, err = a.mostBeside(ctx, t)
	return err
}

// mostBeside returns w/(1 − w)·M of a target, the largest score of a measure
// beside BM25, before the boosts of clause and field.
func (a *expansion) mostBeside(ctx context.Context, t *target) (float64, error) {
	words := t.text.Terms()
	docFreqs := make([]int64, len(words))
	stats, err := a.statistics(ctx, t, t.Name, words, docFreqs)
	if err != nil {
		return 0, failed(StageStatistics, err)
	}
	most, w := 0.0, a.s.profile.SoftWeight
	for i := range t.text {
		most += t.text[i].X * simmatrix.IDF(docFreqs[i], stats.DocCount)
	}
	return most * (w / (1 - w) * cmp.Or(stats.Scale, 1)), nil
}
