package limits

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/akin-search/akin/e2e/check"
)

// most returns how much a client gets, in steps of 1.
func most(b *Budget, client string) (n int64) {
	h := b.Hold(SearchBody, client)
	for h.Take(1) {
		n++
	}
	return n
}

func TestNoClientTakesMoreThanItLeaves(t *testing.T) {
	for clients, want := range map[int]int64{1: 60, 2: 40, 3: 30, 5: 20} {
		t.Run(strconv.Itoa(clients), func(t *testing.T) {
			b := New(120)
			holds := make([]*Hold, clients)
			for i := range holds {
				holds[i] = b.Hold(Answer, fmt.Sprint("client ", i))
			}
			for range 120 { // they take turns
				for _, h := range holds {
					h.Take(1)
				}
			}
			for i, h := range holds {
				check.Equal(t, want, h.bytes, "client", i)
			}
			n := most(b, "another")
			check.That(t, n >= want/2, "another one gets %d", n)
		})
	}
}

func TestBytesAreGivenBack(t *testing.T) {
	b := New(100)
	h := b.Hold(SearchBody, "a")
	other := b.Hold(Answer, "a")
	check.Must(t, h.Take(20) && other.Take(30), "half of the budget is not to be had")
	check.That(t, !other.Take(1), "a client got more than half through two holds")
	other.Add(60) // in memory, allowed or not
	held := b.Stats(Answer)
	check.That(t, held == (Stats{Held: 90, Refused: 1}), "answers: %+v", held)
	other.Give(60)
	other.Release()
	h.Release()
	h.Release()
	for _, k := range Kinds() {
		check.Equal(t, 0, b.Stats(k).Held, k)
	}
	check.Equal(t, 0, len(b.clients), "clients are remembered", b.clients)
	check.Equal(t, 50, most(b, "a"), "then a client gets")
}

func TestMemoryIsTrimmedAfterPeaksOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(1600)
		var trims []time.Duration
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.trimWith(ctx, func() { trims = append(trims, time.Since(began)) })
		}()
		peak := func(n int64) {
			h := b.Hold(SearchBody, "a")
			h.Add(n)
			h.Release()
			synctest.Wait()
		}
		peak(400) // a quarter is none
		check.Elapse(time.Second)
		peak(401)
		check.Elapse(time.Second)
		peak(800)
		peak(800)
		check.Elapse(10 * time.Minute)
		peak(800)
		cancel()
		<-ended
		want := []time.Duration{time.Second, time.Second + trimPause, 10*time.Minute + 2*time.Second}
		check.Equal(t, fmt.Sprint(want), fmt.Sprint(trims), "trimmed at", trims, want)
	})
}

func TestResizedBudgetKeepsWhatIsHeld(t *testing.T) {
	b := New(100)
	h := b.Hold(SearchBody, "a")
	check.Must(t, h.Take(50), "half of the limit is refused")
	b.Resize(60)
	check.That(t, !h.Take(1) && b.Stats(SearchBody).Held == 50, "more is taken, or %d bytes are held", b.Stats(SearchBody).Held)
	b.Resize(200)
	check.That(t, h.Take(50), "half of the new limit is refused")
}
