package nodes

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/akin-search/akin/e2e/check"
)

func TestRetryBudgetAllowsAShareOfTheRequests(t *testing.T) {
	b := newRetryBudget(retryShare)
	allowed := 0
	for range 10_000 {
		b.note()
		if b.allow(0) {
			allowed++
		}
	}
	check.Equal(t, 10+1000, allowed)
}

func TestRetryBudgetSavesUpNoMoreThanItsLimit(t *testing.T) {
	b := newRetryBudget(retryShare)
	for range 100_000 {
		b.note()
	}
	allowed := 0
	for b.allow(0) {
		allowed++
	}
	check.Equal(t, 50, allowed)
}

func TestRetryBudgetIsExactUnderConcurrency(t *testing.T) {
	b := newRetryBudget(0)
	var allowed atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				b.note()
				if b.allow(0) {
					allowed.Add(1)
				}
			}
		})
	}
	all.Wait()
	check.Equal(t, 10, allowed.Load())
}

// What is there at the start is for requests that were not answered.
func TestRetryBudgetOfAnOverloadIsTheShareFromTheStart(t *testing.T) {
	b := newRetryBudget(retryShare)
	allowed := 0
	for range 60 {
		b.note()
		if b.allow(spare) {
			allowed++
		}
	}
	check.Equal(t, 7, allowed)
	for range 9 {
		check.That(t, b.allow(0), "nothing is left for requests that were not answered")
	}
}
