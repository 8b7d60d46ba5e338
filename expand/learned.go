package expand

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// defaultClauseLimit is how many clauses engines take in a query where
// nobody says otherwise, by indices.query.bool.max_clause_count:
// Elasticsearch 7 and OpenSearch 2 and 3 exactly as many, and Elasticsearch
// 8 and 9, which work it out from their memory, no less.
const defaultClauseLimit = 1024

// What is learned is forgotten after limitTime: settings change, and the next
// search that is refused teaches it again. maxLimits bounds how much is
// known.
const (
	limitTime = 10 * time.Minute
	maxLimits = 1000
)

// A LimitKind is what a limit is of.
type LimitKind string

// The limits that are learned from refusals.
const (
	// LimitClauses is how many clauses a query may have, by the cluster's setting
	// indices.query.bool.max_clause_count.
	LimitClauses LimitKind = "clauses"
	// LimitRescore is how many hits the engine orders again, by the index's setting
	// index.max_rescore_window.
	LimitRescore LimitKind = "rescore_window"
	// LimitResults is how many hits may be asked for, by the index's setting
	// index.max_result_window.
	LimitResults LimitKind = "result_window"
)

// A Limit is how much a search of an index expression may have of something.
type Limit struct {
	Kind  LimitKind
	Index string
	// N is the limit. It is 0 where it is no longer known.
	N int64
}

// limits are those that were learned. The zero value has none.
type limits struct {
	// count is how many are held, so that nobody waits for the lock while there
	// are none, as usual.
	count  atomic.Int32
	mu     sync.Mutex
	known  map[limitKey]knownLimit
	report func(Limit)
}

type limitKey struct {
	kind  LimitKind
	index string
}

// A knownLimit holds until a time. asked says that it is the cluster's own
// answer, which refusals do not change.
type knownLimit struct {
	n     int64
	asked bool
	until time.Time
}

// of returns a limit of an index expression, 0 where none is known.
func (l *limits) of(kind LimitKind, index string) int64 {
	if l.count.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.get(limitKey{kind, index}).n
}

// get returns what is known, the zero value for nothing, and forgets what
// was known for long enough. The lock is held.
func (l *limits) get(k limitKey) knownLimit {
	known, ok := l.known[k]
	if ok && time.Now().After(known.until) {
		delete(l.known, k)
		l.count.Store(int32(len(l.known))) //nolint:gosec // at most maxLimits
		l.tell(k, 0)
		return knownLimit{}
	}
	return known
}

// set notes a limit. Where there are too many to keep, all are learned again.
func (l *limits) set(k limitKey, known knownLimit) {
	if _, old := l.known[k]; l.known == nil || !old && len(l.known) >= maxLimits {
		l.known = map[limitKey]knownLimit{}
	}
	k.index = strings.Clone(k.index) // it is a part of the request
	known.until = time.Now().Add(limitTime)
	changed := l.known[k].n != known.n
	l.known[k] = known
	l.count.Store(int32(len(l.known))) //nolint:gosec // at most maxLimits
	if changed {
		l.tell(k, known.n)
	}
}

func (l *limits) tell(k limitKey, n int64) {
	if l.report != nil {
		l.report(Limit{k.kind, k.index, n})
	}
}

// OnLimit has f called whenever a limit is learned, changes, or, with N = 0,
// is forgotten. f must not block or call e. OnLimit must be called before
// the first search.
func (e *Expander) OnLimit(f func(Limit)) { e.limits.report = f }

// Learn notes a limit that a refusal named, see [Refusal.Limit]. The
// searches of that index expression are kept under it for ten minutes. Of
// several the smallest counts, because the nodes of a cluster may differ,
// unless the cluster was asked. It reports whether that was news. Learn is
// safe for concurrent use.
func (e *Expander) Learn(limit Limit) (news bool) {
	k := limitKey{limit.Kind, limit.Index}
	e.limits.mu.Lock()
	defer e.limits.mu.Unlock()
	if known := e.limits.get(k); known.asked || known.n > 0 && known.n <= limit.N {
		return false
	}
	e.limits.set(k, knownLimit{n: limit.N})
	return true
}

// Correct replaces what a refusal named by what the cluster itself says of
// the limit. The larger number of clauses counts: Elasticsearch 8 and 9 work
// their limit out from their memory, and go on telling the default of the
// setting. Correct is safe for concurrent use.
func (e *Expander) Correct(limit Limit) {
	k := limitKey{limit.Kind, limit.Index}
	e.limits.mu.Lock()
	defer e.limits.mu.Unlock()
	if known := e.limits.get(k); limit.Kind == LimitClauses {
		limit.N = max(limit.N, known.n)
	}
	e.limits.set(k, knownLimit{n: limit.N, asked: true})
}

// Limits returns the limits that are known now, in no order.
func (e *Expander) Limits() []Limit {
	e.limits.mu.Lock()
	defer e.limits.mu.Unlock()
	all := make([]Limit, 0, len(e.limits.known))
	for k := range e.limits.known {
		if known := e.limits.get(k); known.n > 0 {
			all = append(all, Limit{k.kind, k.index, known.n})
		}
	}
	return all
}
