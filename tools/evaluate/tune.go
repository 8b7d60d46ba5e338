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

// TuneOptions say how [Tune] looks for settings.
type TuneOptions struct {
	// Settings is how many are tried, the defaults included: half of them are
	// drawn at random, the others are next to the best that are known.
	Settings int
	// Confidence, in (0, 1), is that of the intervals, and what a recommendation
	// needs.
	Confidence float64
	// Progress is called after each setting; nil is not.
	Progress simmatrix.Progress
}

// tuneFolds is how many parts the queries are cut into, and leastPerFold how
// many each has at least: fewer say nothing. tuneSeed decides all that is
// random.
const tuneFolds, leastPerFold, tuneSeed = 5, 4, 1

// Validate reports every option that is out of range, and too few queries for
// the folds.
func (o *TuneOptions) Validate(queries int) error {
	var errs []error
	if least := leastPerFold * tuneFolds; queries < least {
		errs = append(errs, fmt.Errorf("%d judged queries are too few for %d folds: at least %d", queries, tuneFolds, least))
	}
	if o.Settings < 2 || o.Settings > 100_000 {
		errs = append(errs, fmt.Errorf("settings: %d not in [2, 100000]", o.Settings))
	}
	if !(o.Confidence > 0 && o.Confidence < 1) { // written so that NaN fails
		errs = append(errs, fmt.Errorf("confidence: %v not in (0, 1)", o.Confidence))
	}
	return errors.Join(errs...)
}

// Tune looks for the setting with the best mean of a measure over the queries.
// score returns the measure of each query under a setting, nil for
// direct search.
//
// The queries are cut into folds. For each fold a setting is chosen on all
// others, and measured on it; what is recommended is chosen on all queries in
// the same way. Neither the choice for a fold nor the settings that it is made
// among depend on the queries in it. The same options and scores give the same
// result.
func Tune(ctx context.Context, queries int, space Space, o TuneOptions, score func(ctx context.Context, s *expand.Profile) ([]float64, error)) (*TuneResult, error) {
	if err := o.Validate(queries); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(tuneSeed, 3)) //nolint:gosec // The same each time is what is wanted.
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
	for f := range best { // the last is all queries
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
	fold    []int // of each query
	direct  []float64
	tried   []trial
	known   map[string]trial // by point
}

type trial struct {
	number int // in the order of trying
	point  point
	scores []float64 // by query
}

// try scores a point, unless it was tried before.
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

// refine returns the best setting on the queries that are not in the fold,
// among the given ones and those that lie step by step next to the best, of
// which it looks at so many. They count whether or not another fold has tried
// them, or what is looked at would depend on the queries in this one.
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

// compare orders two settings by their means over the queries that are not in
// the fold. Of equal ones the one that was tried first is better.
func (s *study) compare(a, b trial, fold int) int {
	in := func(q int) bool { return s.fold[q] != fold }
	return cmp.Or(cmp.Compare(mean(a.scores, in), mean(b.scores, in)), cmp.Compare(b.number, a.number))
}

// mean returns the mean of the values whose query is in, 0 without any.
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

// result says what the choices are worth: best has that for each fold and, at
// the end, that for all queries.
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
	r.Tuned = s.gain(chosen.scores, s.direct)
	r.Defaults, r.HeldOut, r.HeldOutOverDefaults = s.gain(usual, s.direct), s.gain(heldOut, s.direct), s.gain(heldOut, usual)
	three := []*TuneGain{&r.Defaults, &r.HeldOut, &r.HeldOutOverDefaults}
	corrected := Holm([]float64{three[0].P, three[1].P, three[2].P})
	for k, g := range three {
		g.P = corrected[k]
	}
	r.Tuned.P = 0 // it was chosen for its mean: no test says anything of it
	r.Advice = r.advise()
	if points := map[Advice]point{UseTuned: chosen.point, UseDefaults: s.space.usual()}; points[r.Advice] != nil {
		setting := s.space.setting(points[r.Advice])
		r.Recommended = &setting
	}
	return r
}

func (s *study) gain(scores, others []float64) TuneGain {
	differences := make([]float64, len(scores))
	for q := range scores {
		differences[q] = scores[q] - others[q]
	}
	low, high := Bootstrap(differences, s.options.Confidence)
	base := mean(others, all)
	return TuneGain{
		Mean: mean(scores, all), Gain: shareOf(mean(scores, all), base), Low: shareOf(base+low, base), High: shareOf(base+high, base),
		P: Randomization(differences),
	}
}

// share is how much more a is than b, as a share of b; 0 where b is 0.
func shareOf(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a/b - 1
}
