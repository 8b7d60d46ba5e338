// Package cache caches answers of the cluster, within a number of bytes. It
// loads what it lacks: each question once at a time, independent of waiting
// callers, and not too many at once.
package cache

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"go.opentelemetry.io/otel/trace"

	"github.com/akin-search/akin/internal/limits"
	"github.com/akin-search/akin/internal/recovery"
)

// Errors that say nothing about the cluster: too many loads are in flight, or
// the loader was closed.
var (
	ErrBusy   = errors.New("too many calls to the cluster under way")
	ErrClosed = errors.New("the cluster cache is closed")
)

// A Policy says how loads run and how long answers are cached.
type Policy struct {
	// Places limits loads in flight, Timeout each of them unless it is 0.
	Places  int
	Timeout time.Duration
	// Guard recovers panics of loads and counts them as What.
	Guard *recovery.Guard
	What  string
	// Client returns the client that a context belongs to, or ""; may be nil.
	Client func(context.Context) string
	// Telling reports whether an error is an answer, not a failure; nil: none is.
	Telling func(error) bool
	// Life returns how long to cache a load's answer when ttl was asked for; 0 or
	// less means not at all. nil uses ttl.
	Life func(answer any, err error, ttl time.Duration) time.Duration
}

// A Loader runs loads independent of the callers that wait for them.
type Loader struct {
	policy Policy
	life   context.Context //nolint:containedctx // ends with the loader
	stop   context.CancelFunc
	places *limits.Places

	mu     sync.Mutex
	closed bool
	loads  sync.WaitGroup
}

// NewLoader returns a loader. [Loader.Close] stops it.
func NewLoader(p Policy) *Loader {
	life, stop := context.WithCancel(context.Background())
	return &Loader{policy: p, life: life, stop: stop, places: limits.NewPlaces(p.Places)}
}

// Taken returns the number of places taken.
func (l *Loader) Taken() int { return l.places.Taken() }

// start runs a load that counts for the client of caller and for owner. Its
// context has the caller's trace and marks the loader: a load inside another
// takes no place. done is closed when it ends. The error says why it cannot
// start.
func (l *Loader) start(caller context.Context, owner string, load func(context.Context)) (done chan struct{}, err error) {
	var owners []string
	if owner != "" {
		owners = append(owners, owner)
	}
	if l.policy.Client != nil {
		if client := l.policy.Client(caller); client != "" {
			owners = append(owners, "client "+client)
		}
	}
	inner := caller.Value(l) != nil
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if !inner && !l.places.Take(owners...) {
		return nil, ErrBusy
	}
	done = make(chan struct{})
	l.loads.Go(func() {
		defer close(done)
		if !inner {
			defer l.places.Give(owners...)
		}
		ctx := context.WithValue(trace.ContextWithSpan(l.life, trace.SpanFromContext(caller)), l, true)
		if l.policy.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, l.policy.Timeout)
			defer cancel()
		}
		load(ctx) //nolint:contextcheck // A load lives as long as the loader, and not as its caller.
	})
	return done, nil
}

// Start runs a load like [Loader.Run], and does not wait for it.
// The load's error is lost.
func (l *Loader) Start(ctx context.Context, owner string, load func(context.Context) error) error {
	_, err := l.start(ctx, owner, func(ctx context.Context) {
		_ = l.policy.Guard.Do(l.policy.What, func() error { return load(ctx) })
	})
	return err
}

// Run runs a load that counts for owner, and waits for it. If ctx ends first it
// returns that error, and the load goes on.
func (l *Loader) Run(ctx context.Context, owner string, load func(context.Context) error) error {
	var failed error
	done, err := l.start(ctx, owner, func(ctx context.Context) {
		failed = l.policy.Guard.Do(l.policy.What, func() error { return load(ctx) })
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return failed
	}
}

// Close cancels the loads in flight and waits for them.
func (l *Loader) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.loads.Wait()
}

// Options configure a [Cache].
type Options[Q comparable] struct {
	// Bytes limits the size of all entries, approximately. Cost is the size of a
	// question and its answer; nil means 0.
	Bytes uint64
	Cost  func(q Q, answer any) int
	// Idle returns how long an answer lives after its last use, in place of its
	// ttl; nil uses the ttl.
	Idle func(answer any) time.Duration
	// Endless says that answers live until there is no room for them.
	Endless bool
	// Loader runs the loads; nil if there are none. Owner returns what a
	// question's load counts for, besides its client; may be nil.
	Loader *Loader
	Owner  func(Q) string
}

// A Cache caches answers to questions, errors too. It loads what it lacks, each
// question once at a time.
type Cache[Q comparable] struct {
	options Options[Q]
	kept    *otter.Cache[Q, any] // as packed by pack

	hits, misses, loads, failures atomic.Uint64

	mu      sync.Mutex
	flights map[Q]*Flight
}

// An entry is an answer and how long it is cached.
type entry struct {
	answer any
	err    error
	life   time.Duration
}

// pack returns an entry for otter: the bare answer if that says all, because
// there are many small ones.
func (c *Cache[Q]) pack(e entry) any {
	if e.err == nil && (c.options.Endless || c.options.Idle != nil) {
		return e.answer
	}
	return &e
}

func unpack(kept any) entry {
	if e, ok := kept.(*entry); ok {
		return *e
	}
	return entry{answer: kept}
}

// entryBytes is about the size of an entry without question and answer; 160 of
// them are otter's.
const entryBytes = 208

// New returns a cache. [Cache.Close] stops it.
func New[Q comparable](o Options[Q]) *Cache[Q] {
	life := otter.ExpiryWritingFunc(func(e otter.Entry[Q, any]) time.Duration { return unpack(e.Value).life })
	switch {
	case o.Endless:
		life = nil
	case o.Idle != nil:
		life = otter.ExpiryAccessingFunc(func(e otter.Entry[Q, any]) time.Duration { return max(o.Idle(unpack(e.Value).answer), 1) })
	}
	return &Cache[Q]{options: o, flights: map[Q]*Flight{}, kept: otter.Must(&otter.Options[Q, any]{
		MaximumWeight: max(o.Bytes, 1), // 0 would mean no bound
		Weigher: func(q Q, kept any) uint32 {
			const limit = 1 << 30
			n := entryBytes
			if o.Cost != nil {
				n += o.Cost(q, unpack(kept).answer)
			}
			return uint32(min(n, limit))
		},
		ExpiryCalculator: life,
	})}
}

// Close drops everything and stops the cache's goroutine, but not its loads.
// The cache remains usable.
func (c *Cache[Q]) Close() {
	c.kept.StopAllGoroutines()
	c.kept.InvalidateAll()
}

// Bound changes [Options.Bytes], which must have been set.
func (c *Cache[Q]) Bound(bytes uint64) { c.kept.SetMaximum(max(bytes, 1)) }

// Tally counts a question as a hit or a miss.
func (c *Cache[Q]) Tally(warm bool) {
	if warm {
		c.hits.Add(1)
	} else {
		c.misses.Add(1)
	}
}

// Stats are counts since the cache was made: questions tallied as hits and
// misses, Loads started and failed, and about the entries and their size.
type Stats struct{ Hits, Misses, Loads, Failures, Entries, Bytes uint64 }

// Stats returns the counts so far. It brings the size up to date, which the
// cache does lazily.
func (c *Cache[Q]) Stats() Stats {
	c.kept.CleanUp()
	return Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Loads: c.loads.Load(), Failures: c.failures.Load(),
		Entries: uint64(max(c.kept.EstimatedSize(), 0)), Bytes: c.kept.WeightedSize(),
	}
}

// Peek returns what is cached for q, or false.
func Peek[V any, Q comparable](c *Cache[Q], q Q) (v V, known bool, err error) {
	kept, known := c.kept.GetIfPresent(q)
	e := unpack(kept)
	v, _ = e.answer.(V)
	return v, known, e.err
}

// Put caches an answer for ttl, above 0. q must not hold a request's memory.
func (c *Cache[Q]) Put(q Q, answer any, err error, ttl time.Duration) {
	c.kept.Set(q, c.pack(entry{answer, err, ttl}))
}

// PutIfAbsent caches v for ttl unless there is an entry, and returns the entry.
func PutIfAbsent[V any, Q comparable](c *Cache[Q], q Q, v V, ttl time.Duration) V {
	kept, _ := c.kept.SetIfAbsent(q, c.pack(entry{v, nil, ttl}))
	v, _ = unpack(kept).answer.(V)
	return v
}

// Get returns what is cached for q, or loads it and caches it for ttl, or for
// as long as [Policy.Life] says; 0 does not cache it. Callers with the same
// question share a load, which goes on when a caller's context ends. q must not
// refer to memory of a request.
func Get[V any, Q comparable](
	ctx context.Context, c *Cache[Q], q Q, ttl time.Duration, load func(context.Context) (V, error),
) (V, error) {
	return Wait[V](ctx, Start(ctx, c, q, ttl, load))
}

// GetAll returns what is cached for questions. It loads the others in the
// caller's goroutine and context, and waits for those that another caller is
// loading. Questions that load leaves out have no answer. The error is that of
// load or of one of the loads it waited for.
func GetAll[V any, Q comparable](
	ctx context.Context, c *Cache[Q], questions []Q, load func(ctx context.Context, missing []Q) (map[Q]V, error),
) (map[Q]V, error) {
	answers := make(map[Q]V, len(questions))
	flights, own := map[Q]*Flight{}, make(map[Q]*Flight, len(questions))
	var missing []Q
	landed := make(chan struct{})
	c.mu.Lock()
	for _, q := range questions {
		if kept, known := c.kept.GetIfPresent(q); known {
			answers[q], _ = unpack(kept).answer.(V)
		} else if f, ok := c.flights[q]; ok {
			flights[q] = f
		} else {
			f := &Flight{done: landed}
			c.flights[q], own[q] = f, f
			missing = append(missing, q)
		}
	}
	c.mu.Unlock()
	var err error
	if len(missing) > 0 {
		var loaded map[Q]V
		p := &c.options.Loader.policy
		err = p.Guard.Do(p.What, func() (err error) {
			loaded, err = load(ctx, missing)
			return err
		})
		for q, v := range loaded {
			answers[q] = v
			c.kept.Set(q, c.pack(entry{answer: v}))
		}
		c.mu.Lock()
		for q, f := range own {
			if v, ok := loaded[q]; ok {
				f.answer = v
			}
			f.err = err
			delete(c.flights, q)
		}
		c.mu.Unlock()
		close(landed)
	}
	for q, f := range flights {
		if own[q] != nil { // a repeated question
			continue
		}
		v, errOther := Wait[V](ctx, f)
		err = cmp.Or(err, errOther)
		if f.answer != nil && errOther == nil {
			answers[q] = v
		}
	}
	return answers, err
}

// A Flight is an answer in flight.
type Flight struct {
	entry
	done chan struct{} // closed when the entry is there; nil if it was there from the start
}

// Start is the first half of [Get], [Wait] the second. The load counts for the
// client of ctx and the owner of q; those that join it later do not count.
func Start[V any, Q comparable](
	caller context.Context, c *Cache[Q], q Q, ttl time.Duration, load func(context.Context) (V, error),
) *Flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[q]; ok {
		return f
	}
	f := &Flight{entry: entry{life: ttl}}
	if kept, known := c.kept.GetIfPresent(q); known {
		f.entry = unpack(kept)
		return f
	}
	l, owner := c.options.Loader, ""
	if c.options.Owner != nil {
		owner = c.options.Owner(q)
	}
	done, err := l.start(caller, owner, func(ctx context.Context) {
		var v V
		f.err = l.policy.Guard.Do(l.policy.What, func() (err error) {
			v, err = load(ctx)
			return err
		})
		f.answer = v
		if f.err != nil && (l.policy.Telling == nil || !l.policy.Telling(f.err)) {
			c.failures.Add(1)
		}
		if l.policy.Life != nil {
			f.life = l.policy.Life(v, f.err, ttl)
		}
		if f.life > 0 {
			c.kept.Set(q, c.pack(f.entry))
		}
		c.mu.Lock()
		delete(c.flights, q)
		c.mu.Unlock()
	})
	if err != nil {
		f.err = err
		return f
	}
	f.done, c.flights[q] = done, f
	c.loads.Add(1)
	return f
}

// Wait waits for an answer. If ctx ends first the load still goes on.
func Wait[V any](ctx context.Context, f *Flight) (v V, err error) {
	if f.done != nil {
		select {
		case <-f.done:
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
	v, _ = f.answer.(V)
	return v, f.err
}
