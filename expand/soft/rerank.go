// Package soft computes the soft cosine measure of a search and its hits,
// so that they can be ordered by it outside of the engine.
//
// With x the term frequencies of the text, y_f those of a field f of a
// document, W = diag(idf) and S the similarities of terms, of which the rows
// are those of the text's terms, the score of a document is
//
//	Σ_f b_f (W x_f)ᵀS(W y_f) / √(Σ_f b_f (W x_f)ᵀS(W x_f)) / √(Σ_f b_f (W y_f)ᵀS(W y_f))
//
// over the fields that are searched, b_f being their boosts: one vector
// space of the pairs of a field and a term, in which terms of different
// fields have nothing to do with each other and a term weighs √b_f·w. It is
// 0 where a document has none of these terms. With one field it is the soft
// cosine of Space.Soft of package softcosine.
//
// A [Reranker] remembers the documents' terms by what names one state of a
// document, and the rows of S by the version of the matrix, all of it
// bounded by bytes. A state is named by the UUID of the index and the
// sequence number, and where several shards are searched by id
// and version as well. Terms are numbered once, so that a score is sums over
// arrays.
package soft

import (
	"context"
	"errors"
	"sync"
	"time"
	"unique"

	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/recovery"
)

// Options say what a [Reranker] is made of.
type Options struct {
	// Vectors reports the terms of hits.
	Vectors TermVectors
	// Bytes bounds, about, what is remembered: a half is for the vectors of
	// documents, a quarter for rows of S, and the rest for the terms themselves. At 0
	// nothing is.
	Bytes uint64
	// TTL is how long the cluster is believed what it says of indices and their
	// fields; at 0 it is asked for each search.
	TTL time.Duration
	// Guard recovers what panics while hits are asked for; nil does so
	// silently.
	Guard *recovery.Guard
	// Client names the client that a context is of, "" for none; nil names none.
	Client func(context.Context) string
}

const (
	// fetchTimeout bounds the calls for the hits of one search, which go on
	// when its time is over.
	fetchTimeout = 5 * time.Second
	// maxFetches is how many searches may be asking for hits at once. One client
	// gets half at most: one _msearch may hold 16.
	maxFetches = 32
)

// A Reranker scores hits. Its methods may be called at the same time.
// [Reranker.Close] ends it.
type Reranker struct {
	options Options
	scratch sync.Pool
	loader  *cache.Loader // of what is asked for

	mu     sync.Mutex
	memory *store
	closed bool
	forgot uint64
}

// New returns a reranker.
func New(o Options) *Reranker {
	loader := cache.NewLoader(cache.Policy{
		Places: maxFetches, Timeout: fetchTimeout, Guard: o.Guard, What: "asking for hits", Client: o.Client,
	})
	return &Reranker{
		options: o, loader: loader, memory: newStore(o.Bytes, o.TTL, loader, new(counts)),
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}
}

// Close ends all calls under way and forgets everything.
func (r *Reranker) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.loader.Close()
	r.memory.close()
}

// Scores returns the scores of each of the hits: the soft cosine from 0 to
// about 1, and the sum of the clauses. By has at least one field, and none
// twice.
//
// What is not remembered is asked for: the terms of the hits, then the rows of
// S. When ctx ends first, its error comes back while that goes on and fills the
// memory for the searches that follow.
func (r *Reranker) Scores(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := r.open(by.Fields, hits)
	if err != nil {
		return nil, err
	}
	known, err := w.recall(ctx)
	if err != nil {
		return nil, err
	}
	if !known {
		fetch := func(ctx context.Context) error { return w.fetch(ctx, r.options.Vectors) }
		if err := r.wait(ctx, hits, fetch); err != nil {
			return nil, err
		}
	}
	s, _ := r.scratch.Get().(*scratch) // New makes no other
	scores, err := w.scores(ctx, s, by)
	r.scratch.Put(s) // not after a panic, which leaves it in disorder
	return scores, err
}

// Terms returns the terms of fields of hits: nil for a hit that is no longer as
// it was found, that has none, whose terms the cluster does not tell, or with
// which there would be more than 100,000. Its errors are those of
// [Reranker.Scores].
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

// wait has something fetched, which counts for the index of the first hit, and
// waits for it. When ctx ends first the fetching goes on, for the searches that
// follow: until then the window belongs to it.
func (r *Reranker) wait(ctx context.Context, hits []expand.Hit, fetch func(context.Context) error) error {
	owner := "index "
	if len(hits) > 0 {
		owner += hits[0].Index
	}
	return r.loader.Run(ctx, owner, fetch)
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
	Hits, Misses uint64 // fields of hits whose terms were remembered, and were not
	Bytes        uint64 // about what is remembered
	Documents    uint64 // of these, the terms of documents
	Forgotten    uint64 // how often all was forgotten because there were too many terms
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
