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

	"github.com/google/go-cmp/cmp"

	"github.com/akin-search/akin/configs"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/expand/form"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/combine"
)

func tuneOptions() TuneOptions {
	return TuneOptions{Settings: 120, Folds: 5, Seed: 1, Confidence: 0.95}
}

// noise returns a number in [0, 1) that depends on a setting and a query alone.
func noise(s *Setting, q int) float64 {
	h := fnv.New64a()
	if s != nil {
		p := &s.Profile
		fmt.Fprintf(h, "%v", []any{p.Scoring, p.Strength, p.MaxAddedTerms, p.MaxDocShare, p.SameMatches, p.NoRescore, p.Feedback, p.Mode, p.SoftWeight, s.Shape})
	}
	return rand.New(rand.NewPCG(h.Sum64(), uint64(q))).Float64()
}

// scorer makes a score of each of n queries.
func scorer(n int, score func(s *Setting, q int) float64) func(context.Context, *Setting) ([]float64, error) {
	return func(_ context.Context, s *Setting) ([]float64, error) {
		scores := make([]float64, n)
		for q := range scores {
			scores[q] = score(s, q)
		}
		return scores, nil
	}
}

func run(t *testing.T, n int, o TuneOptions, score func(s *Setting, q int) float64) *TuneResult {
	t.Helper()
	r, err := Tune(t.Context(), n, NewSpace(1), o, scorer(n, score))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Settings that differ by chance only: the best of them looks good on the
// queries that it was chosen on, and on no others.
func TestChanceIsNotRecommended(t *testing.T) {
	o := tuneOptions()
	o.Settings = 300
	r := run(t, 100, o, noise)
	if r.Advice != UseNothing || r.Recommended != nil {
		t.Errorf("advice %q: %+v", r.Advice, r.HeldOut)
	}
	if r.Tuned.Gain < 0.1 || r.HeldOut.Gain > r.Tuned.Gain/2 {
		t.Errorf("gain %v on the queries it was chosen on, %v on others: no optimism to be seen", r.Tuned.Gain, r.HeldOut.Gain)
	}
}

func TestAGainThatHoldsUpIsRecommended(t *testing.T) {
	r := run(t, 100, tuneOptions(), func(s *Setting, q int) float64 {
		score := 0.3 + 0.05*noise(s, q)
		if s != nil && s.Profile.Scoring == form.Grouped {
			score += 0.05
		}
		return score
	})
	if r.Advice != UseTuned {
		t.Fatalf("advice %q: %+v", r.Advice, r)
	}
	if s := r.Recommended.Profile; s.Scoring != form.Grouped {
		t.Errorf("recommended %s", r.Chosen)
	}
	if r.HeldOut.Low <= 0 || r.HeldOut.P > 0.05 || r.Tuned.P != 0 {
		t.Errorf("held out %+v, tuned %+v", r.HeldOut, r.Tuned)
	}
}

func TestDefaultsAreRecommendedWhereNothingIsBetter(t *testing.T) {
	r := run(t, 100, tuneOptions(), func(s *Setting, q int) float64 {
		if s == nil {
			return 0.3 + 0.05*noise(s, q)
		}
		return 0.4 + 0.05*noise(s, q)
	})
	if r.Advice != UseDefaults {
		t.Fatalf("advice %q: %+v", r.Advice, r)
	}
	if diff := cmp.Diff(expand.DefaultProfile(), r.Recommended.Profile); diff != "" {
		t.Error(diff)
	}
}

func TestWorseThanDirectSearchIsNeverRecommended(t *testing.T) {
	r := run(t, 100, tuneOptions(), func(s *Setting, q int) float64 {
		if s == nil {
			return 0.9
		}
		return 0.5 * noise(s, q)
	})
	if r.Advice != UseNothing {
		t.Errorf("advice %q", r.Advice)
	}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	first, again := run(t, 60, tuneOptions(), noise), run(t, 60, tuneOptions(), noise)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	o := tuneOptions()
	o.Seed = 2
	if other := run(t, 60, o, noise); other.Chosen == first.Chosen && other.HeldOut == first.HeldOut {
		t.Error("another seed tries the same settings")
	}
}

// What is chosen for a fold, and what it is chosen among, depends on no query in
// it: with other scores there, the choice is the same.
func TestHeldOutQueriesDoNotDecide(t *testing.T) {
	const n, fold = 60, 2
	of := func(o TuneOptions) *study { // as Run cuts them
		s := &study{}
		s.fold = make([]int, n)
		for i, q := range rand.New(rand.NewPCG(o.Seed, 3)).Perm(n) {
			s.fold[q] = i % o.Folds
		}
		return s
	}(tuneOptions())
	first := run(t, n, tuneOptions(), noise)
	changed := run(t, n, tuneOptions(), func(s *Setting, q int) float64 {
		if of.fold[q] == fold {
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
	r, err := Tune(t.Context(), 47, NewSpace(2), o, func(ctx context.Context, s *Setting) ([]float64, error) {
		calls++
		return scorer(47, noise)(ctx, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, f := range r.Folds {
		total += f.Queries
		if f.Queries < 9 || f.Queries > 10 {
			t.Errorf("%d queries in a fold", f.Queries)
		}
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
		"one fold":    {100, func(o *TuneOptions) { o.Folds = 1 }, "folds: 1 not in [2, 100]"},
		"no settings": {100, func(o *TuneOptions) { o.Settings = 0 }, "settings: 0"},
		"certainty":   {100, func(o *TuneOptions) { o.Confidence = 1 }, "confidence: 1 not in (0, 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			o := tuneOptions()
			tt.change(&o)
			if _, err := Tune(t.Context(), tt.queries, NewSpace(1), o, scorer(tt.queries, noise)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	away := errors.New("the cluster is away")
	if _, err := Tune(t.Context(), 100, NewSpace(1), tuneOptions(), func(context.Context, *Setting) ([]float64, error) { return nil, away }); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
}

// Every setting that may be recommended loads as the profile that it is.
func TestEveryProfileLoads(t *testing.T) {
	space, random := NewSpace(3), rand.New(rand.NewPCG(1, 1))
	for range 300 {
		p := space.random(random)
		s := space.setting(p)
		var text bytes.Buffer
		matrix := configs.Matrix{Name: "tuned", Indices: []string{"logs-*", "-logs-old"}, Fields: []string{"title", "body"}, File: "/m.akin"}
		if err := WriteProfile(&text, &s, matrix, "first\nsecond: line"); err != nil {
			t.Fatal(err)
		}
		c, err := configs.Parse("tuned.yml", text.Bytes())
		if err != nil {
			t.Fatalf("%s: %v\n%s", space.describe(p), err, &text)
		}
		want := configs.Profile{Enabled: true, Profile: s.Profile, Matrices: []string{"tuned"}}
		if diff := cmp.Diff(want, c.Profiles["tuned"]); diff != "" {
			t.Errorf("%s: %s", space.describe(p), diff)
		}
		if diff := cmp.Diff([]configs.Matrix{matrix}, c.Matrices); diff != "" {
			t.Error(diff)
		}
		if w := s.Shape.Weights; len(w) != 3 || slices.Max(w) == 0 {
			t.Errorf("weights %v", w)
		}
	}
}

func TestAProfileOfTheDefaultsHasNoKeys(t *testing.T) {
	space := NewSpace(1)
	s := space.setting(space.usual())
	changed := changes(&s.Profile)
	if len(changed) > 0 || space.describe(space.usual()) != "the defaults" {
		t.Errorf("%v, %q", changed, space.describe(space.usual()))
	}
	first := matrix(t, .8)
	if m, err := s.Shape.Apply(t.Context(), []combine.Input{{Matrix: first}}); m != first {
		t.Errorf("the matrix is another one, %v", err)
	}
}

func matrix(t *testing.T, similarity float32) *simmatrix.Matrix {
	t.Helper()
	m, err := simmatrix.New(simmatrix.Meta{Docs: 9}, []simmatrix.TermRow{
		{Term: "car", DocFreq: 3, Neighbors: []simmatrix.Neighbor{{Term: "lorry", Similarity: similarity}, {Term: "bus", Similarity: .1}}},
		{Term: "lorry", DocFreq: 2},
		{Term: "bus", DocFreq: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestShapesAreAppliedInOrder(t *testing.T) {
	inputs := []combine.Input{{Name: "a", Matrix: matrix(t, .8)}, {Name: "b", Matrix: matrix(t, .4)}}
	for name, tt := range map[string]struct {
		shape Shape
		want  map[string]float64
	}{
		"the first as it is":    {Shape{Exponent: 1}, map[string]float64{"lorry": .8, "bus": .1}},
		"raised, then cut":      {Shape{Exponent: 2, Threshold: .05}, map[string]float64{"lorry": .64}},
		"the nearest":           {Shape{Exponent: 1, Neighbors: 1}, map[string]float64{"lorry": .8}},
		"weighted":              {Shape{Exponent: 1, Weights: []float64{1, 3}}, map[string]float64{"lorry": .5, "bus": .1}},
		"one that counts":       {Shape{Exponent: 1, Weights: []float64{0, 2}}, map[string]float64{"lorry": .4, "bus": .1}},
		"weighted, then raised": {Shape{Exponent: .5, Weights: []float64{1, 3}}, map[string]float64{"lorry": .70711, "bus": .31623}},
	} {
		m, err := tt.shape.Apply(t.Context(), inputs)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for n := range m.Row("car").All() {
			got[n.Term] = float64(n.Similarity)
		}
		for term, want := range tt.want {
			if d := got[term] - want; d > 1e-4 || d < -1e-4 || len(got) != len(tt.want) {
				t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
		}
	}
}
