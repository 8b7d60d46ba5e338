// Package embedding orders hits by the vectors that a language model makes
// of documents and of the text of the search: the score of a hit is the
// cosine of the two.
//
// A [Reranker] waits for nothing but the vector of the search, for a short
// time. Hits whose vectors it does not remember have NoVector; it reads their
// documents in the background and has the model make their vectors. It keeps
// a vector in a byte for each dimension, by the state of its document: the
// index, its UUID, the sequence number and, where the index has several
// shards, the id. A [Store] keeps vectors by model and text, for the next
// process and for others.
package embedding

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
	"github.com/akin-search/akin/internal/cache"
	"github.com/akin-search/akin/internal/recovery"
)

// Errors of [Reranker.Scores]. Others are from internal/cache, a port, or
// the context.
var (
	// ErrModel says that the model failed, or does not answer any more.
	ErrModel = errors.New("the language model fails")
	// ErrLate says that the vector of the search did not come in time. It is
	// remembered when it comes.
	ErrLate = errors.New("the language model did not answer in time")
	// ErrRejected says that the model has no vector for the text of a search.
	ErrRejected = errors.New("the language model rejects the text")
)

// Sources reads documents of a cluster.
type Sources interface {
	// States returns documents of a concrete index that still are in the states
	// with these sequence numbers and, unless ids is nil, these ids, with their
	// sources at paths. If its error wraps [esclient.ErrTooLarge], fewer documents
	// may work.
	States(ctx context.Context, index string, ids []string, seqNos []int64, paths []string) ([]documents.DocRef, error)
	// Concrete returns what is known of concrete indices by their names.
	Concrete(ctx context.Context, indices []string) (map[string]documents.ConcreteIndex, error)
}

// Options configure a [Reranker].
type Options struct {
	// Maker makes the vectors of documents. Fields are paths in their sources;
	// a document's text is what is there, in this order.
	Maker  *Maker
	Fields []string
	// Search returns the vector of the text of a search. Rejected reports
	// whether an error of it is due to this text.
	Search   func(ctx context.Context, text string) ([]float32, error)
	Rejected func(error) bool
	// Sources reads documents.
	Sources Sources
	// Bytes limits the vectors in memory, approximately.
	Bytes int64
	// Budget is how long a search waits for its vector. TTL is how long what is
	// known of indices is used.
	Budget, TTL time.Duration
	// OnState, unless nil, is called when the model begins or ceases to answer,
	// and when it has changed.
	OnState func(State)
	// Guard recovers panics; nil does so silently.
	Guard *recovery.Guard
	// Client returns the client that a context belongs to, or ""; may be nil.
	Client func(context.Context) string
}

// A State says whether the model answers, and if not why. Changed says that
// another model answers under the name, so that all vectors are made again.
// Documents is why the last vectors of documents were not made, and Store why
// they are not kept.
type State struct {
	Ready     bool
	Err       error
	Changed   bool
	Documents error
	Store     error
}

const (
	// searchTimeout limits a call for the vector of a search, which goes on
	// when the search no longer waits. maxCalls limits these calls; one client
	// gets half.
	searchTimeout = 5 * time.Second
	maxCalls      = 32
	// searchBytes limits the remembered vectors of searches, some 8,000 of 384
	// numbers, and searchLife is how long they are remembered.
	searchBytes = 16 << 20
	searchLife  = time.Hour
	// maxFailures is how many calls for searches in a row may fail, or come too
	// late for one, before the model is not asked for a while.
	maxFailures = 5
	// indexBytes limits what is remembered of indices.
	indexBytes = 1 << 20
)

// A Reranker scores hits. Its methods may be called concurrently.
// [Reranker.Close] stops it.
type Reranker struct {
	options  Options
	seed     maphash.Seed
	loader   *cache.Loader
	searches *cache.Cache[searchKey] // []float32 of length 1
	indices  *cache.Cache[string]    // documents.ConcreteIndex
	slab     *slab
	queue    queue
	stop     context.CancelFunc
	working  sync.WaitGroup

	mu        sync.Mutex
	state     State
	documents error // as in a State
	failures  int   // of the last calls for searches, in a row
}

// A searchKey is a text and the number of the model that answers under the
// name.
type searchKey struct {
	model uint64
	text  string
}

// New returns a reranker that works in the background until it is closed.
func New(o Options) *Reranker {
	loader := cache.NewLoader(cache.Policy{
		Places: maxCalls, Timeout: searchTimeout, Guard: o.Guard, What: "asking a language model", Client: o.Client,
		Life: func(_ any, err error, ttl time.Duration) time.Duration {
			if err != nil && !errors.Is(err, ErrRejected) {
				return 0
			}
			return ttl
		},
	})
	working, stop := context.WithCancel(context.Background())
	r := &Reranker{
		options: o, seed: maphash.MakeSeed(), loader: loader, stop: stop, slab: newSlab(o.Bytes), queue: newQueue(),
		searches: cache.New(cache.Options[searchKey]{
			Bytes: searchBytes, Loader: loader, Cost: func(k searchKey, v any) int { return len(k.text) + 4*len(v.([]float32)) },
		}),
		indices: cache.New(cache.Options[string]{Bytes: indexBytes, Cost: func(index string, _ any) int { return 4 * len(index) }}),
	}
	r.working.Go(func() { r.work(working) })
	return r
}

// Close stops the work in the background and cancels the calls in flight.
func (r *Reranker) Close() {
	r.stop()
	r.working.Wait()
	r.loader.Close()
	r.searches.Close()
	r.indices.Close()
}

// State returns the last state; before the first answer of the model it is
// not ready.
func (r *Reranker) State() State {
	r.mu.Lock()
	s := r.state
	s.Documents = r.documents
	r.mu.Unlock()
	s.Store = r.options.Maker.Problem()
	return s
}

// Knows implements [expand.DocumentVectors]: a field below a path, such as
// title.english, has the same text.
func (r *Reranker) Knows(field string) bool { return r.State().Ready && r.Reads(field) }

// Reads reports whether vectors are made of a field.
func (r *Reranker) Reads(field string) bool {
	return slices.ContainsFunc(r.options.Fields, func(path string) bool { return field == path || strings.HasPrefix(field, path+".") })
}

// Begin asks for the vector of a search and does not wait.
func (r *Reranker) Begin(ctx context.Context, by *expand.Rerank) {
	if r.State().Ready {
		r.ask(ctx, by.Text)
	}
}

// Scores returns the cosine of each hit's vector, or NoVector for hits whose
// vectors are not remembered. It has these made in the background. It
// returns [expand.ErrNotRemembered] if none is remembered.
func (r *Reranker) Scores(ctx context.Context, by *expand.Rerank, hits []expand.Hit) ([]expand.HitScore, error) {
	if !r.State().Ready {
		return nil, ErrModel
	}
	waiting, cancel := context.WithTimeout(ctx, r.options.Budget)
	defer cancel()
	asked := r.ask(ctx, by.Text)
	states, err := r.states(waiting, hits)
	if err != nil {
		return nil, err
	}
	lacking := r.slab.lacking(states)
	r.queue.add(lacking)
	search, err := cache.Wait[[]float32](waiting, asked)
	if errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil && ctx.Err() == nil {
		err = ErrLate
		r.count(err)
	}
	if err != nil {
		return nil, err
	}
	if len(lacking) == len(hits) {
		return nil, expand.ErrNotRemembered
	}
	scores := make([]expand.HitScore, len(hits))
	cosines, known := r.slab.cosines(states, search)
	for k := range hits {
		scores[k] = expand.HitScore{Cosine: cosines[k], NoVector: !known[k]}
	}
	return scores, nil
}

// ask asks for the vector of a search, or joins who did. A call counts if it
// fails for all texts, or is answered in time.
func (r *Reranker) ask(ctx context.Context, text string) *cache.Flight {
	model := r.options.Maker.model()
	return cache.Start(ctx, r.searches, searchKey{model.number, strings.Clone(text)}, searchLife, func(ctx context.Context) ([]float32, error) {
		began := time.Now()
		v, err := r.options.Search(ctx, text)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && r.options.Rejected(err), err == nil && len(v) == len(model.probe) && normalize(v) != nil:
			return nil, ErrRejected
		case err == nil && len(v) != len(model.probe):
			err = fmt.Errorf("vectors of %d and of %d numbers", len(model.probe), len(v))
		}
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrModel, err)
			r.count(err)
			return nil, err
		}
		if time.Since(began) <= r.options.Budget {
			r.count(nil)
		}
		return v, nil
	})
}

// count counts the failures in a row. After some of them the model has to
// answer in the background before it is asked again.
func (r *Reranker) count(err error) {
	r.mu.Lock()
	if err == nil {
		r.failures = 0
	} else {
		r.failures++
	}
	failing := r.failures >= maxFailures
	r.mu.Unlock()
	if failing {
		r.become(State{Err: err})
		r.queue.wake()
	}
}

// become sets the state.
func (r *Reranker) become(s State) {
	r.mu.Lock()
	was := r.state
	r.state = State{Ready: s.Ready, Err: s.Err}
	if s.Ready && !was.Ready {
		r.failures = 0
	}
	r.mu.Unlock()
	first := !was.Ready && was.Err == nil && s.Err != nil
	if r.options.OnState != nil && (was.Ready != s.Ready || s.Changed || first) {
		r.options.OnState(s)
	}
}

// tell says why vectors of documents were not made, nil if they were.
func (r *Reranker) tell(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.documents = err
}

// A state is one write of a document. Its id and routing are "" in an index of
// one shard, where the number is enough. key is that in memory: two states have
// the same one with a probability of 3 in 100 million, among a million
// documents.
type state struct {
	key                uint64
	index, id, routing string
	seqNo              int64
}

// states returns the states that hits name. It asks for what is not
// remembered of their indices.
func (r *Reranker) states(ctx context.Context, hits []expand.Hit) ([]state, error) {
	indices := map[string]documents.ConcreteIndex{}
	var missing []string
	for i := range hits {
		index := hits[i].Index
		if _, met := indices[index]; met {
			continue
		}
		about, known, _ := cache.Peek[documents.ConcreteIndex](r.indices, index)
		indices[index] = about
		if !known {
			missing = append(missing, strings.Clone(index))
		}
	}
	if len(missing) > 0 {
		var found map[string]documents.ConcreteIndex
		err := r.loader.Run(ctx, "", func(ctx context.Context) (err error) {
			found, err = r.options.Sources.Concrete(ctx, missing)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("indices of hits: %w", err)
		}
		for _, index := range missing {
			indices[index] = found[index]
			r.indices.Put(index, found[index], nil, r.options.TTL)
		}
	}
	states := make([]state, len(hits))
	for i := range hits {
		about := indices[hits[i].Index]
		s := state{index: hits[i].Index, id: hits[i].ID, routing: hits[i].Routing, seqNo: hits[i].SeqNo}
		if about.Shards == 1 {
			s.id, s.routing = "", ""
		}
		s.key = maphash.Comparable(r.seed, struct {
			state
			uuid string
		}{s, about.UUID})
		states[i] = s
	}
	return states, nil
}

// Stats are counts of a [Reranker] since it was made.
type Stats struct {
	Hits, Misses     uint64 // hits whose vector was remembered, and was not
	Documents, Bytes uint64 // that are remembered, and what they take
	Waiting          int    // documents whose vectors are to be made
}

// Stats returns the counts so far.
func (r *Reranker) Stats() Stats {
	s := r.slab.stats()
	s.Waiting = r.queue.length()
	return s
}

// DocumentBytes returns what a document takes in memory, 0 before the model has
// answered.
func (r *Reranker) DocumentBytes() int {
	if dim := len(r.options.Maker.model().probe); dim > 0 {
		return DocumentBytes(dim)
	}
	return 0
}

// normalize scales a vector to length 1, and returns an error for zeros.
func normalize(v []float32) error {
	square := 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	length := math.Sqrt(square)
	if !(length > 0) || math.IsInf(length, 0) {
		return errors.New("a vector of no length")
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return nil
}
