package embedding

import (
	"slices"
	"strings"
	"sync"

	"github.com/akin-search/akin/expand"
)

// maxWaiting limits the documents that wait for their vectors; searches ask
// again for those beyond it.
const maxWaiting = 10_000

// A wanted is a hit whose vector is to be made, and how often searches found
// it.
type wanted struct {
	key  uint64
	hit  expand.Hit
	asks int
}

// A queue has the hits whose vectors are to be made, each once.
type queue struct {
	woken chan struct{} // has a value if there is something to do

	mu    sync.Mutex
	hits  map[uint64]*wanted
	taken int // whose vectors are being made
}

func newQueue() queue { return queue{woken: make(chan struct{}, 1), hits: map[uint64]*wanted{}} }

// wake has the worker look.
func (q *queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// add adds a hit.
func (q *queue) add(key uint64, hit *expand.Hit) {
	q.mu.Lock()
	w := q.hits[key]
	if w == nil && len(q.hits) < maxWaiting {
		w = &wanted{key: key, hit: expand.Hit{Index: strings.Clone(hit.Index), ID: strings.Clone(hit.ID), SeqNo: hit.SeqNo}}
		q.hits[key] = w
	}
	if w != nil {
		w.asks++
	}
	q.mu.Unlock()
	q.wake()
}

// take removes the hits of an index that searches found most often, at most
// n.
func (q *queue) take(n int) []wanted {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*wanted, 0, len(q.hits))
	for _, w := range q.hits {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *wanted) int { return b.asks - a.asks })
	var some []wanted
	for _, w := range all {
		if len(some) < n && (len(some) == 0 || w.hit.Index == some[0].hit.Index) {
			some = append(some, *w)
			delete(q.hits, w.key)
		}
	}
	q.taken = len(some)
	return some
}

// end says that the vectors of what was taken are made, or not.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = 0
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.hits) + q.taken
}
