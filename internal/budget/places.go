package budget

import (
	"context"
	"sync"
)

// Places are a number of places, shared by the rule of [Budget]: no owner takes
// more than are left for all others. One alone gets half of them, and there is
// always one more for somebody else. [NewPlaces] makes them; their methods may
// be called at the same time.
type Places struct {
	limit int

	mu    sync.Mutex
	taken int
	of    map[string]int
	// given is closed when a place is given back; nil where nobody waits.
	given chan struct{}
}

// NewPlaces returns a number of places.
func NewPlaces(limit int) *Places { return &Places{limit: limit, of: map[string]int{}} }

// Take takes a place that counts for each of the owners, if it may.
func (p *Places) Take(owners ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take(owners)
}

// take is [Places.Take] with the lock held.
func (p *Places) take(owners []string) bool {
	left := p.limit - (p.taken + 1)
	if left < 0 {
		return false
	}
	for _, o := range owners {
		if p.of[o]+1 > left {
			return false
		}
	}
	p.taken++
	for _, o := range owners {
		p.of[o]++
	}
	return true
}

// Wait takes a place as soon as it may. It returns the context's error where
// that ends first.
func (p *Places) Wait(ctx context.Context, owners ...string) error {
	for {
		p.mu.Lock()
		if p.take(owners) {
			p.mu.Unlock()
			return nil
		}
		if p.given == nil {
			p.given = make(chan struct{})
		}
		given := p.given
		p.mu.Unlock()
		select {
		case <-given:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Give gives a place of the same owners back.
func (p *Places) Give(owners ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	for _, o := range owners {
		if p.of[o]--; p.of[o] == 0 {
			delete(p.of, o) // so that there are no more of them than places
		}
	}
	if p.given != nil {
		close(p.given)
		p.given = nil
	}
}

// Taken returns how many places are taken.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
