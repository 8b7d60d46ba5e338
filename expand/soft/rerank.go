// Package soft computes the soft cosine measure of a search and its hits, to
// order them outside the engine.
//
// Let x be the term frequencies of the text, y_f those of field f of a
// document, W = diag(idf), and S the similarities of terms, with rows for the
// text's terms. The score of a document is
//
//	Σ_f b_f (W x_f)ᵀS(W y_f) / √(Σ_f b_f (W x_f)ᵀS(W x_f)) / √(Σ_f b_f (W y_f)ᵀS(W y_f))
//
// over the searched fields with boosts b_f: one vector space of pairs of a
// field and a term, in which terms of different fields are unrelated and a term
// weighs √b_f·w. It is 0 if a document has none of these terms. With one field
// it is the soft cosine, as in Space.Soft of package softcosine.
//
// A [Reranker] caches documents' terms by the identity of a document's state,
// and rows of S by the matrix's version, all within a number of bytes. A state
// is identified by the UUID of the index and the sequence number, and if
// several shards are searched also by id and version. Terms are numbered once,
// so that a score is a sum over arrays.
package soft

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
	"unique"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/recovery"
)

// Options configure a [Reranker].
type Options struct {
	// Vectors returns the terms of hits.
	Vectors TermVectors
	// Bytes limits the cached data, approximately: half is for the vectors of
	// documents, a quarter for rows of S, the rest for the terms. 0 caches
	// nothing.
	Bytes uint64
	// TTL is how long the cluster's information on indices and fields is used; 0
	// asks for each search.
	TTL time.Duration
	// Guard recovers panics while hits are asked for; nil does so silently.
	Guard *recovery.Guard
	// Client returns the client that a context belongs to, or ""; may be nil.
	Client func(context.Context) string
	// Timeout limits the calls for the hits of one search, which go on after its
	// time is over; 0 means 5 s.
	Timeout time.Duration
}

const (
	// fetchTimeout is the default of [Options.Timeout].
	fetchTimeout = 5 * time.Second
	// maxFetches limits the searches that ask for hits at once. One client gets at
	// most half: one _msearch may take 16.
	maxFetches = 32
)

// A Reranker scores hits. Its methods may be called concurrently.
// [Reranker.Close] stops it.
type Reranker struct {
	options Options
	scratch sync.Pool
	loader  *cache.Loader // for requests to the cluster

	records *records // of searches in the mode auto

	mu     sync.Mutex
	memory *store
	closed bool
	forgot uint64
}

// New returns a reranker.
func New(o Options) *Reranker {
	loader := cache.NewLoader(cache.Policy{
		Places: maxFetches, Timeout: cmp.Or(o.Timeout, fetchTimeout), Guard: o.Guard, What: "asking for hits", Client: o.Client,
	})
	return &Reranker{
		options: o, loader: loader, memory: newStore(o.Bytes, o.TTL, loader, new(counts)),
		scratch: sync.Pool{New: func() any { return new(scratch) }}, records: newRecords(o.Bytes / 2),
	}
}

// Close cancels all calls in flight and drops everything.
func (r *Reranker) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.loader.Close()
	r.memory.close()
}

// Scores returns the scores of each hit: the soft cosine from 0 to about 1, and
// the sum of the clauses. by has at least one field, none twice.
//
// It asks for what is not cached: the terms of the hits, then the rows of S. If
// ctx ends first, it returns that error; the requests go on and fill the cache
// for later searches.
//
// With a [expand.Rerank.Key] it does not wait for terms: it asks for those of
// the hits that lack them without waiting, and these are Unknown. If they are
// too many, it returns [expand.ErrNotRemembered].
func (r *Reranker) Scores(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := r.open(by.Fields, hits)
	if err != nil {
		return nil, err
	}
	if by.Key.Kind == "" {
		return r.scores(ctx, by, w)
	}
	known, unknown := w.divide()
	r.records.add(by.Key.Kind, len(unknown), len(hits))
	r.records.settle(by.Key.Search, !tooMany(len(unknown), len(hits)))
	if len(unknown) > 0 {
		r.remember(ctx, by, unknown)
	}
	switch {
	case len(unknown) == 0:
		return r.scores(ctx, by, w)
	case tooMany(len(unknown), len(hits)):
		return nil, expand.ErrNotRemembered
	}
	w, err = r.open(by.Fields, known)
	if err != nil {
		return nil, err
	}
	some, err := r.scores(ctx, by, w)
	if err != nil {
		return nil, err
	}
	scores := make([]expand.HitScore, 0, len(hits))
	for k, n := 0, 0; k < len(hits); k++ {
		if n < len(known) && hits[k] == known[n] {
			scores = append(scores, some[n])
			n++
			continue
		}
		scores = append(scores, expand.HitScore{Unknown: true})
	}
	return scores, nil
}

// Remembers implements [expand.HitMemory].
func (r *Reranker) Remembers(key expand.HitsKey) bool { return r.records.remembers(key) }

// Remember asks for the terms of hits that lack them, and waits. It records how
// many these are for other searches, and that those of this one are remembered.
func (r *Reranker) Remember(ctx context.Context, by *expand.Rerank, hits []expand.Hit) error {
	w, err := r.open(by.Fields, hits)
	if err != nil {
		return err
	}
	_, unknown := w.divide()
	r.records.add(by.Key.Kind, len(unknown), len(hits))
	if len(unknown) > 0 {
		if w, err = r.open(by.Fields, unknown); err != nil {
			return err
		}
		if err := r.wait(ctx, unknown, func(ctx context.Context) error { return w.fetch(ctx, r.options.Vectors) }); err != nil {
			return err
		}
	}
	r.records.settle(by.Key.Search, true)
	return nil
}

// remember asks for the terms of hits and does not wait. If too many calls are
// in flight, it asks for none.
func (r *Reranker) remember(ctx context.Context, by *expand.Rerank, hits []expand.Hit) {
	w, err := r.open(by.Fields, hits)
	if err != nil {
		return
	}
	_ = r.loader.Start(ctx, ownerOf(hits), func(ctx context.Context) error { return w.fetch(ctx, r.options.Vectors) })
}

// scores returns the scores of the hits of a window, and waits for what it
// lacks.
func (r *Reranker) scores(ctx context.Context, by *expand.Rerank, w *window) ([]expand.HitScore, error) {
	known, err := w.recall(ctx)
	if err != nil {
		return nil, err
	}
	if !known {
		fetch := func(ctx context.Context) error { return w.fetch(ctx, r.options.Vectors) }
		if err := r.wait(ctx, w.hits, fetch); err != nil {
			return nil, err
		}
	}
	s, _ := r.scratch.Get().(*scratch) // New makes no other type
	scores, err := w.scores(ctx, s, by)
	r.scratch.Put(s) // not after a panic, which leaves it dirty
	return scores, err
}

// Terms returns the terms of fields of hits: nil for a hit that has changed
// since it was found, has no terms, has no terms available, or would make more
// than 100,000. Errors are those of [Reranker.Scores].
func (r *Reranker) Terms(ctx context.Context, fields []string, hits []expand.Hit) ([]map[string]expand.FieldTerms, error) {
	columns := make([]expand.RerankField, len(fields))
	for i, name := range fields {
		columns[i].Field = name
	}
	w, err := r.open(columns, hits)
	if err != nil {
		return nil, err
	}
	w.termsOnly = true
	if len(w.recallUUIDs()) > 0 || w.recallVectors() > 0 {
		fetch := func(ctx context.Context) error {
			if err := w.fetchTerms(ctx, r.options.Vectors); !errors.Is(err, ErrMissing) {
				return err
			}
			return nil
		}
		if err := r.wait(ctx, hits, fetch); err != nil {
			return nil, err
		}
	}
	return w.docTerms(), nil
}

// wait runs fetch, which counts for the first hit's index, and waits. If ctx
// ends first, fetch goes on for later searches, and owns the window until it
// ends.
func (r *Reranker) wait(ctx context.Context, hits []expand.Hit, fetch func(context.Context) error) error {
	return r.loader.Run(ctx, ownerOf(hits), fetch)
}

// ownerOf returns what a load for hits counts for.
func ownerOf(hits []expand.Hit) string {
	if len(hits) == 0 {
		return "index "
	}
	return "index " + hits[0].Index
}

func (r *Reranker) open(fields []expand.RerankField, hits []expand.Hit) (*window, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, cache.ErrClosed
	}
	if _, bytes := r.memory.terms.size(); bytes > r.memory.limit || r.memory.fields.full() || r.memory.spaces.full() {
		r.memory.close()
		r.memory = newStore(r.options.Bytes, r.options.TTL, r.loader, r.memory.counts)
		r.forgot++
	}
	w := &window{memory: r.memory, hits: hits, uuids: make([]string, len(hits)), fields: make([]column, len(fields))}
	for i := range fields {
		key := space{}
		if fields[i].Similarities != nil { // else only terms are asked for
			key.similarities = fields[i].Similarities.Version()
		}
		if fields[i].Weights != nil {
			key.weights = fields[i].Weights.ID()
		}
		c := column{RerankField: fields[i], space: unique.Make(key)}
		c.number = r.memory.spaces.of(c.space)
		w.fields[i] = c
	}
	return w, nil
}

// Stats are counts of a [Reranker] since it was made.
type Stats struct {
	Hits, Misses uint64 // fields of hits whose terms were cached, and were not
	Bytes        uint64 // all that is cached, approximately
	Documents    uint64 // of these, the terms of documents
	Forgotten    uint64 // how often everything was dropped because there were too many terms
}

// Stats returns the counts so far.
func (r *Reranker) Stats() Stats {
	r.mu.Lock()
	m, forgot := r.memory, r.forgot
	r.mu.Unlock()
	_, bytes := m.terms.size()
	documents := m.vectors.bytes()
	return Stats{
		Hits: m.counts.hits.Load(), Misses: m.counts.misses.Load(),
		Bytes: bytes + documents + m.rows.Stats().Bytes, Documents: documents, Forgotten: forgot,
	}
}
