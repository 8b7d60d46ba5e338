package esclient

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"github.com/akin-search/akin/esclient/mapping"
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

// A key is a question to the cluster. All questions have keys of one type, so
// that the compiler makes the cache once.
type key struct {
	// generation makes the key unreachable when its indices are forgotten.
	generation uint32
	Indices
	// field is a field or a pattern of fields; for the terms of a text, the
	// index that analyzes it; for a limit, the setting.
	field string
	// analyzer is as the caller names it, and text is what is analyzed, or what
	// else the question is about.
	analyzer, text string
}

// clone returns a key that does not keep the memory of the request that it
// came in.
func (k key) clone() key {
	k.Expression, k.Options = strings.Clone(k.Expression), strings.Clone(k.Options)
	k.field, k.analyzer, k.text = strings.Clone(k.field), strings.Clone(k.analyzer), strings.Clone(k.text)
	return k
}

// ofIndices returns the key of what is asked about the indices only.
func (k key) ofIndices() key { return key{generation: k.generation, Indices: k.Indices} }

// ofField returns the key of the field of an analysis.
func (k key) ofField() key {
	k.analyzer, k.text = "", ""
	return k
}

// ofText returns the key of the terms of a text in a field of s.
func (k key) ofText(s *mapping.Schema, analyzer string) key {
	k.field, k.analyzer = s.Targets[0].Index, analyzer
	return k
}

// String returns the key in one string.
func (k key) String() string {
	return strings.Join([]string{
		strconv.FormatUint(uint64(k.generation), 10), k.Expression, k.Options, k.field, k.analyzer, k.text,
	}, "\x00")
}

func (k key) bytes() int {
	return len(k.Expression) + len(k.Options) + len(k.field) + len(k.analyzer) + len(k.text)
}

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

// enter begins a load that counts for owners, and returns what ends it. It
// returns [ErrBusy] or [ErrClosed] if it may not begin. A load that another one
// waits for is inner: it takes no place of its own.
func (l *loader) enter(inner bool, owners []string) (leave func(), err error) {
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

// close ends the loads under way and waits for them.
func (l *loader) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.loads.Wait()
}

// flights load each key once at a time: callers of one key share a load.
type flights struct {
	*loader
	count *counters
	// inner says that the loads are part of others.
	inner bool
	group singleflight.Group
}

// A flight is a load under way. It gives its result once.
type flight <-chan singleflight.Result

// start starts the load of k, unless one is under way or ready has the answer
// by then. keep gets what comes of it.
//
// The load counts for the client of ctx and for the index expression; those
// that join it later do not count.
func start[V any](
	ctx context.Context, f *flights, k key,
	ready func() (V, bool, error), load func(context.Context) (V, error), keep func(V, error),
) flight {
	owners := []string{"index " + k.Expression}
	if f.client != nil {
		if client := f.client(ctx); client != "" {
			owners = append(owners, "client "+client)
		}
	}
	return f.group.DoChan(k.String(), func() (any, error) { //nolint:contextcheck // the load outlives the caller
		if v, ok, err := ready(); ok {
			return v, err
		}
		leave, err := f.enter(f.inner, owners)
		if err != nil {
			return nil, err
		}
		defer leave()
		ctx, cancel := f.begin()
		defer cancel()
		f.count.loads.Add(1)
		var v V
		err = f.guard.Do(asking, func() (err error) {
			v, err = load(ctx)
			return err
		})
		if err != nil && !telling(err) {
			f.count.failures.Add(1)
		}
		_ = f.guard.Do(asking, func() error { // those who wait have the answer all the same
			keep(v, err)
			return nil
		})
		return v, err
	})
}

// unknown is for loads whose answers are not remembered.
func unknown[V any]() (v V, ok bool, err error) { return v, false, nil }

// wait waits for a load. It returns early, with the context's error, when ctx
// ends; the load goes on.
func wait[V any](ctx context.Context, f flight) (V, error) {
	select {
	case r := <-f:
		v, _ := r.Val.(V)
		return v, r.Err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// counters count what became of the questions to some caches.
type counters struct {
	hits, misses, loads, failures atomic.Uint64
	caches                        []*otter.Cache[key, *kept]
}

// kept is what a [memo] holds for a key: a value or an error, for a time.
type kept struct {
	value any
	err   error
	time  time.Duration
}

// A memo remembers what loads gave, errors too, bounded in bytes.
type memo[V any] struct {
	flights
	cache *otter.Cache[key, *kept]
	ttl   time.Duration
}

// newMemo returns a memo of at most maxBytes. inner says that other loads wait
// for its loads.
func newMemo[V any](l *loader, count *counters, ttl time.Duration, inner bool, maxBytes uint64) *memo[V] {
	m := &memo[V]{ttl: ttl, cache: otter.Must(&otter.Options[key, *kept]{
		MaximumWeight:    maxBytes,
		Weigher:          func(k key, e *kept) uint32 { return weight(keptBytes + k.bytes() + sizeOf(e.value)) },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[key, *kept]) time.Duration { return e.Value.time }),
	})}
	m.loader, m.count, m.inner = l, count, inner
	count.caches = append(count.caches, m.cache)
	return m
}

// sizeOf returns about what a value takes besides a few words.
func sizeOf(value any) int {
	n := 0
	switch v := value.(type) {
	case interface{ Bytes() int }:
		n = v.Bytes()
	case []string:
		for _, s := range v {
			n += 16 + len(s)
		}
	}
	return n
}

const (
	// entryBytes is about what the cache itself spends on an entry, and keptBytes
	// what a [kept] takes with its [key].
	entryBytes, keptBytes = 160, 100
)

// weight returns the weight of an entry that itself takes n bytes.
func weight(n int) uint32 {
	const limit = 1 << 30
	return uint32(min(entryBytes+n, limit)) //nolint:gosec // within [0, 1<<30]
}

// get returns what is remembered of k; false is nothing.
func (m *memo[V]) get(k key) (v V, ok bool, err error) {
	e, ok := m.cache.GetIfPresent(k)
	if !ok {
		return v, false, nil
	}
	v, _ = e.value.(V)
	return v, true, e.err
}

// put remembers a value or an error.
func (m *memo[V]) put(k key, v V, err error) {
	m.cache.Set(k, &kept{value: v, err: err, time: keepTime(v, err, m.ttl)})
}

// putIfAbsent remembers v unless something is remembered, and returns what is.
func (m *memo[V]) putIfAbsent(k key, v V) V {
	e, _ := m.cache.SetIfAbsent(k, &kept{value: v, time: m.ttl})
	v, _ = e.value.(V)
	return v
}

// load returns what is remembered of k, or what load gives. k must not keep the
// memory of a request.
func (m *memo[V]) load(ctx context.Context, k key, load func(context.Context) (V, error)) (V, error) {
	return wait[V](ctx, start(ctx, &m.flights, k,
		func() (V, bool, error) { return m.get(k) }, load,
		func(v V, err error) { m.put(k, v, err) }))
}
