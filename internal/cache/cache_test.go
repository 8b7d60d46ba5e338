package cache_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
	"github.com/akin-search/akin/internal/cache"
)

func newCache(t *testing.T, o cache.Options[int]) *cache.Cache[int] {
	t.Helper()
	o.Bytes, o.Loader = 1<<20, cache.NewLoader(cache.Policy{Places: 1, Timeout: time.Minute})
	c := cache.New(o)
	t.Cleanup(func() {
		o.Loader.Close()
		c.Close()
	})
	return c
}

func TestALoadWithinALoadTakesNoPlace(t *testing.T) {
	c := newCache(t, cache.Options[int]{})
	inner := func(context.Context) (string, error) { return "inner", nil }
	got, err := cache.Get(t.Context(), c, 1, time.Minute, func(ctx context.Context) (string, error) {
		if _, err := cache.Get(t.Context(), c, 2, time.Minute, inner); !errors.Is(err, cache.ErrBusy) { //nolint:contextcheck // Another caller has another context.
			t.Errorf("another caller gets %v with all places taken, want ErrBusy", err)
		}
		return cache.Get(ctx, c, 3, time.Minute, inner)
	})
	check.That(t, got == "inner" && err == nil, "got %q, %v", got, err)
}

func TestAnswersAreRememberedForAsLongAsTheyAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, cache.Options[int]{})
		loads, failure := 0, errors.New("no")
		ask := func(ttl time.Duration) {
			_, err := cache.Get(t.Context(), c, 1, ttl, func(context.Context) (int, error) {
				loads++
				return 0, failure
			})
			check.Error(t, failure, err)
		}
		for _, want := range []int{1, 2} { // nothing is remembered
			ask(0)
			check.Equal(t, want, loads)
		}
		ask(time.Minute)
		check.Elapse(59 * time.Second)
		ask(time.Minute)
		check.Equal(t, 3, loads)
		check.Elapse(2 * time.Second)
		ask(time.Minute)
		check.Equal(t, 4, loads)
		s := c.Stats()
		check.That(t, s.Loads == 4 && s.Failures == 4, "stats %+v", s)
	})
}

func TestQuestionsTogetherLoadWhatIsMissing(t *testing.T) {
	c := newCache(t, cache.Options[int]{Endless: true})
	c.Put(1, "one", nil, 0)
	for _, want := range [][]int{{2, 3}, {3}} { // there is nothing for 3
		var asked []int
		got, err := cache.GetAll(t.Context(), c, []int{1, 2, 3}, func(_ context.Context, missing []int) (map[int]string, error) {
			asked = slices.Sorted(slices.Values(missing))
			return map[int]string{2: "two"}, nil
		})
		if err != nil || !slices.Equal(asked, want) || !maps.Equal(got, map[int]string{1: "one", 2: "two"}) {
			t.Errorf("asked for %v, want %v; got %v, %v", asked, want, got, err)
		}
	}
}

func TestLoadsOfSeveralQuestionsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, cache.Options[int]{Endless: true})
		failed := errors.New("failed")
		load := func(answers map[int]string, err error) func(context.Context, []int) (map[int]string, error) {
			return func(context.Context, []int) (map[int]string, error) {
				time.Sleep(time.Second) // A call to the cluster takes time.
				return answers, err
			}
		}
		go cache.GetAll(t.Context(), c, []int{1, 2, 2}, load(map[int]string{1: "one"}, nil)) // there is nothing for 2
		go cache.GetAll(t.Context(), c, []int{4}, load(nil, failed))
		synctest.Wait()
		got, err := cache.GetAll(t.Context(), c, []int{1, 2, 3}, func(_ context.Context, missing []int) (map[int]string, error) {
			check.Equal(t, []int{3}, missing, "asked for")
			return map[int]string{3: "three"}, nil
		})
		check.That(t, err == nil && maps.Equal(got, map[int]string{1: "one", 3: "three"}), "got %v, %v", got, err)
		check.Elapse(time.Second)
		if _, err := cache.Get(t.Context(), c, 4, 0, func(context.Context) (string, error) { return "", nil }); err != nil {
			t.Errorf("a failure is remembered: %v", err)
		}
		go cache.GetAll(t.Context(), c, []int{5}, load(nil, failed))
		synctest.Wait()
		if _, err := cache.Get(t.Context(), c, 5, 0, func(context.Context) (string, error) { return "", nil }); !errors.Is(err, failed) {
			t.Errorf("whoever waits for the load of another gets %v, want its error", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go cache.GetAll(t.Context(), c, []int{6}, load(nil, nil))
		synctest.Wait()
		check.Error(t, context.DeadlineExceeded, check.ErrOf(cache.GetAll(ctx, c, []int{6}, load(nil, nil))))
		check.Elapse(time.Minute) // until all calls have ended
	})
}
