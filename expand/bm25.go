package expand

import (
	"cmp"
	"context"
	"slices"

	"github.com/akin-search/akin/expand/dsl"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/expand/reason"
	"github.com/akin-search/akin/expand/terms"
	"github.com/akin-search/akin/internal/recovery"
)

// candidatesPerTerm is how many candidates are looked up in the live statistics
// for every term that may be added. Some drop out because the index does not
// have them or has them too often.
const candidatesPerTerm = 2

// bm25 is the measure of [ModeBM25]. It also chooses the terms that find the
// hits of [ModeSoft].
type bm25 struct{ *expansion }

func (bm25) asksAbout([]*target) []*target      { return nil }
func (bm25) ask(context.Context, *target) error { return nil }

func (a bm25) choose(ctx context.Context) (*chosen, error) {
	if len(a.first) == 0 { // else it has asked for them before
		if err := a.nearWords(ctx, leading(a.open)); err != nil {
			return nil, err
		}
	}
	c := a.begin()
	return c, a.add(ctx, c.open)
}

// add selects the terms to add to targets, first by their rows, then by the
// live statistics of the best ones.
func (a bm25) add(ctx context.Context, open []*target) error {
	for _, t := range open {
		t.Optional = t.optional
		if t.near != nil {
			t.Terms.Start(t.near)
			t.Terms.Expressions = t.nearExpressions
		}
	}
	feedback := len(a.first) > 0
	if feedback {
		for _, t := range open {
			if t.clause.Parsed.Unrelated() != "" {
				continue
			}
			t.Feedback = terms.Feedback(a.first, t.Name) // the terms of the first hits
			if !t.follows() {
				t.Terms.Context = make(map[string]float64, len(t.Feedback))
				for _, f := range t.Feedback {
					t.Terms.Context[f.Term] = f.Weight
				}
			}
		}
	}
	leads := leading(open)
	for k, t := range leads {
		same := slices.IndexFunc(leads[:k], func(o *target) bool { // another field for the same text
			return !feedback && o.rows == t.rows && o.Weighting() == t.Weighting() && o.Terms.Alike(t.Terms)
		})
		if same >= 0 {
			t.Terms.Copy(leads[same].Terms)
		} else {
			t.Terms.Propose(t.Weighting(), t.rows.Docs(), t.rows.Power(), a.s.profile.MaxDocShare, a.s.profile.MaxAddedTerms*candidatesPerTerm)
		}
		if t.clause.Parsed.Unrelated() != "" {
			t.Terms.Candidates = t.Terms.Candidates[:0]
		}
		if t.nothing() && len(t.Optional) == 0 && !feedback && a.s.mode != ModeSoft { // ModeSoft needs the live frequencies of the text's own terms for its sum
			t.leave()
		}
	}
	open = stillOpen(open)
	if err := a.settle(ctx, open); err != nil {
		return failed(StageStatistics, err)
	}
	if feedback {
		if err := each(open, func(t *target) (err error) {
			t.Feedback, err = a.settleFeedback(ctx, t, len(open))
			return err
		}); err != nil {
			return failed(StageStatistics, err)
		}
	}
	for _, t := range open {
		if t.clause.HasReadings() {
			t.Terms.Alternatives = t.readings()
		}
		t.Alternatives = t.Terms.Alternatives
		if !t.follows() && t.nothing() && len(t.Feedback)+len(t.Optional) == 0 {
			t.leave()
		}
	}
	open = leading(stillOpen(open))
	if a.s.nested { // each segment has as many terms as the whole text
		segments := without(open, func(t *target) bool { return t.clause.Parsed.Role != dsl.InSegments })
		open = without(open, func(t *target) bool { return t.clause.Parsed.Role == dsl.InSegments })
		shareAdded(segments, a.s.profile.MaxAddedTerms, a.recipe)
	}
	shareAdded(open, a.s.profile.MaxAddedTerms, a.recipe)
	return nil
}

// nothing reports whether there is nothing to add.
func (t *target) nothing() bool { return len(t.Terms.Candidates)+len(t.Terms.Alternatives) == 0 }

// readings returns those of a phrase.
func (t *target) readings() []terms.Alternative {
	if t.clause.Whole {
		return t.Terms.Whole(t.Analysis.Terms[t.Analysis.Whole-1], len(t.Analysis.Terms))
	}
	if t.clause.Matches == dsl.Fixed || t.Analysis.Graph || !t.OneTermPerWord() || len(t.Prefixes) > 1 || t.PrefixGap {
		return nil
	}
	readings := t.Terms.Readings(t.Analysis.Terms, t.Analysis.Positions, t.Prefixes...)
	if t.clause.Parsed.Prefix { // no span ends in a prefix
		readings = slices.DeleteFunc(readings, func(a terms.Alternative) bool { return a.Span })
	}
	return readings
}

// leave sets the reason why no neighbor is added.
func (t *target) leave() {
	why := cmp.Or(t.clause.Parsed.Unrelated(), reason.NoNeighbors)
	frequent := func(l terms.LeftOut) bool { return l.Why == terms.Frequent }
	if why == reason.NoNeighbors && slices.ContainsFunc(t.Terms.LeftOut, frequent) {
		why = reason.NeighborsTooFrequent
	}
	t.clause.LeaveField(t.Field, why)
}

// settle computes the final values of the terms to add from their live document
// frequencies.
func (a bm25) settle(ctx context.Context, open []*target) error {
	docFreqs := make([][]int64, len(open))
	err := recovery.InParallel(len(open), sideBySide, func(i int) (err error) {
		t := open[i]
		words := t.lead().Terms.Terms()
		docFreqs[i] = make([]int64, len(words))
		t.Stats, err = a.statistics(ctx, t, t.Name, words, docFreqs[i])
		return err
	})
	if err != nil {
		return err
	}
	share := a.s.profile.MaxDocShare
	for i, t := range open {
		if t.Stats.DocCount >= manyDocs {
			t.Terms.PerWord = min(t.Terms.PerWord, fewPerWord)
		}
		switch {
		case t.follows():
			continue
		case t.clause.Parsed.TermCentric(): // all its fields are open
			known := make([]terms.FieldCounts, len(t.clause.Fields))
			for k, f := range open[i : i+len(known)] {
				known[k] = terms.FieldCounts{Docs: f.Stats.DocCount, DocFreqs: docFreqs[i+k]}
			}
			t.Stats.DocCount = t.Terms.SettleFields(t.Weighting(), known, share)
		default:
			t.Terms.Settle(t.Weighting(), t.Stats.DocCount, docFreqs[i], share)
		}
	}
	return nil
}

// shareAdded divides the terms that may be added to the search among the
// targets, chooses the terms of each, and keeps as many as the recipe allows.
func shareAdded(targets []*target, total int, recipe *form.Recipe) {
	sizes, all := make([]int, len(targets)), 0
	for i, t := range targets {
		sizes[i] = len(t.Terms.Candidates)
		all += sizes[i]
	}
	quota, rest := terms.Share(sizes, total)
	for _, t := range targets {
		n := quota
		if len(t.Terms.Candidates) > quota && rest > 0 { // the first targets share the remainder
			n++
			rest--
		}
		if n == 0 && len(t.Terms.Candidates) > 0 {
			t.Reason = reason.TermLimit
		}
		t.Terms.Choose(n)
		t.Added = t.Terms.Candidates
		if t.Terms.PerWord == 0 { // else each word keeps its own
			t.Added = recipe.KeepFew(t.Added, min(all, total))
		}
	}
}
