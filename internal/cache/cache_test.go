package cache_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/internal/cache"
)

func newCache(t *testing.T, places int, o cache.Options[int]) *cache.Cache[int] {
	t.Helper()
	o.Bytes, o.Loader = 1<<20, cache.NewLoader(cache.Policy{Places: places, Timeout: time.Minute})
	c := cache.New(o)
	t.Cleanup(func() {
		o.Loader.Close()
		c.Close()
	})
	return c
}

func TestALoadWithinALoadTakesNoPlace(t *testing.T) {
	c := newCache(t, 1, cache.Options[int]{})
	inner := func(context.Context) (string, error) { return "inner", nil }
	got, err := cache.Get(t.Context(), c, 1, time.Minute, func(ctx context.Context) (string, error) {
		if _, err := cache.Get(t.Context(), c, 2, time.Minute, inner); !errors.Is(err, cache.ErrBusy) { //nolint:contextcheck // Another caller has another context.
			t.Errorf("another caller gets %v with all places taken, want ErrBusy", err)
		}
		return cache.Get(ctx, c, 3, time.Minute, inner)
	})
	if got != "inner" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnswersAreRememberedForAsLongAsTheyAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, 1, cache.Options[int]{})
		loads, failure := 0, errors.New("no")
		ask := func(ttl time.Duration) {
			_, err := cache.Get(t.Context(), c, 1, ttl, func(context.Context) (int, error) {
				loads++
				return 0, failure
			})
			if !errors.Is(err, failure) {
				t.Errorf("got %v", err)
			}
		}
		for _, want := range []int{1, 2} { // nothing is remembered
			if ask(0); loads != want {
				t.Errorf("%d loads, want %d", loads, want)
			}
		}
		ask(time.Minute)
		time.Sleep(59 * time.Second)
		if ask(time.Minute); loads != 3 {
			t.Errorf("%d loads within the time, want 3", loads)
		}
		time.Sleep(2 * time.Second)
		if ask(time.Minute); loads != 4 {
			t.Errorf("%d loads after the time, want 4", loads)
		}
		if s := c.Stats(); s.Loads != 4 || s.Failures != 4 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestQuestionsTogetherLoadWhatIsMissing(t *testing.T) {
	c := newCache(t, 1, cache.Options[int]{Endless: true})
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
