package proxy

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	// coldBudget is the time of a search that finds cold caches, coldFor how
	// long they count as cold.
	coldBudget, coldFor = time.Second, time.Minute
	// mostCold limits the searches that have more time at once, so that a slow
	// cluster does not pile them up.
	mostCold = 64
	// mostFirst limits the indices that are remembered as searched before.
	mostFirst = 1000
)

// A ColdStart gives searches more time while caches are cold: for a minute
// after it begins, and after the first search of an index. It may be used
// concurrently.
type ColdStart struct {
	seed maphash.Seed

	mu    sync.Mutex
	until time.Time            // for any search
	first map[uint64]time.Time // for searches of an index expression, by its hash
	taken int                  // searches that have more time now
}

// NewColdStart returns a ColdStart that begins now.
func NewColdStart() *ColdStart {
	p := &ColdStart{seed: maphash.MakeSeed(), first: map[uint64]time.Time{}}
	p.Begin()
	return p
}

// Begin has it begin again, as for a new version of a matrix.
func (p *ColdStart) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(coldFor)
}

// budget returns the time for a search of an index expression, usual or more,
// and what to call when it has ended. A nil ColdStart has none.
func (p *ColdStart) budget(index string, usual time.Duration) (budget time.Duration, end func()) {
	if p == nil || usual >= coldBudget {
		return usual, func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, key := time.Now(), maphash.String(p.seed, index)
	until, searched := p.first[key]
	if !searched {
		if len(p.first) < mostFirst {
			until = now.Add(coldFor)
			p.first[key] = until
		}
	}
	if p.taken == mostCold || !now.Before(until) && !now.Before(p.until) {
		return usual, func() {}
	}
	p.taken++
	return coldBudget, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
	}
}
