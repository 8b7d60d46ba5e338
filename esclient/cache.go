package esclient

import (
	"context"
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
	// maxLoads is the number of loads under way at once, of which one client alone
	// gets half: a cold search of eight fields takes 24.
	maxLoads = 64
	// failureTime is how long a failure is answered from memory, so that a
	// sick cluster is not asked again by every search.
	failureTime = time.Second
	// guessTime is how long a guess stands before the cluster is asked again.
	guessTime = 10 * time.Second
	// generations is the number of counters that [Cached.Forget] has. Index
	// expressions that share one are forgotten together.
	generations = 256
	// forgetPause is the time between two times that an expression is forgotten.
	forgetPause = time.Second
)

// CacheOptions bound what a [Cached] keeps.
type CacheOptions struct {
	// AnalysisBytes bounds the analyzed texts and what is known of fields, about.
	AnalysisBytes uint64
	// StatisticsBytes bounds the statistics of terms, about.
	StatisticsBytes uint64
	// TTL is how long an answer of the cluster holds.
	TTL time.Duration
	// Client names the client that a context is of, "" for none; nil names none.
	// Loads count for the client, and for the index expression, that they are
	// started for.
	Client func(context.Context) string
}

// A Cached answers from memory what a [Client] would ask the cluster for.
//
// What it does not know it loads, each thing once at a time, apart from the
// callers: a caller whose context ends gets the context's error while the load
// goes on and fills the memory. At most 64 loads are under way at once, and
// neither a client nor an index expression has more of them than it leaves to
// the others; a caller that would start one more gets [ErrBusy]. Failures are
// remembered for a second, for the time to live those that say how the cluster
// is: [ErrNotText], [ErrMixed], [ErrRemote] and [ErrTooManyFields], ten seconds
// [ErrNoLinear] and [ErrNoNorms].
//
// Its methods may be called at the same time. [Cached.Close] ends it.
type Cached struct {
	client *Client
	ttl    time.Duration
	loader *loader
	seed   maphash.Seed
	// generation is part of every key; see Forget.
	generation [generations]atomic.Uint32
	// forgot is when each of them was last raised, in nanoseconds since start.
	forgot [generations]atomic.Int64
	start  time.Time
	// fieldIDs numbers the records of fields, for the keys of their terms.
	fieldIDs atomic.Uint64

	analysis, statistics counters
	busy                 atomic.Uint64

	schemas *memo[fieldKey, *schema]
	// patterns holds the names of the fields that a pattern matches.
	patterns *memo[fieldKey, []string]
	// names holds the indices that an expression stands for.
	names *memo[indexKey, []string]
	texts *memo[textKey, *textTerms]
	// analyses join the schema of a field and the terms of a text. guesses are
	// parts of them.
	analyses flights[askKey, *Analysis]
	guesses  flights[guessKey, guessed]
	infos    *memo[struct{}, Info]
	scales   *memo[fieldKey, learnt[float64]]
	scripts  *memo[indexKey, learnt[bool]]
	linears  *memo[linearKey, Linear]
	// counts are the loads of terms. They end in fields and terms, or failed.
	counts flights[countKey, counted]
	fields *otter.Cache[fieldKey, fieldRecord]
	terms  *otter.Cache[termKey, int64]
	failed *otter.Cache[fieldKey, error]
	limits flights[limitKey, int64]
}

// The keys. A generation makes them unreachable when their index expression is
// forgotten.
type (
	indexKey struct {
		generation uint32
		Indices
	}
	fieldKey struct {
		indexKey
		field string
	}
	// An askKey holds the analyzer as the caller names it.
	askKey struct {
		fieldKey
		analyzer, text string
	}
	guessKey struct {
		indexKey
		analyzer, text string
	}
	// A textKey holds the concrete index that analyzes, and the analyzer.
	textKey struct {
		indexKey
		target, analyzer, text string
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
	c := &Cached{
		client: client, ttl: o.TTL, seed: maphash.MakeSeed(), start: time.Now(),
		loader: newLoader(maxLoads, loadTimeout, client.guard, o.Client),
	}
	// A small share of each bound goes to what there is little of.
	const share = 8
	c.schemas = newMemo(c.loader, &c.analysis, true, o.AnalysisBytes/share,
		func(k fieldKey, s *schema) int { return k.bytes() + s.bytes() }, expiry[*schema](c.ttl))
	c.patterns = newMemo(c.loader, &c.analysis, false, o.AnalysisBytes/(2*share),
		func(k fieldKey, names []string) int { return k.bytes() + size(names) }, expiry[[]string](c.ttl))
	c.names = newMemo(c.loader, &c.analysis, false, o.AnalysisBytes/(2*share),
		func(k indexKey, names []string) int { return k.bytes() + size(names) }, expiry[[]string](c.ttl))
	c.texts = newMemo(c.loader, &c.analysis, true, o.AnalysisBytes-2*(o.AnalysisBytes/share),
		func(k textKey, t *textTerms) int { return k.bytes() + t.bytes() }, expiry[*textTerms](c.ttl))
	c.analyses = flights[askKey, *Analysis]{loader: c.loader, count: &c.analysis}
	c.guesses = flights[guessKey, guessed]{loader: c.loader, count: &c.analysis, inner: true}
	small := o.StatisticsBytes / share
	c.infos = newMemo(c.loader, &c.statistics, true, small/2,
		func(struct{}, Info) int { return 0 }, expiry[Info](c.ttl))
	c.scales = newMemo(c.loader, &c.statistics, false, small,
		func(k fieldKey, _ learnt[float64]) int { return k.bytes() }, guessExpiry[float64](c.ttl))
	c.scripts = newMemo(c.loader, &c.statistics, false, small,
		func(k indexKey, _ learnt[bool]) int { return k.bytes() }, guessExpiry[bool](c.ttl))
	c.linears = newMemo(c.loader, &c.statistics, false, small-small/2,
		func(k linearKey, l Linear) int { return k.bytes() + len(l.Field) }, linearExpiry(c.ttl))
	c.counts.loader, c.counts.count = c.loader, &c.statistics
	c.limits.loader, c.limits.count = c.loader, &c.statistics
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
		if err == nil || telling(err) {
			return ttl
		}
		return min(failureTime, ttl)
	}
}

// telling reports whether an error is knowledge of the cluster, not a failure.
func telling(err error) bool {
	return errors.Is(err, ErrNotText) || errors.Is(err, ErrMixed) || errors.Is(err, ErrRemote) ||
		errors.Is(err, ErrTooManyFields) || errors.Is(err, ErrNoLinear) || errors.Is(err, ErrNoNorms)
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

// linearExpiry returns how long to remember what [Cached.Linear] is told: what
// an index lacks for as long as a guess, since somebody may be about to add it.
func linearExpiry(ttl time.Duration) func(Linear, error) time.Duration {
	return func(l Linear, err error) time.Duration {
		if errors.Is(err, ErrNoLinear) || errors.Is(err, ErrNoNorms) {
			return min(guessTime, ttl)
		}
		return expiry[Linear](ttl)(l, err)
	}
}

// index returns the expression that a load counts for.
func (k indexKey) index() string { return k.Expression }

// bytes returns about what a key, a schema and the terms of a text take.
func (k indexKey) bytes() int { return len(k.Expression) + len(k.Options) }

func (k fieldKey) bytes() int { return k.indexKey.bytes() + len(k.field) }

func (k textKey) bytes() int {
	return k.indexKey.bytes() + len(k.target) + len(k.analyzer) + len(k.text)
}

func (s *schema) bytes() int {
	n := 128
	if s == nil {
		return n
	}
	n += len(s.searchAnalyzers)
	for _, t := range s.targets {
		n += 80 + len(t.index) + len(t.source) + len(t.field)
	}
	for name := range s.differing {
		n += 32 + len(name)
	}
	return n
}

func (t *textTerms) bytes() int {
	if t == nil {
		return 0
	}
	return 64 + size(t.names) + 8*len(t.positions)
}

// size returns about what strings take.
func size(list []string) int {
	n := 0
	for _, s := range list {
		n += 16 + len(s)
	}
	return n
}

// Close ends all loads and forgets everything. Calls that wait get an error, as
// do later ones that memory cannot answer. It leaves the client open.
func (c *Cached) Close() {
	c.loader.close()
	c.schemas.close()
	c.patterns.close()
	c.names.close()
	c.texts.close()
	c.infos.close()
	c.scales.close()
	c.scripts.close()
	c.linears.close()
	c.fields.StopAllGoroutines()
	c.terms.StopAllGoroutines()
	c.failed.StopAllGoroutines()
}

// Forget drops what is known of an index expression, with all options, at most
// once a second: what is learnt again is calls to the cluster. It is for when
// the cluster refuses what that knowledge led to. It reports whether it did.
func (c *Cached) Forget(index string) bool {
	slot := c.slot(index)
	now, last := int64(time.Since(c.start))+1, c.forgot[slot].Load() // 0 is never
	if last != 0 && now-last < int64(forgetPause) || !c.forgot[slot].CompareAndSwap(last, now) {
		return false
	}
	c.generation[slot].Add(1)
	return true
}

func (c *Cached) slot(index string) uint64 {
	return maphash.String(c.seed, index) % generations
}

func (c *Cached) key(indices Indices, field string) fieldKey {
	return fieldKey{indexKey{c.generation[c.slot(indices.Expression)].Load(), indices}, field}
}

// textKey returns the key of the terms of a text in a field of s.
func (k askKey) textKey(s *schema, analyzer string) textKey {
	return textKey{k.indexKey, s.targets[0].index, analyzer, k.text}
}

// clone returns a key that does not hold on to the request that it came in.
func (k fieldKey) clone() fieldKey {
	k.Expression, k.Options = strings.Clone(k.Expression), strings.Clone(k.Options)
	k.field = strings.Clone(k.field)
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
	// that tells of the cluster's health, not of its fields.
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
	s.Analysis.Bytes = c.schemas.cache.WeightedSize() + c.patterns.cache.WeightedSize() + c.names.cache.WeightedSize() +
		c.texts.cache.WeightedSize()
	s.Statistics.Bytes = c.infos.cache.WeightedSize() + c.scales.cache.WeightedSize() +
		c.scripts.cache.WeightedSize() + c.linears.cache.WeightedSize() +
		c.fields.WeightedSize() + c.terms.WeightedSize() + c.failed.WeightedSize()
	return s
}

func (c *counters) stats() CacheStats {
	return CacheStats{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Loads: c.loads.Load(), Failures: c.failures.Load(),
	}
}
