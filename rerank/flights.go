package rerank

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/akin-search/akin/esclient"
)

// flights keep the same hit from being fetched twice at a time.
type flights struct {
	mu    sync.Mutex
	under map[vectorKey]*flight
}

// A flight is one call for the terms of hits. vectors and err are set when
// done is closed.
type flight struct {
	done    chan struct{}
	keys    []vectorKey
	vectors map[vectorKey]*vector
	terms   int // in vectors
	err     error
}

// A missing vector is that of field i of hit k.
type missing struct {
	i, k int
	key  vectorKey
}

// fetchVectors asks for the vectors that are missing and waits for those
// that others have asked for.
func (w *window) fetchVectors(ctx context.Context, vectors Vectors) error {
	var lacking []missing
	for k := range w.hits { // hit by hit, as they are asked for
		for i := range w.fields {
			if w.fields[i].vectors[k] == nil {
				lacking = append(lacking, missing{i, k, w.key(i, k)})
			}
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	mine, from, asked := w.join(lacking)
	if mine != nil {
		w.fly(ctx, vectors, mine, asked)
	}
	for n, at := range lacking {
		f := from[n]
		if f == nil { // it has come meanwhile
			continue
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if f.err != nil {
			return f.err
		}
		v := f.vectors[at.key]
		if v == nil {
			return ErrMissing
		}
		w.fields[at.i].vectors[at.k] = v
	}
	return nil
}

// join returns, for each of the vectors that are lacking, the flight that
// brings it, and of these the one that is to be made and what it has to ask
// for.
func (w *window) join(lacking []missing) (mine *flight, from []*flight, asked []missing) {
	fl := &w.memory.flights
	from = make([]*flight, len(lacking))
	fl.mu.Lock()
	defer fl.mu.Unlock()
	for n, at := range lacking {
		if f := fl.under[at.key]; f != nil {
			from[n] = f
			continue
		}
		// A flight may have ended since the memory was asked.
		if v, ok := w.memory.vectors.GetIfPresent(at.key); ok {
			w.fields[at.i].vectors[at.k] = v
			continue
		}
		if mine == nil {
			mine = &flight{done: make(chan struct{}), vectors: map[vectorKey]*vector{}}
		}
		from[n] = mine
		key := at.key.clone()
		mine.keys = append(mine.keys, key)
		fl.under[key] = mine
		asked = append(asked, at)
	}
	return mine, from, asked
}

// clone returns a key that does not hold on to the request that it came in.
func (k vectorKey) clone() vectorKey {
	k.index, k.uuid, k.id, k.field = strings.Clone(k.index), strings.Clone(k.uuid), strings.Clone(k.id), strings.Clone(k.field)
	return k
}

// fly makes the call for what is asked for, whatever becomes of it.
func (w *window) fly(ctx context.Context, vectors Vectors, f *flight, asked []missing) {
	f.err = w.guard.Do(fetching, func() error { return w.ask(ctx, vectors, f, asked) })
	fl := &w.memory.flights
	fl.mu.Lock()
	for _, key := range f.keys {
		delete(fl.under, key)
	}
	fl.mu.Unlock()
	close(f.done)
}

// ask asks for the terms of hits, some documents at a time.
func (w *window) ask(ctx context.Context, vectors Vectors, f *flight, asked []missing) error {
	for start := 0; start < len(asked); {
		end, docs := start, 0
		for ; end < len(asked); end++ { // a document's fields stand side by side
			if end == start || asked[end].k != asked[end-1].k {
				if docs++; docs > docsAtOnce {
					break
				}
			}
		}
		if err := w.askSome(ctx, vectors, f, asked[start:end], f.keys[start:end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// askSome asks for the terms of hits in one call, or several where that is too
// much for one, and remembers those that are of the state that the search has
// found.
func (w *window) askSome(ctx context.Context, vectors Vectors, f *flight, asked []missing, keys []vectorKey) error {
	var docs []esclient.VectorRequest
	var hits []int // of docs
	for _, at := range asked {
		if n := len(hits); n == 0 || hits[n-1] != at.k {
			h := &w.hits[at.k]
			docs, hits = append(docs, esclient.VectorRequest{Index: h.Index, ID: h.ID, Routing: h.Routing}), append(hits, at.k)
		}
		last := &docs[len(docs)-1]
		last.Fields = append(last.Fields, w.fields[at.i].Name)
	}
	answer, err := vectors.DocVectors(ctx, docs)
	if half := len(docs) / 2; half > 0 && errors.Is(err, esclient.ErrTooLarge) {
		first := slices.IndexFunc(asked, func(at missing) bool { return at.k == hits[half] })
		if err := w.askSome(ctx, vectors, f, asked[:first], keys[:first]); err != nil {
			return err
		}
		return w.askSome(ctx, vectors, f, asked[first:], keys[first:])
	}
	switch {
	case errors.Is(err, esclient.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case err != nil:
		return fmt.Errorf("terms of hits: %w", err)
	case len(answer) != len(docs):
		return fmt.Errorf("terms of hits: %d answers for %d", len(answer), len(docs))
	}
	for d := range docs {
		if answer[d].Err != nil {
			return answer[d].Err
		}
		if answer[d].Found && answer[d].Version == w.hits[hits[d]].Version {
			for i, field := range docs[d].Fields {
				w.remember(f, keys[i], answer[d].Fields[field])
			}
		}
		keys = keys[len(docs[d].Fields):]
	}
	if f.terms > maxTerms {
		return ErrTooLarge
	}
	return nil
}

// remember keeps the terms that a call brought.
func (w *window) remember(f *flight, key vectorKey, terms []esclient.TermFreq) {
	v := w.memory.newVector(terms)
	v.until = time.Now().Add(lifeOf(w.memory.seed, key))
	if len(v.terms) > 0 {
		w.memory.seen.set(fieldKey{key.index, key.uuid, key.field}, struct{}{})
	}
	f.vectors[key] = v
	f.terms += len(terms)
	w.memory.vectors.Set(key, v)
}
