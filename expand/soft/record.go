package soft

import (
	"math/bits"
	"strings"
	"sync"
)

const (
	// leastWindows is how many windows must have been seen before a search is
	// thought to be remembered, and lastWindows how many of the last ones count.
	leastWindows, lastWindows = 3, 8
	// mostLacking is the largest share of hits that a remembered window lacks.
	mostLacking = .1
	// maxRecords limits the kinds of searches; beyond it all are forgotten.
	maxRecords = 10_000
)

// records tell, by [expand.Rerank.Key], which of the last windows were
// remembered.
type records struct {
	mu sync.Mutex
	of map[string]record
}

// A record has a bit for each of the last windows, 1 for one that was not
// remembered. seen is how many there are.
type record struct{ lacked, seen uint8 }

// add records a window of which so many hits were not remembered.
func (r *records) add(key string, lacking, hits int) {
	if hits == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.of[key]
	if !known && len(r.of) >= maxRecords {
		clear(r.of)
	}
	if !known {
		key = strings.Clone(key) // it may be part of a request
	}
	was.lacked <<= 1
	if tooMany(lacking, hits) {
		was.lacked |= 1
	}
	was.seen = min(was.seen+1, lastWindows)
	r.of[key] = was
}

// remembers reports whether nearly all of the last windows were remembered: all
// of the first ones, and all but one of lastWindows.
func (r *records) remembers(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.of[key]
	return was.seen >= leastWindows && bits.OnesCount8(was.lacked) <= int(was.seen)/lastWindows
}

// tooMany reports whether a window lacks too many hits to be put in order.
func tooMany(lacking, hits int) bool { return float64(lacking) > mostLacking*float64(hits) }
