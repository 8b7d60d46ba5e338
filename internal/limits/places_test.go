package limits

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/akin-search/akin/e2e/check"
)

func TestNoOwnerTakesMorePlacesThanItLeaves(t *testing.T) {
	p := NewPlaces(16)
	take := func(owners ...string) (n int) {
		for p.Take(owners...) {
			n++
		}
		return n
	}
	a, b, c := take("a"), take("b", "index"), take("c", "index")
	check.That(t, a == 8 && b == 4 && c == 0, "three owners, of whom two share an index, get %d, %d and %d places, want 8, 4 and 0", a, b, c)
	for range 8 {
		p.Give("a")
	}
	for range 4 {
		p.Give("b", "index")
	}
	check.That(t, p.Taken() == 0 && len(p.of) == 0, "left: %d places, %v", p.taken, p.of)
	check.Equal(t, 16, take(), "nobody in particular gets")
}

func TestPlacesAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(2)
		check.Must(t, p.Take("a"), "no place")
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				check.Error(t, nil, p.Wait(t.Context(), "a"))
				p.Give("a")
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		waiting.Go(func() {
			check.Error(t, context.Canceled, p.Wait(ctx, "a"), "the end of the context ends with")
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		check.Equal(t, 1, p.Taken())
		p.Give("a")
		waiting.Wait()
		check.Equal(t, 0, p.Taken())
	})
}
