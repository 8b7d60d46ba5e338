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
	"github.com/akin-search/akin/simmatrix/spelling"
)

// A Binding says where a matrix is used. Patterns have one wildcard, '*'.
type Binding struct {
	// Name is the matrix: 1 to 64 letters, digits, '.', '_' and '-'. Several
	// bindings may name it.
	Name string
	// Indices are patterns of names of indices, aliases and data streams; at least
	// one has no leading "-". Every part of a request's index expression must
	// match one, as spelled, or else every index that it resolves to, see
	// [Snapshot.Match]; "*" also matches an expression for all. Nothing that the
	// expression can name or resolves to may match a pattern with a leading "-".
	Indices []string
	// Fields are patterns of full field names, at least one.
	Fields []string
}

// Options configure a [Store].
type Options struct {
	// Bindings, at least one, are tried in order; the first match decides.
	Bindings []Binding
	// Files has the matrices to serve from memory, by name; others are in Redis.
	Files map[string]Loader
	// Redis needs no URL if no matrix is there.
	Redis Redis
	// RedisTimeout limits a look-up, whatever Redis, Sentinel or a cluster do.
	RedisTimeout time.Duration
	// Words says that [Rows.Nearest] is used. For matrices in Redis it takes
	// memory from CacheBytes, at most half.
	Words bool
	// CacheBytes limits the cached rows with their overhead; at least 1 MiB. The
	// memory in use stays within a quarter above it.
	CacheBytes uint64
	// OnState, if not nil, is called for the first state of each matrix, and when
	// its version or its kind of problem changes: one call, one log line. Calls
	// for one matrix are sequential. It must not call Close.
	OnState func(State)
	// Guard recovers panics; nil does so silently.
	Guard *recovery.Guard
}

// Sources of a matrix.
const (
	SourceFile  = "file"
	SourceRedis = "redis"
)

// A State is what is served of a matrix, and the health of its source.
type State struct {
	Name, Source string
	// Version is the served version, "" for none: then its searches are not
	// expanded. For a file it is the beginning of the checksum.
	Version, Checksum string
	// Written is when the version was pushed, or its file written.
	Written time.Time
	// Terms and NonZeros are the numbers of rows and of neighbors. Docs is the
	// number of documents that the matrix was built from, 0 if unknown.
	Terms, NonZeros, Docs uint64
	// Model is the mixed-in language model, or "".
	Model string
	// Tallies are the [simmatrix.Tallies] of the version, in lines.
	Tallies string
	// Vectors are [simmatrix.Meta.Vectors].
	Vectors string
	// Crowded is a warning if its words crowd, see
	// [simmatrix.Meta.CrowdingWarning].
	Crowded string
	// NoWords says why [Rows.Nearest] finds nothing; "" if it may, or is not used.
	NoWords string
	// Problem says what is wrong with the source, "" if it is healthy. The last
	// good version may still be served.
	Problem string
}

// Stats are the state of a [Store] and its counters since it was opened.
type Stats struct {
	Matrices []State     // sorted by name
	Cache    cache.Stats // of the rows; Hits and Misses count terms
	// Failures counts calls to Redis that failed or, because of the breaker, were
	// not made. BadRows counts answers with bad or missing rows.
	Failures, BadRows int64
	Breaker           string // "closed", "half-open" or "open"; "" without Redis
}

// A Store serves the rows of active matrices. It is safe for concurrent use.
type Store struct {
	bindings []bound
	onState  func(State)
	cache    *rowCache
	remote   *remote // nil if no matrix comes from Redis
	snapshot atomic.Pointer[Snapshot]

	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	matrices map[string]*matrix
}

// A bound is a Binding with parsed patterns.
type bound struct {
	name    string
	indices indexSet
	fields  []string
}

// A matrix is the store's state of a name.
type matrix struct {
	rows    *Rows // nil if there are none to serve
	state   State
	problem error // the kind of state.Problem
}

// errNotAsked is the problem of a matrix before its first report.
var errNotAsked = errors.New("not asked yet")

// Open returns a Store that follows its matrices until Close. It asks every
// source once, within ctx; those with nothing to serve are asked again later,
// and their searches are not expanded until then. The only error is for the URL
// of Redis, if that is needed.
func Open(ctx context.Context, o Options) (*Store, error) {
	c := newRowCache(o.CacheBytes, o.Guard)
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
				_ = o.Guard.Do("following versions", func() error { // it has counted and logged a panic
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

// report publishes a snapshot of a new version, and passes on a new state.
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
		state.Version = v.ID
		state.Checksum = v.Checksum
		state.Written = v.Pushed
		state.Terms = v.Terms
		state.NonZeros = v.NonZeros
		state.Docs = v.Docs
		state.Model = v.Params[simmatrix.ModelParam]
		state.Vectors = v.Vectors()
		state.Crowded = v.CrowdingWarning()
		state.Tallies = strings.Join(simmatrix.Tallies(v.Params), "\n")
	}
	damaged := m.rows != nil && m.rows.version.damage.Load() != nil
	problem := problemOf(err)
	switch {
	case v != nil && (m.rows == nil || m.rows.version.ID != v.ID || damaged): // a repaired version has the same ID
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
		m.problem = problem
		state.Problem = ""
		changed = true
		if err != nil {
			state.Problem = err.Error()
		}
	}
	m.state = state
	return state, changed
}

// problemOf returns the kind of a source's error, or nil. The full error may
// differ from poll to poll.
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

// Close stops following versions and closes the connections. After it, rows of
// a snapshot that are not in memory fail.
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

// Pin returns the active versions, without I/O or allocation.
func (s *Store) Pin() *Snapshot { return s.snapshot.Load() }

// publish makes a new snapshot of the rows in s.matrices.
func (s *Store) publish() {
	snapshot := &Snapshot{bindings: s.bindings, rows: make([]*Rows, len(s.bindings))}
	for i, b := range s.bindings {
		snapshot.rows[i] = s.matrices[b.name].rows
	}
	s.snapshot.Store(snapshot)
}

// A Snapshot holds one version of every matrix. It is immutable; a version's
// rows stay readable as long as the version exists.
type Snapshot struct {
	bindings []bound
	rows     []*Rows // by binding; nil without a version
}

// Of returns the rows of a matrix, or nil if it is not bound or has no version.
func (s *Snapshot) Of(name string) *Rows {
	at := slices.IndexFunc(s.bindings, func(b bound) bool { return b.name == name })
	if at < 0 {
		return nil
	}
	return s.rows[at]
}

// A Match is the result of [Snapshot.Match].
type Match struct {
	// Rows is nil if no matrix is bound to the field or it has no version.
	Rows *Rows
	// Named says that the binding has the field's full name, without a wildcard.
	Named bool
	// Resolved are the names from resolve; nil if it was not called.
	Resolved []string
}

// Match finds the first binding that matches the full name of a field and
// either the index expression in the request's path, unescaped and as spelled,
// or every index that it resolves to. "" means all indices. among limits the
// matrices by name; nil means all. resolve returns the indices that the
// expression resolves to, data streams by their own names, or none if that is
// unknown. It is called at most once, and not if the first binding for the
// field matches the expression as spelled. An error is that of resolve.
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
	// reloadEvery is how soon a changed file is noticed.
	reloadEvery = time.Second
	// checksumDigits of a file's checksum identify its version.
	checksumDigits = 16
)

// A Loader returns the matrix of a file, and again whenever it has changed. It
// is called when a [Store] opens and then once a second, never concurrently.
// written is when the matrix was made; zero means that the last one is still
// valid. A Loader returns an error as long as it persists; the error is
// reported, and the last matrix stays in use. It ends with ctx.
type Loader func(ctx context.Context) (m *simmatrix.Matrix, written time.Time, err error)

// InMemory returns a Loader of a matrix that never changes.
func InMemory(m *simmatrix.Matrix) Loader {
	now := time.Now()
	return func(context.Context) (*simmatrix.Matrix, time.Time, error) { return m, now, nil }
}

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
			v.row = m.Row
			if words {
				known := spelling.NewWords(m.Table().Terms, m.Table().DocFreqs)
				v.words.Store(known)
				if known == nil {
					v.noWords.Store(new(noDocFreqs))
				}
			}
			report(name, v, nil)
		default:
			report(name, nil, nil)
		}
	}
}
