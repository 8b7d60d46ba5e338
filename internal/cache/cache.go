// Package cache remembers the answers of the cluster, bounded in bytes, and
// loads what it does not know: each thing once at a time, apart from the
// callers that wait for it, and not too many at once.
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

// Errors that say nothing of the cluster: as many loads are under way as may
// be, or the loader was closed.
var (
	ErrBusy   = errors.New("too many calls to the cluster under way")
	ErrClosed = errors.New("the cluster cache is closed")
)

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
	// Telling reports whether an error is knowledge, not a failure; nil: none is.
	Telling func(error) bool
	// Life returns how long to remember what a load gave where ttl was asked for;
	// 0 or less is not at all. nil is ttl.
	Life func(answer any, err error, ttl time.Duration) time.Duration
}

// A Loader runs loads, apart from the callers that wait for them, and ends
// them.
type Loader struct {
	policy Policy
	life   context.Context //nolint:containedctx // ends with the loader
	stop   context.CancelFunc
	places *limits.Places

	mu     sync.Mutex
	closed bool
	loads  sync.WaitGroup
}

// NewLoader returns a loader. [Loader.Close] ends it.
func NewLoader(p Policy) *Loader {
	life, stop := context.WithCancel(context.Background())
	return &Loader{policy: p, life: life, stop: stop, places: limits.NewPlaces(p.Places)}
}

// Taken returns the number of places taken.
func (l *Loader) Taken() int { return l.places.Taken() }

// start runs a load for the client of caller and for owner, with a context that
// is a part of the caller's trace and bears the mark of the loader. done is
// closed at its end. The error says why it may not begin. A load that another
// one waits for takes no place.
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
		ctx, cancel := context.WithTimeout(ctx, l.policy.Timeout)
		defer cancel()
		load(ctx) //nolint:contextcheck // A load lives as long as the loader, and not as its caller.
	})
	return done, nil
}

// Run runs a load that counts for owner, and waits for it. When ctx ends it
// returns the context's error, and the load goes on.
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

// Close ends the loads under way and waits for them.
func (l *Loader) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.loads.Wait()
}

// Options say what a [Cache] keeps.
type Options[Q comparable] struct {
	// Bytes bounds about what all entries take: Cost, nil for nothing, is about
	// what a question and its answer do by themselves.
	Bytes uint64
	Cost  func(q Q, answer any) int
	// Idle returns how long an answer lives after its last use, whatever it was
	// given when it was written; nil says that it lives as long as that.
	Idle func(answer any) time.Duration
	// Endless says that answers live until there is no room for them.
	Endless bool
	// Loader runs the loads, nil where there are none. Owner names what the load
	// of a question counts for besides its client; nil names none.
	Loader *Loader
	Owner  func(Q) string
}

// A Cache remembers what questions were answered, errors too. What it does not
// know it loads, each question once at a time.
type Cache[Q comparable] struct {
	options Options[Q]
	kept    *otter.Cache[Q, any] // as pack has it

	hits, misses, loads, failures atomic.Uint64

	mu      sync.Mutex
	flights map[Q]*Flight
}

// An entry is an answer, and how long it is remembered from when it is written.
type entry struct {
	answer any
	err    error
	life   time.Duration
}

// pack returns an entry as otter keeps it: the answer alone where that is all
// there is to it, since many small ones are looked at.
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

// entryBytes is about what an entry takes without its question and its answer:
// otter spends 160 of them.
const entryBytes = 208

// New returns a cache. [Cache.Close] ends it.
func New[Q comparable](o Options[Q]) *Cache[Q] {
	life := otter.ExpiryWritingFunc(func(e otter.Entry[Q, any]) time.Duration { return unpack(e.Value).life })
	switch {
	case o.Endless:
		life = nil
	case o.Idle != nil:
		life = otter.ExpiryAccessingFunc(func(e otter.Entry[Q, any]) time.Duration { return max(o.Idle(unpack(e.Value).answer), 1) })
	}
	return &Cache[Q]{options: o, flights: map[Q]*Flight{}, kept: otter.Must(&otter.Options[Q, any]{
		MaximumWeight: max(o.Bytes, 1), // it takes none for no bound
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

// Close drops everything and ends the goroutine of the cache, not its loads.
// Whoever still has the cache can go on with it.
func (c *Cache[Q]) Close() {
	c.kept.StopAllGoroutines()
	c.kept.InvalidateAll()
}

// Bound changes [Options.Bytes], which has to be set.
func (c *Cache[Q]) Bound(bytes uint64) { c.kept.SetMaximum(max(bytes, 1)) }

// Tally counts a question as one that memory answered or not.
func (c *Cache[Q]) Tally(warm bool) {
	if warm {
		c.hits.Add(1)
	} else {
		c.misses.Add(1)
	}
}

// Stats tell of a cache since it was made: the questions that memory answered
// (Hits) or not, as they were tallied, the Loads started, those that failed,
// and about the Entries and the Bytes in use.
type Stats struct{ Hits, Misses, Loads, Failures, Entries, Bytes uint64 }

// Stats returns the counts so far. The size is added up before, which the cache
// puts off otherwise.
func (c *Cache[Q]) Stats() Stats {
	c.kept.CleanUp()
	return Stats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Loads: c.loads.Load(), Failures: c.failures.Load(),
		Entries: uint64(max(c.kept.EstimatedSize(), 0)), Bytes: c.kept.WeightedSize(),
	}
}

// Peek returns what is remembered of q; false is nothing.
func Peek[V any, Q comparable](c *Cache[Q], q Q) (v V, known bool, err error) {
	kept, known := c.kept.GetIfPresent(q)
	e := unpack(kept)
	v, _ = e.answer.(V)
	return v, known, e.err
}

// Put remembers an answer for ttl, above 0. q must not hold on to the memory
// of a request.
func (c *Cache[Q]) Put(q Q, answer any, err error, ttl time.Duration) {
	c.kept.Set(q, c.pack(entry{answer, err, ttl}))
}

// PutIfAbsent remembers v for ttl unless something is remembered, and returns
// what is.
func PutIfAbsent[V any, Q comparable](c *Cache[Q], q Q, v V, ttl time.Duration) V {
	kept, _ := c.kept.SetIfAbsent(q, c.pack(entry{v, nil, ttl}))
	v, _ = unpack(kept).answer.(V)
	return v
}

// Get returns what is remembered of q, or what load gives, which is remembered
// for ttl, or for as long as [Policy.Life] says; at 0 it is not. Callers with
// the same question share a load, which goes on when a caller's context ends.
// q must not hold on to the memory of a request.
func Get[V any, Q comparable](
	ctx context.Context, c *Cache[Q], q Q, ttl time.Duration, load func(context.Context) (V, error),
) (V, error) {
	return Wait[V](ctx, Start(ctx, c, q, ttl, load))
}

// GetAll returns what is remembered of questions, and what load gives for the
// others, in the caller's goroutine and with its context: for all but those
// that another caller is loading, for which it waits. There is nothing for a
// question that load leaves out. The error is that of load, or of one of the
// loads that it waited for.
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
		if own[q] != nil { // the same question twice
			continue
		}
		v, errOther := Wait[V](ctx, f)
		if err = cmp.Or(err, errOther); f.answer != nil && errOther == nil {
			answers[q] = v
		}
	}
	return answers, err
}

// A Flight is an answer to come.
type Flight struct {
	entry
	done chan struct{} // closed when the entry is there; nil where it is from the start
}

// Start is the beginning of [Get], and [Wait] its end. The load counts for the
// client of ctx and for the owner of q; those that join it later do not count.
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

// Wait waits for an answer. When ctx ends it returns the context's error, and
// the load goes on.
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
