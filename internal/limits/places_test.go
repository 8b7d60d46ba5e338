package limits

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

func TestNoOwnerTakesMorePlacesThanItLeaves(t *testing.T) {
	p := NewPlaces(16)
	take := func(owners ...string) (n int) {
		for p.Take(owners...) {
			n++
		}
		return n
	}
	if a, b, c := take("a"), take("b", "index"), take("c", "index"); a != 8 || b != 4 || c != 0 {
		t.Errorf("three owners, of whom two share an index, get %d, %d and %d places, want 8, 4 and 0", a, b, c)
	}
	for range 8 {
		p.Give("a")
	}
	for range 4 {
		p.Give("b", "index")
	}
	if p.Taken() != 0 || len(p.of) != 0 {
		t.Errorf("left: %d places, %v", p.taken, p.of)
	}
	if n := take(); n != 16 {
		t.Errorf("nobody in particular gets %d places, want all", n)
	}
}

func TestPlacesAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(2)
		if !p.Take("a") {
			t.Fatal("no place")
		}
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				if err := p.Wait(t.Context(), "a"); err != nil {
					t.Error(err)
				}
				p.Give("a")
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		waiting.Go(func() {
			if err := p.Wait(ctx, "a"); !errors.Is(err, context.Canceled) {
				t.Errorf("the end of the context ends with %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		if n := p.Taken(); n != 1 {
			t.Errorf("%d places are taken, want 1", n)
		}
		p.Give("a")
		waiting.Wait()
		if n := p.Taken(); n != 0 {
			t.Errorf("%d places are taken at the end", n)
		}
	})
}
