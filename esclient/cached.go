package esclient

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unique"

	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/internal/cache"
)

const (
	loadTimeout = 5 * time.Second // of a load with all its calls
	// maxLoads limits loads in flight; one client alone gets half. A cold search
	// of eight fields takes 24.
	maxLoads    = 64
	failureTime = time.Second      // pause before a failed call is repeated
	guessTime   = 10 * time.Second // before a guess is checked again
	lastTime    = 24 * time.Hour   // how long an old answer may replace one that does not come
	maxResolved = 1024             // indices of an expression: each search compares their names
)

// CacheOptions configure a [Cached].
type CacheOptions struct {
	// AnalysisBytes limits analyzed texts and fields, StatisticsBytes the
	// statistics of terms, both approximately.
	AnalysisBytes, StatisticsBytes uint64
	// TTL is how long an answer of the cluster is used.
	TTL time.Duration
	// Timeout limits a load with all its calls; 0 means 5 s.
	Timeout time.Duration
	// Client returns the client that a context belongs to, or ""; may be nil.
	// Loads count for that client and for their index expression.
	Client func(context.Context) string
}

// A Cached caches the answers to a [Client]'s questions. It loads the rest,
// each thing once at a time; a load goes on if a caller leaves. Of at most 64
// loads no client and no index expression takes more than it leaves to others;
// beyond that it returns [cache.ErrBusy]. Failures are cached for a second,
// [ErrNoLinear], [ErrNoNorms] and [ErrNoVectors] for ten, other errors that
// describe the cluster for the TTL.
//
// Its methods may be called concurrently. [Cached.Close] stops it.
type Cached struct {
	client      *Client
	ttl         time.Duration
	loader      *cache.Loader
	generations generations
	// analysis has schemas of fields and analyzed texts. statistics has all for
	// scoring but the document frequencies, which are in terms.
	analysis, statistics *cache.Cache[key]
	terms                *cache.Cache[termKey]
	fieldIDs             atomic.Uint64
	busy                 atomic.Uint64
}

// A termKey has the id of a fieldRecord.
type termKey struct {
	field uint64
	term  string
}

// A fieldRecord is about a field's documents. Terms are cached under its id and
// so expire with it: N and document frequencies are of about the same time.
type fieldRecord struct {
	id        uint64
	docCount  int64
	uncounted bool // see FieldStatistics; no term is cached then
}

// isOutdated reports whether N is another by more than a percent. A merge of
// segments that drops deleted documents can halve N and all frequencies: an idf
// of the new N and an old frequency would be far too low.
func (r fieldRecord) isOutdated(docCount int64) bool {
	const part = 100
	return max(r.docCount-docCount, docCount-r.docCount) > r.docCount/part
}

// learned is a fact about the cluster, or a guess if it did not say.
type learned[V any] struct {
	value   V
	guessed bool
}

func (l learned[V]) isGuess() bool { return l.guessed }

// NewCached returns a cache in front of client.
func NewCached(client *Client, o CacheOptions) *Cached {
	c := &Cached{client: client, loader: cache.NewLoader(cache.Policy{
		Places: maxLoads, Timeout: cmp.Or(o.Timeout, loadTimeout), Guard: client.guard, What: asking, Client: o.Client,
		Telling: telling, Life: life,
	}), ttl: o.TTL}
	c.generations.seed, c.generations.start = maphash.MakeSeed(), time.Now()
	about := cache.Options[key]{Cost: key.cost, Loader: c.loader, Owner: func(k key) string { return "index " + k.Expression }}
	about.Bytes = o.AnalysisBytes
	c.analysis = cache.New(about)
	const share = 8 // five of them are for what is known of fields
	about.Bytes = o.StatisticsBytes / share * 5
	c.statistics = cache.New(about)
	c.terms = cache.New(cache.Options[termKey]{
		Bytes: o.StatisticsBytes - about.Bytes, Cost: func(k termKey, _ any) int { return len(k.term) },
	})
	return c
}

// life returns how long to cache a load's result. What an index lacks for a
// mode is cached like a guess: somebody may be about to add it.
func life(v any, err error, ttl time.Duration) time.Duration {
	guess, ok := v.(interface{ isGuess() bool })
	switch {
	case errors.Is(err, ErrNoLinear), errors.Is(err, ErrNoNorms), errors.Is(err, ErrNoVectors), err == nil && ok && guess.isGuess():
		return min(guessTime, ttl)
	case err == nil || telling(err):
		return ttl
	default:
		return min(failureTime, ttl)
	}
}

// telling reports whether an error describes the cluster, not a failure.
func telling(err error) bool {
	return slices.ContainsFunc([]error{
		mapping.ErrNotText, mapping.ErrMixed, ErrRemote, mapping.ErrTooManyFields, ErrNoLinear, ErrNoNorms, ErrNoVectors,
	}, func(known error) bool { return errors.Is(err, known) })
}

// Close cancels all loads and drops everything. Waiting and later calls get an
// error. The client stays open.
func (c *Cached) Close() {
	c.loader.Close()
	c.analysis.Close()
	c.statistics.Close()
	c.terms.Close()
}

// Forget drops all about an index expression, with all options, after the
// cluster refused what was built from it, or when an index of it is gone. It
// does so at most once a second, because learning it again takes calls, and
// reports whether it did.
func (c *Cached) Forget(index string) bool {
	forgot := c.generations.of(index)
	now, last := int64(time.Since(c.generations.start))+1, forgot.Load()
	return (last == 0 || now-last >= int64(forgetPause)) && forgot.CompareAndSwap(last, now)
}

func (c *Cached) key(indices Indices, field string) key {
	return key{generation: c.generations.of(indices.Expression).Load(), Indices: indices, field: field}
}

func (c *Cached) about(k key) question { return question{c.client, k.Indices, k.field} }

// tally counts a hit or miss, and refusals for lack of a place. It drops what
// is known of indices of which one is gone, as when an alias names another.
func (c *Cached) tally(of *cache.Cache[key], indices Indices, warm bool, err error) {
	of.Tally(warm)
	if errors.Is(err, cache.ErrBusy) {
		c.busy.Add(1)
	}
	if refused, ok := errors.AsType[*Error](err); ok && refused.Type == indexNotFound {
		c.Forget(indices.Expression)
	}
}

// Stats are counts of a [Cached]. Busy counts refusals with [cache.ErrBusy].
type Stats struct {
	Analysis, Statistics cache.Stats
	Busy                 uint64
}

// Stats returns the counts so far.
func (c *Cached) Stats() Stats {
	s := Stats{Analysis: c.analysis.Stats(), Statistics: c.statistics.Stats(), Busy: c.busy.Load()}
	s.Statistics.Bytes += c.terms.Stats().Bytes
	return s
}

// recall answers k from the cache, or by a load for q, which may ask for more.
func recall[V any](
	ctx context.Context, c *Cached, of *cache.Cache[key], k, q key, load func(*Cached, context.Context, key) (V, error),
) (V, error) {
	v, warm, err := cache.Peek[V](of, k)
	if !warm {
		own := q.clone()
		v, err = cache.Get(ctx, of, k.clone(), c.ttl, func(ctx context.Context) (V, error) { return load(c, ctx, own) })
	}
	c.tally(of, k.Indices, warm, err)
	return v, err
}

// Fields returns the sorted full names of the mapped fields, text or not, that
// match a pattern with asterisks in one of the indices. It omits fields without
// terms (binary, geo shapes, vectors), fields made by the engine (_id,
// subfields of search_as_you_type), and aliases whose target matches, too. The
// names must not be modified.
//
// The error wraps [mapping.ErrTooManyFields] for more than 1,024 fields, and
// [mapping.ErrNotText] or [ErrRemote] if the indices cannot be asked for. What
// is not cached takes one round trip.
func (c *Cached) Fields(ctx context.Context, indices Indices, pattern string) ([]string, error) {
	k := c.key(indices, pattern).as(fieldsOfPattern)
	return recall(ctx, c, c.analysis, k, k, func(c *Cached, ctx context.Context, k key) ([]string, error) {
		return c.about(k).matching(ctx)
	})
}

// Linear says how to get exact scores of a field: from itself if its score is
// linear in the term frequency, else from a field with the same text and
// analyzers, preferably a scripted one. norm names the doc value with the
// documents' norms, weights the keyword with the id of their weights.
//
// The error wraps [ErrNoLinear], [ErrNoNorms] or [mapping.ErrMixed] if the
// indices lack what is needed, and [mapping.ErrNotText] or [ErrRemote] if the
// field cannot be asked for. It takes three round trips, one more for an alias.
func (c *Cached) Linear(ctx context.Context, indices Indices, field, norm, weights, id string) (Linear, error) {
	k := c.key(indices, field).as(linearOfField)
	k.norm = norm
	k.stamp = weights
	k.id = id
	return recall(ctx, c, c.statistics, k, k, func(c *Cached, ctx context.Context, k key) (Linear, error) {
		return c.about(k).linear(ctx, k.norm, k.stamp, k.id, c.info)
	})
}

// Vectors returns nil if at least nine tenths of the documents with a field
// have vectors of the model id, named in the keyword stamp; else an error that
// wraps [ErrNoVectors]. mixed says that some documents have vectors of another
// model. What is not cached takes one round trip.
func (c *Cached) Vectors(ctx context.Context, indices Indices, field, stamp, id string) (mixed bool, err error) {
	k := c.key(indices, field).as(vectorsOfField)
	k.stamp, k.id = stamp, id
	return recall(ctx, c, c.statistics, k, k, func(c *Cached, ctx context.Context, k key) (bool, error) {
		return c.about(k).stamped(ctx, k.stamp, k.id)
	})
}

// info returns what the cluster runs, cached.
func (c *Cached) info(ctx context.Context) (Info, error) {
	return cache.Get(ctx, c.statistics, key{kind: infoOfCluster}, c.ttl, c.client.Info)
}

// schema returns the schema of k's field, cached.
func (c *Cached) schema(ctx context.Context, k key) (*mapping.Schema, error) {
	return cache.Get(ctx, c.analysis, k.ofField(), c.ttl, func(ctx context.Context) (*mapping.Schema, error) { return c.about(k).schema(ctx) })
}

// Resolve returns the sorted names of the open indices of an expression; a data
// stream has its own name. It returns none if there are more than 1,024, or if
// an alias of the expression has a filter: its users may not see everything
// behind it. The names must not be modified. The call asks about field, too.
// The error wraps [mapping.ErrNotText] or [ErrRemote] if the indices cannot be
// asked for.
func (c *Cached) Resolve(ctx context.Context, indices Indices, field string) ([]string, error) {
	k := c.key(indices, field)
	return recall(ctx, c, c.analysis, k.ofIndices(namesOfIndices), k, (*Cached).resolve)
}

// resolve asks for the mappings of the field, and caches their schema, too.
func (c *Cached) resolve(ctx context.Context, k key) ([]string, error) {
	answer, err := c.about(k).mappings(ctx)
	_, _ = cache.Get(ctx, c.analysis, k.ofField(), c.ttl, func(ctx context.Context) (*mapping.Schema, error) {
		if err != nil {
			return nil, err
		}
		return c.about(k).readSchema(ctx, answer)
	}) // errors of the schema do not matter here
	if err != nil {
		return nil, err
	}
	for _, m := range answer {
		if _, filtered := m.Restricted(k.mayName); filtered {
			return nil, nil
		}
	}
	if names := mapping.Open(answer); len(names) <= maxResolved {
		return names, nil
	}
	return nil, nil
}

// A kind is the kind of a question. It determines the type of the answer.
type kind uint8

const (
	schemaOfField    kind = iota // *mapping.Schema
	fieldsOfPattern              // []string, the matching fields
	namesOfIndices               // []string, the indices of an expression
	termsOfText                  // *Analysis with only the terms
	analysisOfText               // *Analysis, from a schema and terms of a text; not cached itself
	guessOfText                  // guessed, part of an analysis
	termsOfDocuments             // *DocumentTerms
	infoOfCluster                // Info
	countOfTerms                 // termCount, cached as recordOfField and in Cached.terms
	recordOfField                // fieldRecord
	failureOfField               // nothing; the error is why terms of the field could not be counted
	scaleOfField                 // learned[float64]
	scriptsOfIndices             // learned[bool]
	// The last answers of the cluster, in case it does not answer: float64, bool.
	lastScaleOfField
	lastScriptsOfIndices
	linearOfField        // Linear
	vectorsOfField       // bool
	limitOfIndices       // int64, not remembered
	readsQueryOfPipeline // bool
)

// A key is a question to the cluster.
type key struct {
	kind       kind
	generation int64 // changes when the indices are forgotten, so the key no longer matches
	Indices
	// field is a field or a pattern of fields; for the terms of a text the
	// analyzing index; for a limit the setting.
	field string
	// analyzer is as named by the caller; text is analyzed.
	analyzer, text string
	terms          unique.Handle[termList] // to count
	// norm is the field with norms; stamp is the field with the id of the weights
	// or of the vectors' model.
	norm, stamp, id string
}

// A termList is a comparable list of terms: the first term and the list of the
// others. Handles of equal lists are equal.
type termList struct {
	first  string
	others unique.Handle[termList]
}

// clone returns a key that does not hold the request's memory.
func (k key) clone() key {
	k.Expression, k.Options = strings.Clone(k.Expression), strings.Clone(k.Options)
	k.field = strings.Clone(k.field)
	k.analyzer = strings.Clone(k.analyzer)
	k.text = strings.Clone(k.text)
	k.norm = strings.Clone(k.norm)
	k.stamp = strings.Clone(k.stamp)
	k.id = strings.Clone(k.id)
	return k
}

// as returns the key of another question about the same.
func (k key) as(what kind) key {
	k.kind = what
	return k
}

// ofIndices returns the key of a question about only the indices.
func (k key) ofIndices(what kind) key {
	return key{kind: what, generation: k.generation, Indices: k.Indices}
}

func (k key) ofField() key {
	return key{generation: k.generation, Indices: k.Indices, field: k.field}
}

// ofText returns the key of the terms of a text in a field of s.
func (k key) ofText(s *mapping.Schema, analyzer string) key {
	k.kind = termsOfText
	k.field = s.Targets[0].Index
	k.analyzer = analyzer
	return k
}

// cost returns the approximate bytes of a key and its answer.
func (k key) cost(answer any) int {
	const own = 160 // of the key without its texts
	n := own + len(k.Expression) + len(k.Options) + len(k.field) + len(k.analyzer) + len(k.text) + len(k.norm) + len(k.stamp) + len(k.id)
	switch v := answer.(type) {
	case *mapping.Schema:
		n += v.Bytes()
	case *Analysis:
		if v != nil {
			n += 64 + bytesOf(v.Terms) + 8*len(v.Positions) + bytesOf(v.Written)
		}
	case *DocumentTerms:
		if v != nil {
			n += bytesOf(v.Terms) + 8*len(v.Freqs)
		}
	case []string:
		n += bytesOf(v)
	case Linear:
		n += len(v.Field) + len(v.Norm)
	}
	return n
}

func bytesOf(texts []string) (n int) {
	for _, text := range texts {
		n += 16 + len(text)
	}
	return n
}

const (
	slots       = 256         // index expressions in one slot are forgotten together
	forgetPause = time.Second // minimum pause before an expression is forgotten again
)

// generations are the times when index expressions were last forgotten.
type generations struct {
	seed   maphash.Seed
	start  time.Time
	forgot [slots]atomic.Int64 // in nanoseconds since start; 0 for never
}

func (g *generations) slot(index string) uint64 { return maphash.String(g.seed, index) % slots }

func (g *generations) of(index string) *atomic.Int64 { return &g.forgot[g.slot(index)] }
