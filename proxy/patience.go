package proxy

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	// patientBudget is the time of a search that finds cold caches, patientFor how
	// long they count as cold.
	patientBudget, patientFor = time.Second, time.Minute
	// mostPatient limits the searches that have more time at once, so that a slow
	// cluster does not pile them up.
	mostPatient = 64
	// mostFirst limits the indices that are remembered as searched before.
	mostFirst = 1000
)

// A Patience gives searches more time while caches are cold: for a minute after
// it begins, and after the first search of an index. It may be used
// concurrently.
type Patience struct {
	seed maphash.Seed

	mu    sync.Mutex
	until time.Time            // for any search
	first map[uint64]time.Time // for searches of an index expression, by its hash
	taken int                  // searches that have more time now
}

// NewPatience returns a Patience that begins now.
func NewPatience() *Patience {
	p := &Patience{seed: maphash.MakeSeed(), first: map[uint64]time.Time{}}
	p.Begin()
	return p
}

// Begin has it begin again, as for a new version of a matrix.
func (p *Patience) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(patientFor)
}

// budget returns the time for a search of an index expression, usual or more,
// and what to call when it has ended. A nil Patience has none.
func (p *Patience) budget(index string, usual time.Duration) (budget time.Duration, end func()) {
	if p == nil || usual >= patientBudget {
		return usual, func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, key := time.Now(), maphash.String(p.seed, index)
	until, searched := p.first[key]
	if !searched {
		if len(p.first) < mostFirst {
			until = now.Add(patientFor)
			p.first[key] = until
		}
	}
	if p.taken == mostPatient || !now.Before(until) && !now.Before(p.until) {
		return usual, func() {}
	}
	p.taken++
	return patientBudget, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
	}
}
