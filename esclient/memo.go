package esclient

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/akin-search/akin/internal/budget"
	"github.com/akin-search/akin/internal/recovery"
)

// Errors of [Cached] that say nothing of the cluster.
var (
	// ErrBusy says that as many loads are under way as may be.
	ErrBusy = errors.New("too many calls to the cluster under way")
	// ErrClosed says that the cache was closed.
	ErrClosed = errors.New("the cluster cache is closed")
)

// A loader runs the loads of a [Cached], apart from the callers that wait for
// them, and ends them.
type loader struct {
	// begin returns the context of one load.
	begin func() (context.Context, context.CancelFunc)
	stop  context.CancelFunc
	guard *recovery.Guard
	// client names the client that a context is of; nil where that does not count.
	client func(context.Context) string

	places *budget.Places

	mu     sync.Mutex
	closed bool
	loads  sync.WaitGroup
}

// newLoader returns a loader that runs at most limit loads at once, each for at
// most timeout. client may be nil.
func newLoader(limit int, timeout time.Duration, guard *recovery.Guard, client func(context.Context) string) *loader {
	life, stop := context.WithCancel(context.Background())
	return &loader{
		begin:  func() (context.Context, context.CancelFunc) { return context.WithTimeout(life, timeout) },
		stop:   stop,
		guard:  guard,
		client: client,
		places: budget.NewPlaces(limit),
	}
}

// ownersOf returns whom the load of a key counts for that a caller starts: the
// client and the index expression. Those that join it later do not count.
func (l *loader) ownersOf(ctx context.Context, key any) (owners []string) {
	if k, ok := key.(interface{ index() string }); ok {
		owners = append(owners, "index "+k.index())
	}
	if l.client == nil {
		return owners
	}
	if client := l.client(ctx); client != "" {
		owners = append(owners, "client "+client)
	}
	return owners
}

// run starts load. It returns [ErrBusy] or [ErrClosed] if it does not. A load
// that another one waits for is inner: it takes no place of its own.
func (l *loader) run(inner bool, owners []string, load func(context.Context)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if !inner && !l.places.Take(owners...) {
		return ErrBusy
	}
	l.loads.Go(func() {
		if !inner {
			defer l.places.Give(owners...)
		}
		ctx, cancel := l.begin()
		defer cancel()
		load(ctx)
	})
	return nil
}

// close ends the loads under way and waits for them.
func (l *loader) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.loads.Wait()
}

// counters count what became of the questions to a cache.
type counters struct{ hits, misses, loads, failures atomic.Uint64 }

// flights load each key once at a time: callers of one key share a load.
type flights[K comparable, V any] struct {
	loader *loader
	count  *counters
	// inner says that the loads are part of others.
	inner bool

	mu    sync.Mutex
	under map[K]*flight[V]
}

// A flight is a load under way. value and err are set when done is closed.
type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// do waits for the load of k, which it starts unless one is under way or ready
// has the answer by now, and calls keep with what comes of it. It returns
// early, with the context's error, when ctx ends; the load goes on.
func (f *flights[K, V]) do(
	ctx context.Context, k K, ready func() (V, bool, error),
	load func(context.Context) (V, error), keep func(V, error),
) (V, error) {
	l, v, err := f.join(f.loader.ownersOf(ctx, k), k, ready, load, keep) //nolint:contextcheck // the load outlives the caller
	if l == nil {
		return v, err
	}
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// start starts the load of k unless one is under way. It returns nil where it
// cannot.
func (f *flights[K, V]) start(ctx context.Context, k K, load func(context.Context) (V, error)) *flight[V] {
	never := func() (v V, ok bool, err error) { return v, false, nil }
	l, _, err := f.join(f.loader.ownersOf(ctx, k), k, never, load, func(V, error) {}) //nolint:contextcheck // the load outlives the caller
	if err != nil {
		return nil
	}
	return l
}

// join returns the flight of k, or what ready has.
func (f *flights[K, V]) join(
	owners []string, k K, ready func() (V, bool, error), load func(context.Context) (V, error), keep func(V, error),
) (*flight[V], V, error) {
	var none V
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.under[k]; l != nil {
		return l, none, nil
	}
	// A load may have ended since the caller looked.
	if v, ok, err := ready(); ok {
		return nil, v, err
	}
	l := &flight[V]{done: make(chan struct{})}
	err := f.loader.run(f.inner, owners, func(ctx context.Context) {
		l.err = f.loader.guard.Do(asking, func() (err error) {
			l.value, err = load(ctx)
			return err
		})
		if l.err != nil && !telling(l.err) {
			f.count.failures.Add(1)
		}
		_ = f.loader.guard.Do(asking, func() error { // those who wait have the answer all the same
			keep(l.value, l.err)
			return nil
		})
		f.mu.Lock()
		delete(f.under, k)
		f.mu.Unlock()
		close(l.done)
	})
	if err != nil {
		return nil, none, err
	}
	f.count.loads.Add(1)
	if f.under == nil {
		f.under = map[K]*flight[V]{}
	}
	f.under[k] = l
	return l, none, nil
}

// kept is what a [memo] holds for a key: a value or an error, for a time.
type kept[V any] struct {
	value  V
	err    error
	expiry time.Duration
}

// A memo remembers what loads gave, errors too, bounded in bytes.
type memo[K comparable, V any] struct {
	flights[K, V]
	cache *otter.Cache[K, kept[V]]
	// expiry returns how long to remember what a load gave.
	expiry func(V, error) time.Duration
}

// newMemo returns a memo of at most maxBytes, of which an entry takes weigh
// bytes and some of its own. inner says that other loads wait for its loads.
func newMemo[K comparable, V any](
	l *loader, count *counters, inner bool,
	maxBytes uint64, weigh func(K, V) int, expiry func(V, error) time.Duration,
) *memo[K, V] {
	return &memo[K, V]{
		flights: flights[K, V]{loader: l, count: count, inner: inner},
		expiry:  expiry,
		cache: otter.Must(&otter.Options[K, kept[V]]{
			MaximumWeight: maxBytes,
			Weigher:       func(k K, v kept[V]) uint32 { return weight(weigh(k, v.value)) },
			ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[K, kept[V]]) time.Duration {
				return e.Value.expiry
			}),
		}),
	}
}

// weight returns the weight of an entry that itself takes n bytes.
func weight(n int) uint32 {
	const limit = 1 << 30
	return uint32(min(entryBytes+n, limit)) //nolint:gosec // within [0, 1<<30]
}

// entryBytes is about what the cache itself spends on an entry.
const entryBytes = 160

// get returns what is remembered of k; false is nothing.
func (m *memo[K, V]) get(k K) (V, bool, error) {
	e, ok := m.cache.GetIfPresent(k)
	return e.value, ok, e.err
}

// load returns what is remembered of k, or what load gives. k must not hold on
// to the memory of a request.
func (m *memo[K, V]) load(ctx context.Context, k K, load func(context.Context) (V, error)) (V, error) {
	return m.do(ctx, k,
		func() (V, bool, error) { return m.get(k) }, load,
		func(v V, err error) {
			m.cache.Set(k, kept[V]{value: v, err: err, expiry: m.expiry(v, err)})
		})
}

// close drops everything and ends the cache's own goroutines.
func (m *memo[K, V]) close() {
	m.cache.StopAllGoroutines()
	m.cache.InvalidateAll()
}
