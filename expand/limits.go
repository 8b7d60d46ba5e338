package expand

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultClauseLimit is how many clauses engines take in a query where
	// indices.query.bool.max_clause_count does not say otherwise: Elasticsearch 7
	// and OpenSearch 2 and 3 exactly as many, and Elasticsearch 8 and 9, which work
	// it out from their memory, no less.
	defaultClauseLimit = 1024
	// limitTime is how long a limit is believed: settings change, and the next
	// search that is refused teaches it again. maxLimits bounds how many are known.
	limitTime = 10 * time.Minute
	maxLimits = 1000
)

// A LimitKind is what a limit is of.
type LimitKind string

// The limits that are learned from refusals, and the settings they come from.
const (
	LimitClauses LimitKind = "clauses"        // of a query: indices.query.bool.max_clause_count
	LimitRescore LimitKind = "rescore_window" // hits that are rescored: index.max_rescore_window
	LimitResults LimitKind = "result_window"  // hits that may be asked for: index.max_result_window
)

// A Limit is how much a search of an index expression may have of something.
// N is 0 where that is no longer known.
type Limit struct {
	Kind  LimitKind
	Index string
	N     int64
}

// Limits are those that were learned of a cluster. The zero value has none. It
// is safe for concurrent use.
type Limits struct {
	// OnChange, unless nil, is called whenever a limit is learned, changes, or,
	// with N = 0, is forgotten. It must not block or call a method of the Limits,
	// and is set before the first search.
	OnChange func(Limit)

	// count is how many there are, so that nobody waits for the lock while there
	// are none, as usual.
	count atomic.Int32
	mu    sync.Mutex
	known map[Limit]knownLimit // with N = 0
}

// A knownLimit is valid until a time. asked says that it is the cluster's own
// answer, which refusals do not change.
type knownLimit struct {
	n     int64
	asked bool
	until time.Time
}

// of returns a limit, 0 where it is not known.
func (l *Limits) of(kind LimitKind, index string) int64 {
	if l.count.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.get(Limit{Kind: kind, Index: index}).n
}

// Learn notes a limit that a refusal named, see [Refusal.Limit], for ten
// minutes. Of several the smallest counts, because the nodes of a cluster may
// differ, unless the cluster was asked. It reports whether that was news.
func (l *Limits) Learn(limit Limit) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := limit.N
	limit.N = 0
	known := l.get(limit)
	if known.asked || known.n > 0 && known.n <= n {
		return false
	}
	l.set(limit, n, false)
	return true
}

// Correct replaces what a refusal named by what the cluster itself says of
// the limit. The larger number of clauses counts: Elasticsearch 8 and 9 work
// their limit out from their memory, and go on saying the default of the
// setting.
func (l *Limits) Correct(limit Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := limit.N
	limit.N = 0
	if known := l.get(limit); limit.Kind == LimitClauses {
		n = max(n, known.n)
	}
	l.set(limit, n, true)
}

// All returns the limits that are known now, in no order.
func (l *Limits) All() []Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Limit, 0, len(l.known))
	for k := range l.known {
		if k.N = l.get(k).n; k.N > 0 {
			all = append(all, k)
		}
	}
	return all
}

// get forgets what was known for long enough. The lock is held.
func (l *Limits) get(k Limit) knownLimit {
	known, ok := l.known[k]
	if ok && time.Now().After(known.until) {
		delete(l.known, k)
		l.changed(k, 0)
		return knownLimit{}
	}
	return known
}

// set notes a limit. Where there are too many, all are learned again.
func (l *Limits) set(k Limit, n int64, asked bool) {
	old, ok := l.known[k]
	if l.known == nil || !ok && len(l.known) >= maxLimits {
		l.known = map[Limit]knownLimit{}
	}
	k.Index = strings.Clone(k.Index) // it is a part of the request
	l.known[k] = knownLimit{n, asked, time.Now().Add(limitTime)}
	if old.n != n {
		l.changed(k, n)
	}
}

func (l *Limits) changed(k Limit, n int64) {
	l.count.Store(int32(len(l.known))) //nolint:gosec // at most maxLimits
	if k.N = n; l.OnChange != nil {
		l.OnChange(k)
	}
}
