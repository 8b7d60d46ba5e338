package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/simmatrix"
)

// TuneOptions configure [Tune].
type TuneOptions struct {
	// Settings is how many settings to try, including the defaults. Half of them
	// are random, the others are neighbors of the best known ones.
	Settings int
	// Confidence, in (0, 1), is the confidence of the intervals and for a
	// recommendation.
	Confidence float64
	// Progress is called after each setting; it may be nil.
	Progress simmatrix.Progress
}

const (
	tuneFolds    = 5 // of the queries
	leastPerFold = 4 // is the smallest useful number of queries in a fold
	tuneSeed     = 1 // of all random choices
)

// Validate reports every option out of range, and too few queries for the
// folds.
func (o *TuneOptions) Validate(queries int) error {
	var errs []error
	if least := leastPerFold * tuneFolds; queries < least {
		errs = append(errs, fmt.Errorf("%d judged queries are too few for %d folds: at least %d", queries, tuneFolds, least))
	}
	if o.Settings < 2 || o.Settings > 100_000 {
		errs = append(errs, fmt.Errorf("settings: %d not in [2, 100000]", o.Settings))
	}
	if !(o.Confidence > 0 && o.Confidence < 1) { // true for NaN
		errs = append(errs, fmt.Errorf("confidence: %v not in (0, 1)", o.Confidence))
	}
	return errors.Join(errs...)
}

// Tune searches for the setting with the best mean of a measure over the
// queries. score returns the measure of each query under a setting, or of
// direct search if s is nil.
//
// It splits the queries into folds. For each fold it chooses a setting on all
// other folds, and measures it on the fold. It chooses the recommended setting
// on all queries in the same way. Neither the choice for a fold nor the
// settings to choose from depend on the fold's queries. The same options and
// scores give the same result.
func Tune(ctx context.Context, queries int, space Space, o TuneOptions, score func(ctx context.Context, s *expand.Profile) ([]float64, error)) (*TuneResult, error) {
	if err := o.Validate(queries); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(tuneSeed, 3)) //nolint:gosec // must be the same every time
	s := &study{space: space, options: o, score: score, fold: make([]int, queries), known: map[string]trial{}}
	for i, q := range random.Perm(queries) {
		s.fold[q] = i % tuneFolds
	}
	var err error
	if s.direct, err = score(ctx, nil); err != nil {
		return nil, err
	}
	if _, err := s.try(ctx, space.usual()); err != nil {
		return nil, err
	}
	for len(s.tried) < o.Settings/2 {
		if _, err := s.try(ctx, space.random(random)); err != nil {
			return nil, err
		}
	}
	common := slices.Clone(s.tried)
	best := make([]trial, tuneFolds+1)
	for f := range best { // the last one is for all queries
		if best[f], err = s.refine(ctx, f, common, (o.Settings-len(common))/len(best)); err != nil {
			return nil, err
		}
	}
	return s.result(best), nil
}

type study struct {
	space   Space
	options TuneOptions
	score   func(ctx context.Context, s *expand.Profile) ([]float64, error)
	fold    []int // the fold of each query
	direct  []float64
	tried   []trial
	known   map[string]trial // by point
}

type trial struct {
	number int // the order of trying
	point  point
	scores []float64 // by query
}

// try scores a point, unless it is known.
func (s *study) try(ctx context.Context, p point) (trial, error) {
	if t, ok := s.known[p.key()]; ok {
		return t, nil
	}
	setting := s.space.setting(p)
	scores, err := s.score(ctx, &setting)
	if err != nil {
		return trial{}, err
	}
	t := trial{len(s.tried), p, scores}
	s.known[p.key()], s.tried = t, append(s.tried, t)
	s.options.Progress.Report("trying settings", len(s.tried), s.options.Settings)
	return t, nil
}

// refine returns the best setting on the queries outside the fold, among the
// given settings and neighbors of the best one, in up to steps trials. A
// setting counts as a trial even if another fold has tried it: otherwise the
// search would depend on the queries of this fold.
func (s *study) refine(ctx context.Context, fold int, among []trial, steps int) (trial, error) {
	best := slices.MaxFunc(among, func(a, b trial) int { return s.compare(a, b, fold) })
	random := rand.New(rand.NewPCG(tuneSeed, uint64(fold)+10)) //nolint:gosec // as above
	seen := map[string]bool{}
	for _, t := range among {
		seen[t.point.key()] = true
	}
	for improved := true; improved; {
		improved = false
		for _, p := range s.space.around(best.point, random) {
			if seen[p.key()] || steps == 0 {
				continue
			}
			steps, seen[p.key()] = steps-1, true
			t, err := s.try(ctx, p)
			if err != nil {
				return trial{}, err
			}
			if s.compare(t, best, fold) > 0 {
				best, improved = t, true
				break
			}
		}
	}
	return best, nil
}

// compare compares two settings by their means over the queries outside the
// fold. Of equal ones the first tried is better.
func (s *study) compare(a, b trial, fold int) int {
	in := func(q int) bool { return s.fold[q] != fold }
	return cmp.Or(cmp.Compare(mean(a.scores, in), mean(b.scores, in)), cmp.Compare(b.number, a.number))
}

// mean returns the mean of the values whose query is in, or 0 if there are
// none.
func mean(values []float64, in func(q int) bool) float64 {
	sum, n := 0.0, 0.0
	for q, v := range values {
		if in(q) {
			sum, n = sum+v, n+1
		}
	}
	return sum / max(n, 1)
}

func all(int) bool { return true }

// result computes the gains of the choices. best has the choice for each fold
// and, at the end, for all queries.
func (s *study) result(best []trial) *TuneResult {
	chosen := best[len(best)-1]
	r := &TuneResult{
		Queries: len(s.direct), Folds: make([]Fold, tuneFolds), Tried: len(s.tried), Confidence: s.options.Confidence,
		Direct: mean(s.direct, all), Chosen: s.space.describe(chosen.point),
	}
	usual, heldOut := s.tried[0].scores, make([]float64, len(s.direct))
	for f := range r.Folds {
		t := best[f]
		in, out := func(q int) bool { return s.fold[q] == f }, func(q int) bool { return s.fold[q] != f }
		r.Folds[f] = Fold{
			Chosen: s.space.describe(t.point),
			Tuned:  shareOf(mean(t.scores, out), mean(s.direct, out)), HeldOut: shareOf(mean(t.scores, in), mean(s.direct, in)),
		}
		for q := range heldOut {
			if in(q) {
				r.Folds[f].Queries++
				heldOut[q] = t.scores[q]
			}
		}
	}
	r.Tuned = gainOver(chosen.scores, s.direct, r.Confidence)
	r.Defaults = gainOver(usual, s.direct, r.Confidence)
	r.HeldOut = gainOver(heldOut, s.direct, r.Confidence)
	r.HeldOutOverDefaults = gainOver(heldOut, usual, r.Confidence)
	three := []*TuneGain{&r.Defaults, &r.HeldOut, &r.HeldOutOverDefaults}
	corrected := Holm([]float64{three[0].P, three[1].P, three[2].P})
	for k, g := range three {
		g.P = corrected[k]
	}
	r.Tuned.P = 0 // it was chosen for its mean, so a test means nothing
	r.Advice = r.advise()
	r.Setting = s.space.setting(chosen.point)
	if points := map[Advice]point{UseTuned: chosen.point, UseDefaults: s.space.usual()}; points[r.Advice] != nil {
		setting := s.space.setting(points[r.Advice])
		r.Recommended = &setting
	}
	return r
}

// gainOver compares the measures of queries with others of the same queries.
func gainOver(scores, others []float64, confidence float64) TuneGain {
	differences := make([]float64, len(scores))
	for q := range scores {
		differences[q] = scores[q] - others[q]
	}
	low, high := Bootstrap(differences, confidence)
	base := mean(others, all)
	return TuneGain{
		Mean: mean(scores, all), Gain: shareOf(mean(scores, all), base), Low: shareOf(base+low, base), High: shareOf(base+high, base),
		P: Randomization(differences),
	}
}

// shareOf returns a/b − 1, or 0 if b is 0.
func shareOf(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a/b - 1
}
