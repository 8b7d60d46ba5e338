package rowstore

import (
	"errors"
	"slices"
	"strings"
)

// Where a matrix comes from.
const (
	SourceFile  = "file"
	SourceRedis = "redis"
)

// A State is what is served of one matrix and the health of its source.
type State struct {
	// Name is the name of the matrix.
	Name string
	// Source is [SourceFile] or [SourceRedis].
	Source string
	// Version is the version that is served, "" for none: then its searches
	// are not expanded. For a file it is the checksum.
	Version string
	// Terms and NonZeros are the numbers of rows and of neighbors, Docs the
	// number of documents the matrix was built from, 0 where unknown.
	Terms, NonZeros, Docs uint64
	// Problem says what is wrong with the source, "" if it is healthy. The last
	// good version may still be served.
	Problem string
}

// empty makes s the state of a matrix without a version.
func (s *State) empty() { s.Version, s.Terms, s.NonZeros, s.Docs = "", 0, 0, 0 }

// Stats are the state of a [Store] and its counters since it was opened.
type Stats struct {
	// Matrices has one entry for each name, sorted by name.
	Matrices []State
	// CacheHits and CacheMisses count terms.
	CacheHits, CacheMisses int64
	// CacheBytes is what the cached rows take, an estimate.
	CacheBytes uint64
	// Failures counts the calls to Redis that failed or, with the breaker open,
	// were not made. BadRows counts the answers that had a bad row or showed
	// that rows are missing.
	Failures, BadRows int64
	// Breaker is "closed", "half-open" or "open", and "" without Redis.
	Breaker string
}

// Stats returns the state and the counters.
func (s *Store) Stats() Stats {
	stats := Stats{
		Matrices:    s.State(),
		CacheHits:   s.cache.hits.Load(),
		CacheMisses: s.cache.misses.Load(),
		CacheBytes:  s.cache.rows.WeightedSize(),
	}
	if r := s.remote; r != nil {
		stats.Failures, stats.BadRows = r.failures.Load(), r.badRows.Load()
		stats.Breaker = r.breaker.State().String()
	}
	return stats
}

// State returns the state of every matrix, sorted by name.
func (s *Store) State() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]State, 0, len(s.matrices))
	for _, m := range s.matrices {
		states = append(states, m.state)
	}
	slices.SortFunc(states, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return states
}

// apply applies a report, publishes a snapshot if the version changed and
// passes on the state if that changed.
func (s *Store) apply(r report) {
	state, changed := s.note(r)
	if changed && s.onState != nil {
		s.onState(state)
	}
}

func (s *Store) note(r report) (state State, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.matrices[r.name]
	if r.drop && m.version != nil {
		m.version = nil
		m.state.empty()
		s.publish()
		changed = true
	}
	if r.damaged && m.state.Version != "" { // searches keep failing with the reason
		m.state.empty()
		changed = true
	}
	// One that is used again after damage has the same ID.
	if v := r.version; v != nil && (m.version == nil || m.version.ID != v.ID || m.version.damage.Load() != nil) {
		changed = changed || m.state.Version != v.ID
		m.version = v
		m.state.Version, m.state.Docs = v.ID, v.Docs
		m.state.Terms, m.state.NonZeros = v.Terms, v.NonZeros
		s.publish()
	}
	if problem := problemOf(r.err); !m.reported || !errors.Is(problem, m.problem) {
		m.problem, m.state.Problem = problem, ""
		if r.err != nil {
			m.state.Problem = r.err.Error()
		}
		changed = true
	}
	m.reported = true
	return m.state, changed
}

// problemOf returns the kind of a source's error, nil for none. The full error
// may differ from poll to poll.
func problemOf(err error) error {
	for _, kind := range []error{ErrUnavailable, ErrNoVersion, ErrGone, ErrMissingRows, ErrBadRow} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if err != nil {
		return ErrBadVersion
	}
	return nil
}
