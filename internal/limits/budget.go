// Package limits bounds what requests take: memory and places, of which no
// client gets more than it leaves to the others (budget.go), the pace at which
// clients send and read bodies (read.go, request.go, answer.go), and the
// connections of a listener (connections.go).
//
// No byte of a body is lost: the next reader gets first what was already read.
package limits

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

// A Kind is what bytes are held for. It labels metrics.
type Kind string

// Kinds of bytes.
const (
	// SearchBody is a search: as it came, decompressed, and rewritten.
	SearchBody Kind = "search_body"
	// Answer is an answer that akin reads before the client gets it.
	Answer Kind = "response"
	// Shadow is a search that is also sent expanded, and its answers.
	Shadow Kind = "shadow"
	// Collected is a search and the beginning of its answer, until it is counted.
	Collected Kind = "collected_search"
	// OwnCall is an answer to akin's own call.
	OwnCall Kind = "cluster_call"
	// Signed is a body that is signed before it is sent.
	Signed Kind = "signed_body"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{SearchBody, Answer, Shadow, Collected, OwnCall, Signed} }

// trimPause is the pause between two trims; one takes 100 ms for 1 GiB of heap.
const trimPause = time.Minute

// A Budget limits the bytes that are held. [New] creates it. Its methods may be
// called concurrently.
//
// A client gets more as long as it then holds no more than is left for all
// others: one alone gets half of the limit, n clients 1/(n+1) each, so there is
// always room for one more.
type Budget struct {
	// trim gets a value when a peak is over.
	trim chan struct{}

	mu      sync.Mutex
	limit   int64
	used    int64
	peak    int64 // of used, since the last trim was requested
	clients map[string]int64
	kinds   map[Kind]Stats
}

// Stats are about one kind.
type Stats struct {
	// Held is the number of bytes held now.
	Held int64
	// Refused counts refused requests for more.
	Refused uint64
}

// New returns a budget of limit bytes.
func New(limit int64) *Budget {
	return &Budget{limit: limit, trim: make(chan struct{}, 1), clients: map[string]int64{}, kinds: map[Kind]Stats{}}
}

// Resize changes the limit. What is held stays, even if it is more.
func (b *Budget) Resize(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
}

// Stats returns the counts of a kind.
func (b *Budget) Stats(kind Kind) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kinds[kind]
}

// Hold returns an empty hold for a client, "" for akin itself.
func (b *Budget) Hold(kind Kind, client string) *Hold {
	return &Hold{budget: b, kind: kind, client: client}
}

// Trim returns memory to the system after each peak, until ctx ends. Otherwise
// Go keeps what a burst leaves for minutes. A peak is more than a quarter of
// the limit; it is over when less than a sixteenth is held.
func (b *Budget) Trim(ctx context.Context) {
	b.trimWith(ctx, debug.FreeOSMemory)
}

func (b *Budget) trimWith(ctx context.Context, free func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.trim:
			free()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(trimPause):
		}
	}
}

// change adds n bytes, which may be negative. The caller holds the lock.
func (b *Budget) change(h *Hold, n int64) {
	h.bytes += n
	b.used += n
	if b.clients[h.client] += n; b.clients[h.client] == 0 {
		delete(b.clients, h.client) // keeps the map no larger than the number of holds
	}
	s := b.kinds[h.kind]
	s.Held += n
	b.kinds[h.kind] = s
	b.peak = max(b.peak, b.used)
	if b.peak > b.limit/4 && b.used < b.limit/16 {
		b.peak = b.used
		select {
		case b.trim <- struct{}{}:
		default: // already requested
		}
	}
}

// A Hold is the bytes held for one thing. It may be used concurrently.
type Hold struct {
	budget *Budget
	kind   Kind
	client string
	bytes  int64 // guarded by the budget's lock
}

// Take holds n more bytes, or returns false if that is too much.
func (h *Hold) Take(n int64) bool {
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.clients[h.client]+n > b.limit-(b.used+n) {
		s := b.kinds[h.kind]
		s.Refused++
		b.kinds[h.kind] = s
		return false
	}
	b.change(h, n)
	return true
}

// Add holds n more bytes that are already in memory.
func (h *Hold) Add(n int64) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.budget.change(h, n)
}

// Give gives back n bytes.
func (h *Hold) Give(n int64) { h.Add(-n) }

// Release gives back all bytes. The hold can be reused.
func (h *Hold) Release() {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.budget.change(h, -h.bytes)
}

// Places is a number of places, shared by the rule of [Budget]: no owner takes
// more than are left for all others. One alone gets half, and there is always
// one more for somebody else. A place without owner counts only against the
// limit. [NewPlaces] creates it. Its methods may be called concurrently.
type Places struct {
	limit int

	mu    sync.Mutex
	taken int
	of    map[string]int
	// given is closed when a place is given back; nil if nobody waits.
	given chan struct{}
}

// NewPlaces returns limit places.
func NewPlaces(limit int) *Places { return &Places{limit: limit, of: map[string]int{}} }

// Take takes a place that counts for each of the owners, if allowed.
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

// Wait takes a place as soon as allowed, or returns the error of ctx.
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

// Give gives back a place of the same owners.
func (p *Places) Give(owners ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	for _, o := range owners {
		if p.of[o]--; p.of[o] == 0 {
			delete(p.of, o) // keeps the map no larger than the number of places
		}
	}
	if p.given != nil {
		close(p.given)
		p.given = nil
	}
}

// Taken returns the number of taken places.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
