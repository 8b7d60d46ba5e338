package searches

import (
	"context"
	"hash/maphash"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/akin-search/akin/internal/recovery"
	"github.com/akin-search/akin/simmatrix/store"
)

const (
	// maxPlaces is how many searches are kept in memory: in at most 35 MB if their
	// texts are as long as they may be, and in 55 MB while they are stored.
	maxPlaces = 15_000
	// redisEvery and fileEvery are the pauses between two times that searches are
	// stored, storeTimeout is the limit of each.
	redisEvery   = 5 * time.Second
	fileEvery    = 30 * time.Second
	storeTimeout = 10 * time.Second
	// learnEvery is how often akin asks Redis which searches are kept.
	learnEvery = time.Minute
)

// Options say where searches are kept, and for how long.
type Options struct {
	// Keep is for how many days, today among them.
	Keep int
	// File, unless it is "", keeps them for the next start; one akin uses it at a
	// time. Otherwise Redis shares them with other akins, unless its URL is "".
	File  string
	Redis store.Redis
	// Now is the clock, nil for the system's.
	Now func() time.Time
	// Guard recovers panics. Log gets a line when storing begins to fail.
	Guard *recovery.Guard
	Log   *slog.Logger
}

func (o *Options) today() int {
	if o.Now == nil {
		return dayOf(time.Now())
	}
	return dayOf(o.Now())
}

// Read returns what an akin with these options has stored, as
// [Collector.List] does, whether it runs or not.
func Read(ctx context.Context, o Options, index string, limit int) ([]Search, error) {
	switch {
	case o.File != "":
		s, err := readFile(&o)
		return listed(s.each(), index, limit), err
	case o.Redis.URL != "":
		r, err := openRedis(&o)
		if err != nil {
			return nil, err
		}
		defer func() { _ = r.client.Close() }() // nothing was written
		s := newSketch(maxPlaces)
		err = r.read(ctx, s.add)
		return listed(s.each(), index, limit), err
	}
	return []Search{}, nil
}

// A Collector counts searches. Its methods may be called concurrently.
type Collector struct {
	o        Options
	redis    *shared // nil for none
	failures atomic.Uint64
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex
	sketch *sketch // with Redis, what that has not got yet
	today  int
	// kept are the searches in Redis.
	kept map[uint64]bool
	seed maphash.Seed

	storing sync.Mutex // held for those below
	learned time.Time  // when it last asked Redis
	broken  bool       // storing has failed
	foreign bool       // the file is none of this version: it is left alone
}

// Open returns a collector, or the error of a URL of Redis. It stores in the
// background until it is closed, whatever becomes of ctx.
func Open(ctx context.Context, o Options) (*Collector, error) {
	c := &Collector{o: o, sketch: newSketch(maxPlaces), today: o.today(), kept: map[uint64]bool{}, seed: maphash.MakeSeed()}
	every := redisEvery
	switch {
	case o.File != "":
		every = fileEvery
		var err error
		c.sketch, err = readFile(&c.o)
		c.foreign = err != nil
		c.told(err)
	case o.Redis.URL != "":
		var err error
		if c.redis, err = openRedis(&c.o); err != nil {
			return nil, err
		}
	}
	lasting := context.WithoutCancel(ctx)
	ctx, c.stop = context.WithCancel(lasting)
	c.running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			c.save(lasting)
			select {
			case <-tick.C:
			case <-ctx.Done():
				c.save(lasting)
				return
			}
		}
	})
	return c, nil
}

// Close stores what is not stored yet, and ends.
func (c *Collector) Close() {
	c.stop()
	c.running.Wait()
	if c.redis != nil {
		_ = c.redis.client.Close() // everything was sent
	}
}

// Failures returns how often searches could not be stored.
func (c *Collector) Failures() uint64 { return c.failures.Load() }

// Add counts a search for a text in fields of an index expression, and waits
// for nothing. Of searches that found enough it counts those whose text is kept
// already.
func (c *Collector) Add(index, fields, text string, found Found) {
	k := key{index, fields, Text(text)}
	if k.text == "" || max(len(index), len(fields)) > maxBytes || strings.ContainsFunc(index+fields, unicode.IsControl) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if day := c.o.today(); day != c.today {
		c.today = day
		c.sketch.forget(day - c.o.Keep + 1)
	}
	if found != Enough || c.sketch.at[k] != nil || c.kept[c.hash(k)] {
		c.sketch.add(k, c.today, found, 1)
	}
}

func (c *Collector) hash(k key) uint64 { return maphash.Comparable(c.seed, k) }

// Drop forgets everything that this akin has in memory and in its file.
func (c *Collector) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sketch = newSketch(maxPlaces)
}

// List returns the searches of an index expression, in which * is a wildcard
// and which is "" for all, at most limit, 0 for all. Those that most often
// found nothing, few hits or related words alone come first.
func (c *Collector) List(ctx context.Context, index string, limit int) ([]Search, error) {
	if c.redis == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		return listed(c.sketch.each(), index, limit), nil
	}
	c.storing.Lock() // else counts on their way to Redis would be missing
	defer c.storing.Unlock()
	all := newSketch(maxPlaces)
	if err := c.redis.read(ctx, all.add); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all.merge(c.sketch.each())
	return listed(all.each(), index, limit), nil
}

// each returns the searches that need help, each as it is when it is asked for
// and until the next one is: there is no copy of all, and nobody waits while
// one is written.
func (c *Collector) each() iter.Seq[Search] {
	return func(yield func(Search) bool) {
		c.mu.Lock()
		all := slices.Clone(c.sketch.order)
		c.mu.Unlock()
		var s Search
		for _, counted := range all {
			c.mu.Lock()
			s = searchOf(counted.key, counted.days, s.Days[:0])
			weight := counted.days.weight()
			c.mu.Unlock()
			if weight > 0 && !yield(s) {
				return
			}
		}
	}
}

// save stores what was counted.
func (c *Collector) save(ctx context.Context) {
	c.storing.Lock()
	defer c.storing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := c.o.Guard.Do("keeping searches", func() error {
		switch {
		case c.redis != nil:
			return c.share(ctx)
		case c.o.File != "" && !c.foreign:
			return writeFile(c.o.File, c.each())
		}
		return nil
	})
	c.told(err)
}

// told counts an error of storing, and logs the first.
func (c *Collector) told(err error) {
	if err != nil {
		c.failures.Add(1)
		if !c.broken && c.o.Log != nil {
			c.o.Log.Warn("texts of searches are not stored; requests are not touched by that", "err", err)
		}
	}
	c.broken = err != nil
}

// share gives Redis what was counted, and asks which searches are kept.
func (c *Collector) share(ctx context.Context) error {
	c.mu.Lock()
	all := c.sketch
	c.sketch = newSketch(maxPlaces)
	c.mu.Unlock()
	rest, err := c.redis.add(ctx, all.each())
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sketch.merge(maps.All(rest))
		return err
	}
	if time.Since(c.learned) < learnEvery {
		c.mu.Lock()
		defer c.mu.Unlock()
		for k := range all.at {
			c.kept[c.hash(k)] = true
		}
		return nil
	}
	kept := map[uint64]bool{}
	err = c.redis.read(ctx, func(k key, _ int, _ Found, _ int64) { kept[c.hash(k)] = true })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = kept // fewer if they are not all known
	c.learned = time.Now()
	return err
}
