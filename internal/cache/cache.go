// Package cache remembers the answers of the cluster, bounded in bytes, and
// loads what it does not know: each thing once at a time, apart from the
// callers that wait for it, and not too many at once.
package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/singleflight"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
)

// Errors that say nothing of the cluster: as many loads are under way as may
// be, or the loader was closed.
var (
	ErrBusy   = errors.New("too many calls to the cluster under way")
	ErrClosed = errors.New("the cluster cache is closed")
)

// A Key is a question: String has all of it, Owner names what its loads count
// for, and Bytes, where it has that method, is about what it takes.
type Key interface {
	comparable
	String() string
	Owner() string
}

// A Policy says how loads are run and how long answers are remembered.
type Policy struct {
	// Places is the number of loads under way at once, and Timeout bounds each.
	Places  int
	Timeout time.Duration
	// Guard recovers from panics of loads, which it counts as those of What.
	Guard *recovery.Guard
	What  string
	// Client names the client that a context is of, "" for none; nil names none.
	Client func(context.Context) string
	// Telling reports whether an error is knowledge, not a failure.
	Telling func(error) bool
	// Time returns how long to remember a value or an error, at most ttl.
	Time func(v any, err error, ttl time.Duration) time.Duration
}

// A Loader runs loads, apart from the callers that wait for them, and ends
// them.
type Loader struct {
	policy Policy
	// begin returns the context of one load, which is a part of its caller's trace.
	begin  func(caller context.Context) (context.Context, context.CancelFunc)
	stop   context.CancelFunc
	places *limits.Places

	mu     sync.Mutex
	closed bool
	loads  sync.WaitGroup
}

// NewLoader returns a loader. [Loader.Close] ends it.
func NewLoader(p Policy) *Loader {
	life, stop := context.WithCancel(context.Background())
	return &Loader{
		policy: p,
		begin: func(caller context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(trace.ContextWithSpan(life, trace.SpanFromContext(caller)), p.Timeout)
		},
		stop:   stop,
		places: limits.NewPlaces(p.Places),
	}
}

// Wait waits for the loads under way.
func (l *Loader) Wait() { l.loads.Wait() }

// Taken returns the number of places taken.
func (l *Loader) Taken() int { return l.places.Taken() }

// enter begins a load that counts for owners and returns what ends it, or why
// it may not begin. A load that another one waits for is inner: it takes no
// place.
func (l *Loader) enter(inner bool, owners []string) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if !inner && !l.places.Take(owners...) {
		return nil, ErrBusy
	}
	l.loads.Add(1)
	return func() {
		if !inner {
			l.places.Give(owners...)
		}
		l.loads.Done()
	}, nil
}

// owners returns whom a load counts for: the client of a context, and owner.
func (l *Loader) owners(ctx context.Context, owner string) []string {
	owners := []string{owner}
	if l.policy.Client != nil {
		if client := l.policy.Client(ctx); client != "" {
			owners = append(owners, "client "+client)
		}
	}
	return owners
}

// Run runs a load that counts for owner, and waits for it. When ctx ends it
// returns the context's error, and the load goes on.
func (l *Loader) Run(ctx context.Context, owner string, load func(context.Context) error) error {
	leave, err := l.enter(false, l.owners(ctx, owner))
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	caller := ctx
	go func() {
		defer leave()
		ctx, cancel := l.begin(caller)
		defer cancel()
		done <- l.policy.Guard.Do(l.policy.What, func() error { return load(ctx) })
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-done:
		return err
	}
}

// Close ends the loads under way and waits for them.
func (l *Loader) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.loads.Wait()
}

// Flights load each key once at a time: callers of one key share a load.
type Flights[K Key] struct {
	*Loader
	Count *Counters[K]
	// Inner says that the loads are part of others.
	Inner bool
	group singleflight.Group
}

// A Flight is a load under way. It gives its result once.
type Flight <-chan singleflight.Result

// Start starts the load of k, unless one is under way or ready has the answer
// by then; keep gets what comes of it. Both may be nil. The load counts for the
// client of ctx and for the owner of k; those that join it later do not count.
func Start[K Key, V any](
	ctx context.Context, f *Flights[K], k K,
	ready func() (V, bool, error), load func(context.Context) (V, error), keep func(V, error),
) Flight {
	owners := f.owners(ctx, k.Owner())
	caller := ctx
	return f.group.DoChan(k.String(), func() (any, error) {
		if ready != nil {
			if v, ok, err := ready(); ok {
				return v, err
			}
		}
		leave, err := f.enter(f.Inner, owners)
		if err != nil {
			return nil, err
		}
		defer leave()
		ctx, cancel := f.begin(caller)
		defer cancel()
		f.Count.loads.Add(1)
		var v V
		err = f.policy.Guard.Do(f.policy.What, func() (err error) {
			v, err = load(ctx)
			return err
		})
		if err != nil && !f.policy.Telling(err) {
			f.Count.failures.Add(1)
		}
		if keep != nil { // those who wait have the answer though it panics
			_ = f.policy.Guard.Do(f.policy.What, func() error { keep(v, err); return nil })
		}
		return v, err
	})
}

// Wait waits for a load. When ctx ends it returns the context's error, and the
// load goes on.
func Wait[V any](ctx context.Context, f Flight) (v V, err error) {
	select {
	case r := <-f:
		v, _ = r.Val.(V)
		return v, r.Err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// Counters count what became of the questions to some memos.
type Counters[K Key] struct {
	hits, misses, loads, failures atomic.Uint64
	caches                        []*otter.Cache[K, *kept]
}

// Tally counts a question as one that memory answered or not.
func (c *Counters[K]) Tally(warm bool) {
	if warm {
		c.hits.Add(1)
	} else {
		c.misses.Add(1)
	}
}

// Stats tell of some memos since they were made: the questions that memory
// answered (Hits) or not, the Loads started, those that failed, and about the
// bytes in use.
type Stats struct{ Hits, Misses, Loads, Failures, Bytes uint64 }

// Stats returns the counts so far.
func (c *Counters[K]) Stats() Stats {
	s := Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Loads: c.loads.Load(), Failures: c.failures.Load()}
	for _, cache := range c.caches {
		s.Bytes += cache.WeightedSize()
	}
	return s
}

// CleanUp does what the memos have put off, such as adding up their sizes.
func (c *Counters[K]) CleanUp() {
	for _, cache := range c.caches {
		cache.CleanUp()
	}
}

// Close drops everything and ends the goroutines of the memos.
func (c *Counters[K]) Close() {
	for _, cache := range c.caches {
		cache.StopAllGoroutines()
		cache.InvalidateAll()
	}
}

// kept is what a [Memo] has for a key: a value or an error, for a time.
type kept struct {
	value any
	err   error
	time  time.Duration
}

// A Memo remembers what loads gave, errors too, bounded in bytes.
type Memo[K Key, V any] struct {
	Flights[K]
	cache *otter.Cache[K, *kept]
	ttl   time.Duration
}

// NewMemo returns a memo of at most maxBytes. inner says that other loads wait
// for its loads.
func NewMemo[K Key, V any](l *Loader, count *Counters[K], ttl time.Duration, inner bool, maxBytes uint64) *Memo[K, V] {
	m := &Memo[K, V]{ttl: ttl, cache: otter.Must(&otter.Options[K, *kept]{
		MaximumWeight:    maxBytes,
		Weigher:          func(k K, e *kept) uint32 { return Weight(keptBytes + SizeOf(k) + SizeOf(e.value)) },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[K, *kept]) time.Duration { return e.Value.time }),
	})}
	m.Loader, m.Count, m.Inner = l, count, inner
	count.caches = append(count.caches, m.cache)
	return m
}

// SizeOf returns about what a value takes besides a few words.
func SizeOf(value any) (n int) {
	switch v := value.(type) {
	case interface{ Bytes() int }:
		return v.Bytes()
	case []string:
		for _, s := range v {
			n += 16 + len(s)
		}
	}
	return n
}

// entryBytes is about what the cache itself spends on an entry, and keptBytes
// what a [kept] takes with its key.
const entryBytes, keptBytes = 160, 150

// Weight returns the weight of an entry that itself takes n bytes.
func Weight(n int) uint32 {
	const limit = 1 << 30
	return uint32(min(entryBytes+n, limit)) //nolint:gosec // within [0, 1<<30]
}

// Get returns what is remembered of k; false is nothing.
func (m *Memo[K, V]) Get(k K) (v V, ok bool, err error) {
	e, ok := m.cache.GetIfPresent(k)
	if !ok {
		return v, false, nil
	}
	v, _ = e.value.(V)
	return v, true, e.err
}

// Put remembers a value or an error.
func (m *Memo[K, V]) Put(k K, v V, err error) {
	m.cache.Set(k, &kept{value: v, err: err, time: m.policy.Time(v, err, m.ttl)})
}

// PutIfAbsent remembers v unless something is remembered, and returns what is.
func (m *Memo[K, V]) PutIfAbsent(k K, v V) V {
	e, _ := m.cache.SetIfAbsent(k, &kept{value: v, time: m.ttl})
	v, _ = e.value.(V)
	return v
}

// Load returns what is remembered of k, or what load gives. k must not keep the
// memory of a request.
func (m *Memo[K, V]) Load(ctx context.Context, k K, load func(context.Context) (V, error)) (V, error) {
	return Wait[V](ctx, Start(ctx, &m.Flights, k,
		func() (V, bool, error) { return m.Get(k) }, load,
		func(v V, err error) { m.Put(k, v, err) }))
}
