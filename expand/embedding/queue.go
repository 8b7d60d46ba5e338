package embedding

import (
	"slices"
	"strings"
	"sync"
)

// maxWaiting limits the documents that wait for their vectors; searches ask
// again for those beyond it.
const maxWaiting = 10_000

// A wanted is a state whose vector is to be made, and how often searches
// found it.
type wanted struct {
	state
	asks int
}

// A queue has the states whose vectors are to be made, each once.
type queue struct {
	woken chan struct{} // has a value if there is something to do

	mu     sync.Mutex
	states map[uint64]*wanted
	taken  int // whose vectors are being made
}

func newQueue() queue { return queue{woken: make(chan struct{}, 1), states: map[uint64]*wanted{}} }

// wake has the worker look.
func (q *queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default: // it will look anyway
	}
}

// add adds states that a search found.
func (q *queue) add(found []state) {
	if len(found) == 0 {
		return
	}
	q.mu.Lock()
	for _, s := range found {
		w := q.states[s.key]
		if w == nil && len(q.states) < maxWaiting {
			s.index, s.id = strings.Clone(s.index), strings.Clone(s.id)
			w = &wanted{state: s}
			q.states[s.key] = w
		}
		if w != nil {
			w.asks++
		}
	}
	q.mu.Unlock()
	q.wake()
}

// take removes the states in an index that searches found most often, at most
// n.
func (q *queue) take(n int) []state {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]*wanted, 0, len(q.states))
	for _, w := range q.states {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *wanted) int { return b.asks - a.asks })
	var some []state
	for _, w := range all {
		if len(some) < n && (len(some) == 0 || w.index == some[0].index) {
			some = append(some, w.state)
			delete(q.states, w.key)
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
	return len(q.states) + q.taken
}
