// Package limits bounds what requests may take: memory and places, such
// that no client takes more than it leaves to the others (budget.go),
// bodies of requests and answers, by the pace at which a client sends and
// takes (read.go, request.go, answer.go), and the connections of a listener
// (connections.go).
//
// No byte of a body is lost: what was read comes first for whoever reads
// the body next.
package limits

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

// A Kind says what bytes are held for. It labels metrics.
type Kind string

// The kinds of bytes.
const (
	// SearchBody is a search as it came, decompressed and rewritten.
	SearchBody Kind = "search_body"
	// Answer is an answer that is looked at before the client gets it.
	Answer Kind = "response"
	// Shadow is a search, and its answer, that is sent once more to compare.
	Shadow Kind = "shadow"
	// OwnCall is an answer to a call that akin makes for itself.
	OwnCall Kind = "cluster_call"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{SearchBody, Answer, Shadow, OwnCall} }

// trimPause is between two trims, of some 100 ms for a heap of 1 GiB.
const trimPause = time.Minute

// A Budget bounds the bytes that are held. [New] makes it; its methods may be
// called at the same time.
//
// A client gets more as long as it then holds no more than is left for all
// others: one alone gets half of the limit, and n clients 1/(n+1) each, so that
// there is always room for one more.
type Budget struct {
	// trim gets a value when a peak is over.
	trim chan struct{}

	mu      sync.Mutex
	limit   int64
	used    int64
	peak    int64 // of used, since the last trim was asked for
	clients map[string]int64
	kinds   map[Kind]Stats
}

// Stats tell of one kind.
type Stats struct {
	// Held is the number of bytes held now.
	Held int64
	// Refused counts how often more was asked for in vain.
	Refused uint64
}

// New returns a budget of limit bytes.
func New(limit int64) *Budget {
	return &Budget{limit: limit, trim: make(chan struct{}, 1), clients: map[string]int64{}, kinds: map[Kind]Stats{}}
}

// Resize changes the limit. What is held stays, also where that is more.
func (b *Budget) Resize(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
}

// Stats returns what is held of a kind.
func (b *Budget) Stats(kind Kind) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kinds[kind]
}

// Hold returns a hold of no bytes yet, for a client, "" for akin itself.
func (b *Budget) Hold(kind Kind, client string) *Hold {
	return &Hold{budget: b, kind: kind, client: client}
}

// Trim gives memory back to the system after each peak, until ctx ends. Without
// it Go keeps what a burst has left behind for minutes. A peak is more than a
// quarter of the limit, and over when less than a sixteenth is held.
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

// change adds n bytes, which may be negative. The lock is held.
func (b *Budget) change(h *Hold, n int64) {
	h.bytes += n
	b.used += n
	if b.clients[h.client] += n; b.clients[h.client] == 0 {
		delete(b.clients, h.client) // so that there are no more of them than holds
	}
	s := b.kinds[h.kind]
	s.Held += n
	b.kinds[h.kind] = s
	b.peak = max(b.peak, b.used)
	if b.peak > b.limit/4 && b.used < b.limit/16 {
		b.peak = b.used
		select {
		case b.trim <- struct{}{}:
		default: // it is asked for already
		}
	}
}

// A Hold is the bytes for one thing, for concurrent use.
type Hold struct {
	budget *Budget
	kind   Kind
	client string
	bytes  int64 // guarded by the budget's lock
}

// Take holds n bytes more, or reports false where that is too much.
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

// Add holds n bytes more that are in memory already.
func (h *Hold) Add(n int64) {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.budget.change(h, n)
}

// Give gives n bytes back that were taken.
func (h *Hold) Give(n int64) { h.Add(-n) }

// Release gives all bytes back. The hold can be used again.
func (h *Hold) Release() {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.budget.change(h, -h.bytes)
}

// Places are a number of places, shared by the rule of [Budget]: no owner takes
// more than are left for all others. One alone gets half of them, and there is
// always one more for somebody else. A place that is taken for no owner counts
// against the limit only. [NewPlaces] makes them; their methods may be called
// at the same time.
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
