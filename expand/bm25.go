package expand

import (
	"context"
	"slices"

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

// choose selects the terms to add to the targets, first by their rows, then by
// the live statistics of the best ones.
func (a bm25) choose(ctx context.Context, targets []*target) (chosen, error) {
	feedback := len(a.first) > 0
	if !feedback { // else it has asked for them before
		if err := a.nearWords(ctx, leading(targets)); err != nil {
			return chosen{}, err
		}
	}
	clauses, open := a.begin(targets)
	if feedback {
		for _, t := range open {
			if t.clause.Readings {
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
		rows := t.of.rows
		same := slices.IndexFunc(leads[:k], func(o choice) bool { // another field for the same text
			return !feedback && o.of.rows == rows && o.Weighting() == t.Weighting() && o.Terms.Alike(t.Terms)
		})
		if same >= 0 {
			t.Terms.Copy(leads[same].Terms)
		} else {
			t.Terms.Propose(t.Weighting(), rows.Docs(), rows.Power(), a.s.profile.MaxDocShare, a.s.profile.MaxAddedTerms*candidatesPerTerm)
		}
		if t.clause.Readings {
			t.Terms.Candidates = t.Terms.Candidates[:0]
		}
		if t.nothing() && !feedback && a.s.profile.Mode != ModeSoft { // ModeSoft needs the live frequencies of the text's own terms for its sum
			t.leave()
		}
	}
	open = stillOpen(open)
	if err := a.settle(ctx, open); err != nil {
		return chosen{}, failed(StageStatistics, err)
	}
	if feedback {
		if err := each(open, func(t choice) (err error) {
			t.Feedback, err = a.settleFeedback(ctx, t, len(open))
			return err
		}); err != nil {
			return chosen{}, failed(StageStatistics, err)
		}
	}
	for _, t := range open {
		if t.clause.Phrase {
			t.Terms.Alternatives = t.readings()
		}
		t.Alternatives = t.Terms.Alternatives
		if !t.follows() && t.nothing() && len(t.Feedback) == 0 {
			t.leave()
		}
	}
	open = leading(stillOpen(open))
	if a.s.nested { // each segment has as many terms as the whole text
		segments := slices.DeleteFunc(slices.Clone(open), func(t choice) bool { return !t.clause.Segments })
		open = slices.DeleteFunc(open, func(t choice) bool { return t.clause.Segments })
		shareAdded(segments, a.s.profile.MaxAddedTerms, a.recipe)
	}
	shareAdded(open, a.s.profile.MaxAddedTerms, a.recipe)
	return chosen{clauses: clauses}, nil
}

// nothing reports whether there is nothing to add.
func (c choice) nothing() bool { return len(c.Terms.Candidates)+len(c.Terms.Alternatives) == 0 }

// readings returns those of a phrase.
func (c choice) readings() []terms.Alternative {
	if c.clause.Fixed || c.Analysis.Graph || !c.OneTermPerWord() {
		return nil
	}
	return c.Terms.Readings(c.Analysis.Terms, c.Analysis.Positions)
}

// leave sets the reason why no neighbor is added.
func (c choice) leave() {
	why := reason.NoNeighbors
	if c.clause.Readings {
		why = c.clause.Unrelated()
	} else if left := c.Terms.LeftOut; len(left) > 0 && slices.ContainsFunc(left, func(l terms.LeftOut) bool { return l.Why == terms.Frequent }) {
		why = reason.NeighborsTooFrequent
	}
	c.clause.LeaveField(c.Field, why)
}

// settle computes the final values of the terms to add from their live document
// frequencies.
func (a bm25) settle(ctx context.Context, open []choice) error {
	err := recovery.InParallel(len(open), sideBySide, func(i int) (err error) {
		t := &open[i]
		words := t.lead().Terms.Terms()
		t.docFreqs = make([]int64, len(words))
		t.Stats, err = a.cluster.Statistics(ctx, a.s.indices, t.Name, words, t.docFreqs)
		return err
	})
	if err != nil {
		return err
	}
	share := a.s.profile.MaxDocShare
	for i, t := range open {
		switch {
		case t.follows():
			continue
		case t.clause.TermCentric: // all its fields are open
			known := make([]terms.FieldCounts, len(t.clause.Fields))
			for k, f := range open[i : i+len(known)] {
				known[k] = terms.FieldCounts{Docs: f.Stats.DocCount, DocFreqs: f.docFreqs}
			}
			t.Stats.DocCount = t.Terms.SettleFields(t.Weighting(), known, share)
		default:
			t.Terms.Settle(t.Weighting(), t.Stats.DocCount, t.docFreqs, share)
		}
	}
	return nil
}

// shareAdded divides the terms that may be added to the search among the
// targets, chooses the terms of each, and keeps as many as the recipe allows.
func shareAdded(targets []choice, total int, recipe *form.Recipe) {
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
		t.Added = recipe.KeepFew(t.Terms.Candidates, min(all, total))
	}
}
