package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/source"
)

// A Binding says where a matrix is used. Patterns know one wildcard, '*'.
type Binding struct {
	// Name is the matrix: 1 to 64 letters, digits, '.', '_' and '-'. Bindings
	// may share one.
	Name string
	// Indices are patterns of the names of indices, aliases and data streams; at
	// least one has no leading "-". Every part of a request's index expression
	// has to match one, as the request spells it, or else every index that it
	// stands for, see [Snapshot.Match]; "*" also matches an expression for all.
	// Nothing that the expression can name or stands for may match a pattern with
	// a leading "-".
	Indices []string
	// Fields are patterns of full field names, at least one.
	Fields []string
}

// Options are the settings of a [Store].
type Options struct {
	// Bindings, at least one, are tried in order; the first that matches decides.
	Bindings []Binding
	// Files has the matrices to serve from memory, by name; others are in Redis.
	Files map[string]Loader
	// Redis may have no URL where no matrix comes from there.
	Redis Redis
	// RedisTimeout bounds a look-up, whatever Redis, Sentinel or a cluster do.
	RedisTimeout time.Duration
	// Words says that [Rows.Nearest] is called. What that takes for matrices in
	// Redis, at most half, comes from CacheBytes.
	Words bool
	// CacheBytes bounds the cached rows, with their overhead; at least 1 MiB.
	// The memory in use stays within a quarter over it.
	CacheBytes uint64
	// OnState, if not nil, is called for the first state of each matrix and for
	// every change of its version or its kind of problem: one call, one log line.
	// Calls for one matrix come one after another. It must not call Close.
	OnState func(State)
	// Guard recovers panics; nil does so silently.
	Guard *recovery.Guard
}

// Where a matrix comes from.
const (
	SourceFile  = "file"
	SourceRedis = "redis"
)

// A State is what is served of one matrix and the health of its source.
type State struct {
	Name, Source string
	// Version is the version that is served, "" for none: then its searches
	// are not expanded. For a file it is the beginning of the checksum.
	Version, Checksum string
	// Written is when the version was pushed, or its file written.
	Written time.Time
	// Terms and NonZeros are the numbers of rows and of neighbors, Docs the
	// number of documents the matrix was built from, 0 where unknown.
	Terms, NonZeros, Docs uint64
	// Model is the language model that is mixed in, "" for none.
	Model string
	// NoWords says why [Rows.Nearest] finds nothing, "" where it may and where it is
	// not called.
	NoWords string
	// Problem says what is wrong with the source, "" if it is healthy. The last
	// good version may still be served.
	Problem string
}

// Stats are the state of a [Store] and its counters since it was opened.
type Stats struct {
	Matrices []State     // sorted by name
	Cache    cache.Stats // of the rows; Hits and Misses are in terms
	// Failures counts the calls to Redis that failed or, with the breaker open,
	// were not made, BadRows the answers with bad or without some rows.
	Failures, BadRows int64
	Breaker           string // "closed", "half-open" or "open", and "" without Redis
}

// A Store serves the rows of the active matrices. It is safe for concurrent
// use.
type Store struct {
	bindings []bound
	onState  func(State)
	cache    *rowCache
	remote   *remote // nil where no matrix comes from Redis
	snapshot atomic.Pointer[Snapshot]

	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	matrices map[string]*matrix
}

// A bound is a Binding with its patterns ready.
type bound struct {
	name    string
	indices indexSet
	fields  []string
}

// A matrix is the store's state of one name.
type matrix struct {
	rows    *Rows // nil: none to serve
	state   State
	problem error // the kind of state.Problem
}

// errNotAsked is the problem of a matrix before its first report.
var errNotAsked = errors.New("not asked yet")

// Open returns a Store that follows its matrices until Close. Every source is
// asked once before Open returns, within ctx; those with nothing to serve yet
// are asked again, and their searches are not expanded until then. The error is
// that of the URL of Redis, where one is needed.
func Open(ctx context.Context, o Options) (*Store, error) {
	c := newRowCache(o.CacheBytes, o.RedisTimeout, o.Guard)
	s := &Store{onState: o.OnState, cache: c, matrices: make(map[string]*matrix)}
	var files []func(context.Context, reporter)
	var remotes []string
	for _, b := range o.Bindings {
		s.bindings = append(s.bindings, bound{b.Name, newIndexSet(b.Indices), b.Fields})
		if s.matrices[b.Name] != nil {
			continue
		}
		source := SourceRedis
		if load := o.Files[b.Name]; load != nil {
			source = SourceFile
			files = append(files, pollFile(b.Name, load, c, o.Words))
		} else {
			remotes = append(remotes, b.Name)
		}
		s.matrices[b.Name] = &matrix{state: State{Name: b.Name, Source: source, Problem: errNotAsked.Error()}, problem: errNotAsked}
	}
	s.publish()
	lifetime, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	follow := func(interval time.Duration, poll func(context.Context, reporter)) {
		poll(ctx, s.report)
		s.done.Go(func() {
			ticker := time.NewTicker(interval)
			defer ticker.Stop()
			for {
				select {
				case <-lifetime.Done():
					return
				case <-ticker.C:
				}
				_ = o.Guard.Do("following versions", func() error { // which has counted and logged its panic
					poll(lifetime, s.report)
					return nil
				})
			}
		})
	}
	for _, poll := range files {
		follow(reloadEvery, poll)
	}
	if remotes == nil {
		return s, nil
	}
	var err error
	if s.remote, err = newRemote(o.Redis, o.RedisTimeout, remotes, c); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if o.Words {
		s.remote.mostWords = o.CacheBytes / 2 / uint64(len(remotes))
	}
	follow(followEvery, s.remote.poll)
	return s, nil
}

// Stats returns the state and the counters.
func (s *Store) Stats() Stats {
	stats := Stats{
		Matrices: s.State(),
		Cache:    s.cache.kept.Stats(),
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
	for _, name := range slices.Sorted(maps.Keys(s.matrices)) {
		m := s.matrices[name]
		state := m.state
		if m.rows != nil {
			if why := m.rows.version.noWords.Load(); why != nil {
				state.NoWords = *why
			}
		}
		states = append(states, state)
	}
	return states
}

// report publishes a snapshot if the version changed and passes on the state
// if that changed.
func (s *Store) report(name string, v *version, err error) {
	if state, changed := s.note(s.matrices[name], v, err); changed && s.onState != nil {
		s.onState(state)
	}
}

func (s *Store) note(m *matrix, v *version, err error) (state State, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state = m.state
	serve := func(v Version) {
		state.Version, state.Checksum, state.Written = v.ID, v.Checksum, v.Pushed
		state.Terms, state.NonZeros, state.Docs, state.Model = v.Terms, v.NonZeros, v.Docs, v.Params[simmatrix.ModelParam]
	}
	damaged := m.rows != nil && m.rows.version.damage.Load() != nil
	problem := problemOf(err)
	switch {
	case v != nil && (m.rows == nil || m.rows.version.ID != v.ID || damaged): // one that was repaired has the same ID
		m.rows = &Rows{version: v, cache: s.cache}
		serve(v.Version)
		s.publish()
	case errors.Is(problem, ErrNoVersion) && m.rows != nil:
		m.rows = nil
		s.publish()
		fallthrough
	case v == nil && damaged && problem != nil && !errors.Is(problem, ErrUnavailable): // and there is no other
		serve(Version{})
	}
	changed = state.Version != m.state.Version
	if !errors.Is(problem, m.problem) {
		m.problem, state.Problem, changed = problem, "", true
		if err != nil {
			state.Problem = err.Error()
		}
	}
	m.state = state
	return state, changed
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

// Close stops following versions and closes the connections. Rows of a
// snapshot that are not in memory fail from then on.
func (s *Store) Close() error {
	s.stop()
	s.done.Wait()
	var err error
	if s.remote != nil {
		err = s.remote.client.Close()
	}
	s.cache.loader.Close()
	s.cache.kept.Close()
	return err
}

// Pin returns the active versions. It does no I/O and allocates nothing.
func (s *Store) Pin() *Snapshot { return s.snapshot.Load() }

// publish makes a new snapshot of the rows in s.matrices.
func (s *Store) publish() {
	snapshot := &Snapshot{bindings: s.bindings, rows: make([]*Rows, len(s.bindings))}
	for i, b := range s.bindings {
		snapshot.rows[i] = s.matrices[b.name].rows
	}
	s.snapshot.Store(snapshot)
}

// A Snapshot holds one version of every matrix. It is immutable; rows of a
// version stay readable for as long as the version exists.
type Snapshot struct {
	bindings []bound
	rows     []*Rows // one for each binding, nil without a version
}

// Of returns the rows of a matrix, nil where it is bound to nothing or has no
// version.
func (s *Snapshot) Of(name string) *Rows {
	at := slices.IndexFunc(s.bindings, func(b bound) bool { return b.name == name })
	if at < 0 {
		return nil
	}
	return s.rows[at]
}

// A Match is what [Snapshot.Match] has found.
type Match struct {
	// Rows are nil where no matrix is bound to the field or the bound one has no
	// version.
	Rows *Rows
	// Named says that the binding names the field in full, without a wildcard.
	Named bool
	// Resolved are the names that resolve returned, nil where it was not called.
	Resolved []string
}

// Match finds the first binding that matches the full name of a field and
// either the index expression of the request's path, unescaped, as spelled, or
// every index that it stands for. "" is all indices. Among has the names of
// the matrices to consider, nil for all. Resolve returns the indices that the
// expression stands for, data streams by their own names, and none where that
// is not known. It is called at most once, and not if the first binding for
// the field matches the expression as spelled. An error is that of resolve.
func (s *Snapshot) Match(index, field string, among []string, resolve func() ([]string, error)) (m Match, err error) {
	asked := false
	for i := range s.bindings {
		b := &s.bindings[i]
		if among != nil && !slices.Contains(among, b.name) || !matchAny(b.fields, field) {
			continue
		}
		covered := b.indices.covers(index)
		if !covered && !asked && !b.indices.canNameExcluded(index) {
			asked = true
			if m.Resolved, err = resolve(); err != nil {
				return Match{}, err
			}
		}
		if covered || b.indices.holds(index, m.Resolved) {
			m.Rows, m.Named = s.rows[i], !strings.Contains(field, "*") && slices.Contains(b.fields, field)
			return m, nil
		}
	}
	return m, nil
}

const (
	// reloadEvery bounds the time until a changed file is noticed.
	reloadEvery = time.Second
	// checksumDigits of a file's checksum identify its version.
	checksumDigits = 16
)

// A Loader supplies the matrix of a file, and again whenever it has changed.
// It is called when a [Store] opens and then once a second, never at the same
// time. written is when the matrix was made; at zero the last one is still
// valid. A Loader returns an error for as long as it persists; it is reported,
// and the last matrix stays in service. A Loader ends with ctx.
type Loader func(ctx context.Context) (m *simmatrix.Matrix, written time.Time, err error)

// InMemory returns a Loader of a matrix that never changes.
func InMemory(m *simmatrix.Matrix) Loader {
	now := time.Now()
	return func(context.Context) (*simmatrix.Matrix, time.Time, error) { return m, now, nil }
}

// pollFile returns a poll that reports what a Loader returns.
func pollFile(name string, load Loader, c *rowCache, words bool) func(ctx context.Context, report reporter) {
	return func(ctx context.Context, report reporter) {
		m, written, err := load(ctx)
		switch {
		case err != nil && ctx.Err() != nil: // closing
		case err != nil:
			report(name, nil, fmt.Errorf("%w: %w", ErrBadVersion, err))
		case !written.IsZero():
			v := c.version(name, Version{ID: m.Checksum()[:checksumDigits], Meta: m.Meta(), Checksum: m.Checksum(), Pushed: written})
			v.inMemory = m
			v.fetch = func(_ context.Context, terms []string) ([]simmatrix.Row, error) {
				rows := make([]simmatrix.Row, len(terms))
				for k, term := range terms {
					rows[k] = m.Row(term)
				}
				c.add(v, terms, rows)
				return rows, nil
			}
			if words {
				known := source.NewWords(m.Table().Terms, m.Table().DocFreqs)
				if v.words.Store(known); known == nil {
					v.noWords.Store(new(noDocFreqs))
				}
			}
			report(name, v, nil)
		default:
			report(name, nil, nil)
		}
	}
}
