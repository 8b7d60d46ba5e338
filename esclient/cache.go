package esclient

import (
	"errors"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

const (
	// loadTimeout bounds a load with all its calls.
	loadTimeout = 5 * time.Second
	// maxLoads is the number of loads under way at once.
	maxLoads = 32
	// failureTime is how long a failure is answered from memory, so that a
	// sick cluster is not asked again by every search.
	failureTime = time.Second
	// guessTime is how long a guess stands before the cluster is asked again.
	guessTime = 10 * time.Second
	// generations is the number of counters that [Cached.Forget] has. Index
	// expressions that share one are forgotten together.
	generations = 256
)

// CacheOptions bound what a [Cached] keeps.
type CacheOptions struct {
	// AnalysisBytes bounds the analyzed texts and what is known of fields, about.
	AnalysisBytes uint64
	// StatisticsBytes bounds the statistics of terms, about.
	StatisticsBytes uint64
	// TTL is how long an answer of the cluster holds.
	TTL time.Duration
}

// A Cached answers from memory what a [Client] would ask the cluster for.
//
// What it does not know it loads, each thing once at a time, apart from the
// callers: a caller whose context ends gets the context's error while the load
// goes on and fills the memory. At most 32 loads are under way at once; a
// caller that would start one more gets [ErrBusy]. Failures are remembered for
// a second, [ErrNotText] and [ErrMixed] for the time to live.
//
// Its methods may be called at the same time. [Cached.Close] ends it.
type Cached struct {
	client *Client
	ttl    time.Duration
	loader *loader
	seed   maphash.Seed
	// generation is part of every key; see Forget.
	generation [generations]atomic.Uint32
	// fieldIDs numbers the records of fields, for the keys of their terms.
	fieldIDs atomic.Uint64

	analysis, statistics counters
	busy                 atomic.Uint64

	schemas  *memo[fieldKey, *schema]
	analyses *memo[textKey, *Analysis]
	infos    *memo[struct{}, Info]
	scales   *memo[fieldKey, learnt[float64]]
	scripts  *memo[indexKey, learnt[bool]]
	// counts are the loads of terms. They end in fields and terms, or failed.
	counts flights[countKey, counted]
	fields *otter.Cache[fieldKey, fieldRecord]
	terms  *otter.Cache[termKey, int64]
	failed *otter.Cache[fieldKey, error]
}

// The keys. A generation makes them unreachable when their index expression is
// forgotten.
type (
	indexKey struct {
		generation uint32
		index      string
	}
	fieldKey struct {
		indexKey
		field string
	}
	textKey struct {
		fieldKey
		analyzer, text string
	}
	// A termKey holds a fieldRecord's id.
	termKey struct {
		field uint64
		term  string
	}
	// A countKey holds the terms of a load, each ended by a NUL.
	countKey struct {
		fieldKey
		terms string
	}
)

// A fieldRecord is what is known of a field's documents. Its terms are
// remembered under its id, so that they go when it goes and N and the document
// frequencies are of about the same moment.
type fieldRecord struct {
	id       uint64
	docCount int64
}

// counted is what a load of terms gave.
type counted struct {
	fieldRecord
	docFreqs []int64
}

// learnt is a fact about the cluster, or a guess where it did not tell.
type learnt[V any] struct {
	value   V
	guessed bool
}

// NewCached returns a cache in front of client.
func NewCached(client *Client, o CacheOptions) *Cached {
	c := &Cached{client: client, ttl: o.TTL, seed: maphash.MakeSeed(), loader: newLoader(maxLoads, loadTimeout)}
	// A small share of each bound goes to what there is little of.
	const share = 8
	c.schemas = newMemo(c.loader, &c.analysis, true, o.AnalysisBytes/share,
		func(k fieldKey, s *schema) int { return k.bytes() + s.bytes() }, expiry[*schema](c.ttl))
	c.analyses = newMemo(c.loader, &c.analysis, false, o.AnalysisBytes-o.AnalysisBytes/share,
		func(k textKey, a *Analysis) int { return k.bytes() + len(k.analyzer) + len(k.text) + a.bytes() },
		expiry[*Analysis](c.ttl))
	small := o.StatisticsBytes / share
	c.infos = newMemo(c.loader, &c.statistics, true, small,
		func(struct{}, Info) int { return 0 }, expiry[Info](c.ttl))
	c.scales = newMemo(c.loader, &c.statistics, false, small,
		func(k fieldKey, _ learnt[float64]) int { return k.bytes() }, guessExpiry[float64](c.ttl))
	c.scripts = newMemo(c.loader, &c.statistics, false, small,
		func(k indexKey, _ learnt[bool]) int { return len(k.index) }, guessExpiry[bool](c.ttl))
	c.counts.loader, c.counts.count = c.loader, &c.statistics
	c.fields = newPlain(small, func(k fieldKey, _ fieldRecord) uint32 { return weight(k.bytes()) }, c.ttl)
	c.failed = newPlain(small, func(k fieldKey, _ error) uint32 { return weight(k.bytes()) }, failureTime)
	c.terms = newPlain(o.StatisticsBytes-5*small,
		func(k termKey, _ int64) uint32 { return weight(len(k.term)) }, c.ttl)
	return c
}

// newPlain returns a cache of at most maxBytes.
func newPlain[K comparable, V any](
	maxBytes uint64, weigh func(K, V) uint32, ttl time.Duration,
) *otter.Cache[K, V] {
	return otter.Must(&otter.Options[K, V]{
		MaximumWeight: maxBytes, Weigher: weigh, ExpiryCalculator: otter.ExpiryWriting[K, V](ttl),
	})
}

// expiry returns how long to remember what a load gave.
func expiry[V any](ttl time.Duration) func(V, error) time.Duration {
	return func(_ V, err error) time.Duration {
		if err == nil || errors.Is(err, ErrNotText) || errors.Is(err, ErrMixed) {
			return ttl
		}
		return min(failureTime, ttl)
	}
}

// guessExpiry returns how long to remember a fact or a guess.
func guessExpiry[V any](ttl time.Duration) func(learnt[V], error) time.Duration {
	return func(v learnt[V], err error) time.Duration {
		switch {
		case err != nil:
			return min(failureTime, ttl)
		case v.guessed:
			return min(guessTime, ttl)
		default:
			return ttl
		}
	}
}

// bytes returns about what a key, a schema and an analysis take.
func (k fieldKey) bytes() int { return len(k.index) + len(k.field) }

func (s *schema) bytes() int {
	n := 128
	if s == nil {
		return n
	}
	for _, t := range s.targets {
		n += 64 + len(t.index) + len(t.source)
	}
	for name := range s.differing {
		n += 32 + len(name)
	}
	return n
}

func (a *Analysis) bytes() int {
	n := 64
	if a == nil {
		return n
	}
	for _, t := range a.Terms {
		n += 24 + len(t)
	}
	return n
}

// Close ends all loads and forgets everything. Calls that wait get an error, as
// do later ones that memory cannot answer. It leaves the client open.
func (c *Cached) Close() {
	c.loader.close()
	c.schemas.close()
	c.analyses.close()
	c.infos.close()
	c.scales.close()
	c.scripts.close()
	c.fields.StopAllGoroutines()
	c.terms.StopAllGoroutines()
	c.failed.StopAllGoroutines()
}

// Forget drops what is known of an index expression. It is for when the cluster
// refuses what that knowledge led to.
func (c *Cached) Forget(index string) {
	c.generation[c.slot(index)].Add(1)
}

func (c *Cached) slot(index string) uint64 {
	return maphash.String(c.seed, index) % generations
}

func (c *Cached) key(index, field string) fieldKey {
	return fieldKey{indexKey{c.generation[c.slot(index)].Load(), index}, field}
}

// clone returns a key that does not hold on to the request that it came in.
func (k fieldKey) clone() fieldKey {
	k.index, k.field = strings.Clone(k.index), strings.Clone(k.field)
	return k
}

// tally counts an answer as one from memory or not, and refusals for want of a
// place.
func (c *Cached) tally(count *counters, warm bool, err error) {
	if warm {
		count.hits.Add(1)
		return
	}
	count.misses.Add(1)
	if errors.Is(err, ErrBusy) {
		c.busy.Add(1)
	}
}

// CacheStats tell of one cache since it was made.
type CacheStats struct {
	// Hits and Misses count the questions that memory answered and those it
	// did not.
	Hits, Misses uint64
	// Loads counts the loads started, Failures those that ended in an error
	// other than [ErrNotText] and [ErrMixed].
	Loads, Failures uint64
	// Bytes is about what the cache holds.
	Bytes uint64
}

// Stats tell of a [Cached].
type Stats struct {
	Analysis, Statistics CacheStats
	// Busy counts the questions refused with [ErrBusy].
	Busy uint64
}

// Stats returns the counts so far.
func (c *Cached) Stats() Stats {
	s := Stats{Analysis: c.analysis.stats(), Statistics: c.statistics.stats(), Busy: c.busy.Load()}
	s.Analysis.Bytes = c.schemas.cache.WeightedSize() + c.analyses.cache.WeightedSize()
	s.Statistics.Bytes = c.infos.cache.WeightedSize() + c.scales.cache.WeightedSize() +
		c.scripts.cache.WeightedSize() + c.fields.WeightedSize() + c.terms.WeightedSize() + c.failed.WeightedSize()
	return s
}

func (c *counters) stats() CacheStats {
	return CacheStats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Loads: c.loads.Load(), Failures: c.failures.Load(),
	}
}
