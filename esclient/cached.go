package esclient

import (
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
	// maxLoads is the number of loads under way at once, of which one client by
	// itself gets half: a cold search of eight fields takes 24.
	maxLoads    = 64
	failureTime = time.Second      // a sick cluster is not asked again by every search
	guessTime   = 10 * time.Second // before the cluster is asked again
	lastTime    = 24 * time.Hour   // for which an answer may stand in for one that does not come
	maxResolved = 1024             // indices of an expression: each search looks at their names
)

// CacheOptions bound what a [Cached] keeps.
type CacheOptions struct {
	// AnalysisBytes bounds the analyzed texts and what is known of fields,
	// StatisticsBytes the statistics of terms, both about.
	AnalysisBytes, StatisticsBytes uint64
	// TTL is how long an answer of the cluster is used.
	TTL time.Duration
	// Client names the client that a context is of, "" for none; nil names none.
	// Loads count for that client and for their index expression.
	Client func(context.Context) string
}

// A Cached answers from memory what a [Client] would ask the cluster for, and
// loads the rest, each thing once at a time; a load goes on where a caller
// leaves. Of at most 64 loads no client and no index expression has more than
// it leaves to the others; one more is a [cache.ErrBusy]. Failures are
// remembered for a second, [ErrNoLinear], [ErrNoNorms] and [ErrNoVectors] for
// ten, other errors that say how the cluster is for the time to live.
//
// Its methods may be called at the same time. [Cached.Close] ends it.
type Cached struct {
	client      *Client
	ttl         time.Duration
	loader      *cache.Loader
	generations generations
	// analysis has what the indices say of fields, and analyzed texts; statistics
	// what scores are made of, but for the document frequencies of terms.
	analysis, statistics *cache.Cache[key]
	terms                *cache.Cache[termKey]
	fieldIDs             atomic.Uint64
	busy                 atomic.Uint64
}

// A termKey has a fieldRecord's id.
type termKey struct {
	field uint64
	term  string
}

// A fieldRecord is what is known of a field's documents. Its terms are
// remembered under its id, so that they go when it goes: N and the document
// frequencies are of about the same moment.
type fieldRecord struct {
	id       uint64
	docCount int64
}

// learned is a fact about the cluster, or a guess where it did not tell.
type learned[V any] struct {
	value   V
	guessed bool
}

func (l learned[V]) isGuess() bool { return l.guessed }

// NewCached returns a cache in front of client.
func NewCached(client *Client, o CacheOptions) *Cached {
	c := &Cached{client: client, loader: cache.NewLoader(cache.Policy{
		Places: maxLoads, Timeout: loadTimeout, Guard: client.guard, What: asking, Client: o.Client,
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

// life returns how long to remember what a load gave. What an index lacks for a
// mode is kept as long as a guess: somebody may be about to add it.
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

// telling reports whether an error is knowledge of the cluster, not a failure.
func telling(err error) bool {
	return slices.ContainsFunc([]error{
		mapping.ErrNotText, mapping.ErrMixed, ErrRemote, mapping.ErrTooManyFields, ErrNoLinear, ErrNoNorms, ErrNoVectors,
	}, func(known error) bool { return errors.Is(err, known) })
}

// Close ends all loads and forgets everything. Calls that wait or come later
// get an error. It leaves the client open.
func (c *Cached) Close() {
	c.loader.Close()
	c.analysis.Close()
	c.statistics.Close()
	c.terms.Close()
}

// Forget drops what is known of an index expression, with all options, for when
// the cluster refuses what that led to; at most once a second, since learning
// it again takes calls. It reports whether it did.
func (c *Cached) Forget(index string) bool {
	forgot := c.generations.of(index)
	now, last := int64(time.Since(c.generations.start))+1, forgot.Load()
	return (last == 0 || now-last >= int64(forgetPause)) && forgot.CompareAndSwap(last, now)
}

func (c *Cached) key(indices Indices, field string) key {
	return key{generation: c.generations.of(indices.Expression).Load(), Indices: indices, field: field}
}

// about returns the question of a key.
func (c *Cached) about(k key) question { return question{c.client, k.Indices, k.field} }

// tally counts an answer from memory or not, and refusals for want of a place.
func (c *Cached) tally(of *cache.Cache[key], warm bool, err error) {
	of.Tally(warm)
	if errors.Is(err, cache.ErrBusy) {
		c.busy.Add(1)
	}
}

// Stats tell of a [Cached]. Busy counts the questions refused with
// [cache.ErrBusy].
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

// recall answers k from memory, or by a load for q, which may ask for more than
// k.
func recall[V any](
	ctx context.Context, c *Cached, of *cache.Cache[key], k, q key, load func(*Cached, context.Context, key) (V, error),
) (V, error) {
	v, warm, err := cache.Peek[V](of, k)
	if !warm {
		own := q.clone()
		v, err = cache.Get(ctx, of, k.clone(), c.ttl, func(ctx context.Context) (V, error) { return load(c, ctx, own) })
	}
	c.tally(of, warm, err)
	return v, err
}

// Fields returns the full names, in order, of the mapped fields that match a
// pattern with asterisks in one of the indices, text or not. Fields without
// terms (binary, geo shapes, vectors), those that an engine makes itself (_id,
// the subfields of search_as_you_type) and aliases whose field matches too are
// left out. The names must not be modified.
//
// The error wraps [mapping.ErrTooManyFields] where there are more than 1,024,
// and [mapping.ErrNotText] or [ErrRemote] where the indices are none to ask
// for. What is not remembered takes one round trip.
func (c *Cached) Fields(ctx context.Context, indices Indices, pattern string) ([]string, error) {
	k := c.key(indices, pattern).as(fieldsOfPattern)
	return recall(ctx, c, c.analysis, k, k, func(c *Cached, ctx context.Context, k key) ([]string, error) {
		return c.about(k).matching(ctx)
	})
}

// Linear says where the exact scores of a field come from: the field itself if
// its score is linear in the term frequency, else a field of the same text and
// analyzers, a scripted one before one of BM25. norm names the doc value with
// the documents' norms, weights the keyword with the id of their weights.
//
// The error wraps [ErrNoLinear], [ErrNoNorms] or [mapping.ErrMixed] where the
// indices lack what is needed, and [mapping.ErrNotText] or [ErrRemote] where
// the field is none to ask for. It takes three round trips, one more for an
// alias.
func (c *Cached) Linear(ctx context.Context, indices Indices, field, norm, weights, id string) (Linear, error) {
	k := c.key(indices, field).as(linearOfField)
	k.norm, k.stamp, k.id = norm, weights, id
	return recall(ctx, c, c.statistics, k, k, func(c *Cached, ctx context.Context, k key) (Linear, error) {
		return c.about(k).linear(ctx, k.norm, k.stamp, k.id, c.info)
	})
}

// Vectors returns nil where at least nine tenths of the documents with a field
// have vectors by the model with the given id, which the keyword stamp names;
// else an error that wraps [ErrNoVectors]. mixed says that some of the others
// have vectors by another model. What is not remembered takes one round trip.
func (c *Cached) Vectors(ctx context.Context, indices Indices, field, stamp, id string) (mixed bool, err error) {
	k := c.key(indices, field).as(vectorsOfField)
	k.stamp, k.id = stamp, id
	return recall(ctx, c, c.statistics, k, k, func(c *Cached, ctx context.Context, k key) (bool, error) {
		return c.about(k).stamped(ctx, k.stamp, k.id)
	})
}

// info tells what the cluster runs, from memory or not.
func (c *Cached) info(ctx context.Context) (Info, error) {
	return cache.Get(ctx, c.statistics, key{kind: infoOfCluster}, c.ttl, c.client.Info)
}

// schema returns what the indices say of the field of k, from memory or not.
func (c *Cached) schema(ctx context.Context, k key) (*mapping.Schema, error) {
	return cache.Get(ctx, c.analysis, k.ofField(), c.ttl, func(ctx context.Context) (*mapping.Schema, error) { return c.about(k).schema(ctx) })
}

// Resolve returns the names of the open indices that an expression stands for,
// in order, that of a data stream for its own; none of more than 1,024, or
// where an alias of the expression has a filter: who searches by it may not see
// all that is behind it. The names must not be modified. The call asks about
// field, too. The error wraps [mapping.ErrNotText] or [ErrRemote] where the
// indices are none to ask for.
func (c *Cached) Resolve(ctx context.Context, indices Indices, field string) ([]string, error) {
	k := c.key(indices, field)
	return recall(ctx, c, c.analysis, k.ofIndices(namesOfIndices), k, (*Cached).resolve)
}

// resolve asks for the mappings of the field, and has their schema remembered,
// too.
func (c *Cached) resolve(ctx context.Context, k key) ([]string, error) {
	answer, err := c.about(k).mappings(ctx)
	_, _ = cache.Get(ctx, c.analysis, k.ofField(), c.ttl, func(ctx context.Context) (*mapping.Schema, error) {
		if err != nil {
			return nil, err
		}
		return c.about(k).readSchema(ctx, answer)
	}) // what is wrong with the schema is not asked for
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

// A kind is what is asked for, which says of what type the answer is.
type kind uint8

const (
	schemaOfField    kind = iota // *mapping.Schema
	fieldsOfPattern              // []string, the fields that match
	namesOfIndices               // []string, the indices that an expression stands for
	termsOfText                  // *Analysis, of which the terms only
	analysisOfText               // *Analysis, of a schema and terms of a text; not remembered itself
	guessOfText                  // guessed, a part of an analysis
	infoOfCluster                // Info
	countOfTerms                 // termCount, remembered as recordOfField and in Cached.terms
	recordOfField                // fieldRecord
	failureOfField               // nothing, why the terms of a field could not be counted
	scaleOfField                 // learned[float64]
	scriptsOfIndices             // learned[bool]
	// The last ones that the cluster told, for when it does not: float64, bool.
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
	generation int64 // the key is not found any more when its indices are forgotten
	Indices
	// field is a field or a pattern of fields; for the terms of a text the index
	// that analyzes it; for a limit the setting.
	field string
	// analyzer is as the caller names it; text is analyzed.
	analyzer, text string
	terms          unique.Handle[termList] // to count
	// norm is the field of norms, and stamp that of the id of the weights or of the
	// model of vectors.
	norm, stamp, id string
}

// A termList is a list of terms as a comparable value: the first one, and the
// list of the others. Handles of equal lists are equal.
type termList struct {
	first  string
	others unique.Handle[termList]
}

// clone returns a key that does not keep the memory of the request it came in.
func (k key) clone() key {
	k.Expression, k.Options = strings.Clone(k.Expression), strings.Clone(k.Options)
	k.field, k.analyzer, k.text = strings.Clone(k.field), strings.Clone(k.analyzer), strings.Clone(k.text)
	k.norm, k.stamp, k.id = strings.Clone(k.norm), strings.Clone(k.stamp), strings.Clone(k.id)
	return k
}

// as returns the key that asks for something else of the same.
func (k key) as(what kind) key {
	k.kind = what
	return k
}

// ofIndices returns the key of what is asked about the indices only.
func (k key) ofIndices(what kind) key {
	return key{kind: what, generation: k.generation, Indices: k.Indices}
}

// ofField returns the key of the schema of the field.
func (k key) ofField() key {
	return key{generation: k.generation, Indices: k.Indices, field: k.field}
}

// ofText returns the key of the terms of a text in a field of s.
func (k key) ofText(s *mapping.Schema, analyzer string) key {
	k.kind, k.field, k.analyzer = termsOfText, s.Targets[0].Index, analyzer
	return k
}

// cost returns about the bytes that a key and its answer take.
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
	slots       = 256         // index expressions that share one are forgotten together
	forgetPause = time.Second // between two times that an expression is forgotten
)

// generations say when index expressions were last forgotten, for the keys.
type generations struct {
	seed   maphash.Seed
	start  time.Time
	forgot [slots]atomic.Int64 // in nanoseconds since start, 0 for never
}

func (g *generations) slot(index string) uint64 { return maphash.String(g.seed, index) % slots }

func (g *generations) of(index string) *atomic.Int64 { return &g.forgot[g.slot(index)] }
