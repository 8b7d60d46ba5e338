package evaluate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
)

func tuneOptions() TuneOptions {
	return TuneOptions{Settings: 120, Confidence: 0.95}
}

// noise returns a number in [0, 1) that depends on a setting and a query alone.
func noise(s *expand.Profile, q int) float64 {
	h := fnv.New64a()
	if s != nil {
		fmt.Fprintf(h, "%v", []any{uint8(s.Effort), s.Strength, s.MaxAddedTerms, s.MaxDocShare, uint8(s.Matching), s.Feedback, s.Mode, s.SoftWeight})
	}
	return rand.New(rand.NewPCG(h.Sum64(), uint64(q)+1)).Float64()
}

// scorer makes a score of each of n queries.
func scorer(n int, score func(s *expand.Profile, q int) float64) func(context.Context, *expand.Profile) ([]float64, error) {
	return func(_ context.Context, s *expand.Profile) ([]float64, error) {
		scores := make([]float64, n)
		for q := range scores {
			scores[q] = score(s, q)
		}
		return scores, nil
	}
}

func run(t *testing.T, n int, o TuneOptions, score func(s *expand.Profile, q int) float64) *TuneResult {
	t.Helper()
	return check.Got(Tune(t.Context(), n, NewSpace(), o, scorer(n, score)))(t)
}

// Settings that differ by chance only: the best of them looks good on the
// queries that it was chosen on, and on no others.
func TestChanceIsNotRecommended(t *testing.T) {
	o := tuneOptions()
	o.Settings = 300
	r := run(t, 100, o, noise)
	check.That(t, r.Advice == UseNothing && r.Recommended == nil, "advice %q: %+v", r.Advice, r.HeldOut)
	if r.Tuned.Gain < 0.1 || r.HeldOut.Gain > r.Tuned.Gain/2 {
		t.Errorf("gain %v on the queries it was chosen on, %v on others: no optimism to be seen", r.Tuned.Gain, r.HeldOut.Gain)
	}
}

// lowIsBetter is the measure of a query where effort low ranks best.
func lowIsBetter(s *expand.Profile, q int) float64 {
	score := 0.3 + 0.05*noise(s, q)
	if s != nil && s.Effort == form.Low {
		score += 0.05
	}
	return score
}

func TestAGainThatHoldsUpIsRecommended(t *testing.T) {
	r := run(t, 100, tuneOptions(), lowIsBetter)
	check.Must(t, r.Advice == UseTuned, "advice %q: %+v", r.Advice, r)
	s := r.Recommended
	check.That(t, s.Effort == form.Low, "recommended %s", r.Chosen)
	check.That(t, r.HeldOut.Low > 0 && r.HeldOut.P <= 0.05 && r.Tuned.P == 0, "held out %+v, tuned %+v", r.HeldOut, r.Tuned)
}

func TestWhatTheClusterDoesNotConfirmIsNotRecommended(t *testing.T) {
	direct, low := make([]float64, 100), expand.DefaultProfile()
	low.Effort = form.Low
	for name, with := range map[string]func(q int) float64{"as well": func(q int) float64 { return lowIsBetter(&low, q) }, "only in the part": func(q int) float64 { return 0.3 + 0.05*noise(&low, q) }} {
		r := run(t, 100, tuneOptions(), lowIsBetter)
		scores := make([]float64, 100)
		for q := range direct {
			direct[q], scores[q] = lowIsBetter(nil, q), with(q)
		}
		r.Confirm(direct, scores, Expansion{Expanded: 100}, 1, 2.5)
		confirmed := name == "as well"
		check.That(t, (r.Recommended != nil) == confirmed && (r.Advice == UseTuned) == confirmed, "%s: %+v", name, r.OnCluster)
		check.That(t, strings.Contains(r.Summary(), "takes the engine 2.5 ms,\ndirectly 1.0 ms"), "%s", r.Summary())
	}
}

func TestAConfirmationSaysWhatTheClusterGot(t *testing.T) {
	r := run(t, 100, tuneOptions(), lowIsBetter)
	check.Must(t, r.Advice == UseTuned, "advice %q", r.Advice)
	same, sent := make([]float64, 100), Expansion{}
	for range same {
		sent.Add(Answer{Unexpanded: "failed-open: rejected"})
	}
	r.Confirm(same, same, sent, 1, 1)
	var out strings.Builder
	check.OK(t, r.Print(&out))
	for _, want := range []string{
		"warning: the recommended setting: only 0 of 100 searches were expanded",
		"Recommended: Nothing: on the cluster, only 0 of 100 searches were expanded (100 failed-open: rejected).",
		"100 searches of the recommended setting went to the cluster as they came: 100 failed-open: rejected",
	} {
		check.That(t, strings.Contains(out.String(), want), "%q is not in %s", want, &out)
	}
	r = run(t, 100, tuneOptions(), lowIsBetter)
	r.NotConfirmed()
	check.That(t, r.Recommended == nil && strings.Contains(r.Summary(), "the cluster did not answer"), "%s", r.Summary())
}

func TestDefaultsAreRecommendedWhereNothingIsBetter(t *testing.T) {
	for defaults, want := range map[float64]Advice{0.4: UseDefaults, 0.2: UseNothing} {
		r := run(t, 100, tuneOptions(), func(s *expand.Profile, q int) float64 {
			if s == nil {
				return 0.3 + 0.05*noise(s, q)
			}
			return defaults + 0.05*noise(s, q)
		})
		check.Must(t, r.Advice == want, "%v: advice %q: %+v", defaults, r.Advice, r)
		if want == UseDefaults {
			check.Equal(t, expand.DefaultProfile(), *r.Recommended)
		}
	}
}

func TestTuningGivesTheSameResultAgain(t *testing.T) {
	first, again := run(t, 60, tuneOptions(), noise), run(t, 60, tuneOptions(), noise)
	check.Equal(t, first, again)
}

// What is chosen for a fold, and what it is chosen among, depends on no query in
// it: with other scores there, the choice is the same.
func TestHeldOutQueriesDoNotDecide(t *testing.T) {
	const n, fold = 60, 2
	of := make([]int, n) // as Tune cuts them
	for i, q := range rand.New(rand.NewPCG(tuneSeed, 3)).Perm(n) {
		of[q] = i % tuneFolds
	}
	first := run(t, n, tuneOptions(), noise)
	changed := run(t, n, tuneOptions(), func(s *expand.Profile, q int) float64 {
		if of[q] == fold {
			return 1 - noise(s, q)
		}
		return noise(s, q)
	})
	if first.Folds[fold].Chosen != changed.Folds[fold].Chosen || first.Folds[fold].HeldOut == changed.Folds[fold].HeldOut {
		t.Errorf("chosen %q, with other scores in the fold %q", first.Folds[fold].Chosen, changed.Folds[fold].Chosen)
	}
	if slices.EqualFunc(first.Folds, changed.Folds, func(a, b Fold) bool { return a.Chosen == b.Chosen }) {
		t.Error("no choice changed: the test shows nothing")
	}
}

func TestFoldsHaveAllQueriesAndSettingsAreBounded(t *testing.T) {
	calls := 0
	o := tuneOptions()
	r := check.Got(Tune(t.Context(), 47, NewSpace(), o, func(ctx context.Context, s *expand.Profile) ([]float64, error) {
		calls++
		return scorer(47, noise)(ctx, s)
	}))(t)
	total := 0
	for _, f := range r.Folds {
		total += f.Queries
		check.That(t, f.Queries >= 9 && f.Queries <= 10, "%d queries in a fold", f.Queries)
	}
	if total != 47 || r.Tried > o.Settings || r.Tried < o.Settings/2 || calls != r.Tried+1 {
		t.Errorf("%d queries, %d settings of %d, %d calls", total, r.Tried, o.Settings, calls)
	}
}

func TestWhatCannotBeTunedIsAnError(t *testing.T) {
	for name, tt := range map[string]struct {
		queries int
		change  func(o *TuneOptions)
		want    string
	}{
		"no queries":  {0, func(*TuneOptions) {}, "0 judged queries are too few for 5 folds: at least 20"},
		"too few":     {19, func(*TuneOptions) {}, "19 judged queries"},
		"no settings": {100, func(o *TuneOptions) { o.Settings = 0 }, "settings: 0"},
		"certainty":   {100, func(o *TuneOptions) { o.Confidence = 1 }, "confidence: 1 not in (0, 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := tuneOptions()
			tt.change(&o)
			check.Message(t, tt.want, check.ErrOf(Tune(t.Context(), tt.queries, NewSpace(), o, scorer(tt.queries, noise))))
		})
	}
	away := errors.New("the cluster is away")
	check.Error(t, away, check.ErrOf(Tune(t.Context(), 100, NewSpace(), tuneOptions(), func(context.Context, *expand.Profile) ([]float64, error) { return nil, away })))
}

func TestEveryProfileLoads(t *testing.T) {
	space, random := NewSpace(), rand.New(rand.NewPCG(1, 1))
	for range 300 {
		p := space.random(random)
		s := space.setting(p)
		var text bytes.Buffer
		matrix := configs.Matrix{Name: "tuned", Indices: []string{"logs-*", "-logs-old"}, Fields: []string{"title", "body"}, File: "/m.akin"}
		check.OK(t, WriteProfile(&text, &s, matrix, "first\nsecond: line"))
		c, err := configs.Parse("tuned.yml", text.Bytes())
		check.Must(t, err == nil, "%s: %v\n%s", space.describe(p), err, &text)
		want := configs.Profile{Enabled: true, Profile: s, Matrices: []string{"tuned"}}
		check.Equal(t, want, c.Profiles["tuned"], space.describe(p))
		check.Equal(t, []configs.Matrix{matrix}, c.Matrices)
	}
}

func TestAProfileOfTheDefaultsHasNoKeys(t *testing.T) {
	space := NewSpace()
	s := space.setting(space.usual())
	changed := changes(&s)
	check.That(t, len(changed) == 0 && space.describe(space.usual()) == "the defaults", "%v, %q", changed, space.describe(space.usual()))
}
