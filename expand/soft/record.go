package soft

import (
	"math/bits"
	"strings"
	"sync"

	"github.com/akin-search/akin/expand"
)

const (
	// leastWindows is how many windows must have been seen before a search is
	// thought to be remembered, and lastWindows how many of the last ones count.
	leastWindows, lastWindows = 3, 8
	// mostLacking is the largest share of hits that a remembered window lacks.
	mostLacking = .1
	// maxRecords limits the kinds of searches; beyond it all are forgotten.
	maxRecords = 10_000
	// windowBytes is about what the terms of a window take: 100 documents of 80
	// terms.
	windowBytes = 30_000
)

// records tell which windows of hits were remembered: of the last searches of
// each kind, and of single searches, as many as there is memory for.
type records struct {
	searches int // in each of young and old

	mu         sync.Mutex
	kinds      map[string]record
	young, old map[uint64]bool // by search; when young is full it becomes old
}

// A record has a bit for each of the last windows, 1 for one that was not
// remembered. seen is how many there are.
type record struct{ lacked, seen uint8 }

func newRecords(bytes uint64) *records {
	return &records{
		searches: max(1, int(min(bytes/windowBytes/2, maxRecords*100))),
		kinds:    map[string]record{}, young: map[uint64]bool{},
	}
}

// add records a window of a kind of which so many hits were not remembered.
func (r *records) add(kind string, lacking, hits int) {
	if hits == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.kinds[kind]
	if !known && len(r.kinds) >= maxRecords {
		clear(r.kinds)
	}
	if !known {
		kind = strings.Clone(kind) // it may be part of a request
	}
	was.lacked <<= 1
	if tooMany(lacking, hits) {
		was.lacked |= 1
	}
	was.seen = min(was.seen+1, lastWindows)
	r.kinds[kind] = was
}

// settle records whether the window of a search is remembered.
func (r *records) settle(search uint64, remembered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.young) >= r.searches {
		r.old, r.young = r.young, make(map[uint64]bool, r.searches)
	}
	r.young[search] = remembered
	delete(r.old, search)
}

// remembers reports whether the window of a search was remembered the last
// time, or nearly all of the last windows of its kind were: all of the first
// ones, and all but one of lastWindows.
func (r *records) remembers(key expand.HitsKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.young[key.Search] || r.old[key.Search] {
		return true
	}
	was := r.kinds[key.Kind]
	return was.seen >= leastWindows && bits.OnesCount8(was.lacked) <= int(was.seen)/lastWindows
}

// tooMany reports whether a window lacks too many hits to be put in order.
func tooMany(lacking, hits int) bool { return float64(lacking) > mostLacking*float64(hits) }
