package embedding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/expand"
)

const (
	// batchDocuments is how many documents are read, and go to the model in a
	// call: few, since the vectors of searches wait meanwhile where the model
	// does one thing at a time.
	batchDocuments = 16
	// moreAfter is how many batches in a row the model takes before it gets twice
	// as many documents at once, where it took no more before.
	moreAfter = 16
	// batchTimeout limits a call for so many, and the time that a model which
	// hung while it had them still gets no searches: what is too slow for it gets
	// fewer at once.
	batchTimeout = 15 * time.Second
	// probeEvery is how often the model is compared with what it was,
	// probeAgain how soon after a failure, and also the pause after one.
	probeEvery = 10 * time.Minute
	probeAgain = 5 * time.Second
	// maxText limits in bytes the part of a document's text that goes to the
	// model: some 256 to 500 word pieces, and models read about as many.
	maxText = 1500
)

// work compares the model with what it was, and has the vectors of waiting
// documents made, half of the time. It ends with ctx.
func (r *Reranker) work(ctx context.Context) {
	var probed time.Time
	most, taken := batchDocuments, 0 // documents at once, and the batches of so many that the model took
	for {
		var pause time.Duration
		var some []state
		idle := false
		err := r.options.Guard.Do("embedding documents", func() error {
			began := time.Now()
			if !r.State().Ready || began.Sub(probed) > probeEvery {
				if err := r.identify(ctx); err != nil {
					if ctx.Err() == nil {
						r.become(State{Err: err})
					}
					return err
				}
				probed = began
			}
			some = r.queue.take(most)
			idle = len(some) == 0
			defer r.queue.end()
			err := r.read(ctx, some)
			pause = time.Since(began)
			return err
		})
		if ctx.Err() != nil {
			return
		}
		switch failed := errors.Is(err, ErrModel); {
		case len(some) == 0:
		case failed: // it may take fewer at once, or answer nobody, which its probe tells
			r.tell(err)
			if most > 1 { // of one alone, searches ask again
				r.queue.add(r.slab.lackingOf(some))
			}
			probed = time.Time{}
			most, taken = max(most/2, 1), 0
		case err == nil:
			r.tell(nil)
			taken++
			if taken == moreAfter {
				most, taken = min(2*most, batchDocuments), 0
			}
		}
		woken := r.queue.woken
		switch {
		case err != nil:
			pause, woken = probeAgain, nil
		case idle:
			pause = probeEvery
		default:
			woken = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-time.After(pause):
		}
	}
}

// identify asks the model for the vector of the probe, which tells whether
// searches can use it. If it is not the model that it was, all vectors in
// memory are dropped. A model that was late has to answer as soon as searches
// need it.
func (r *Reranker) identify(ctx context.Context) error {
	late, timeout := errors.Is(r.State().Err, ErrLate), batchTimeout
	if late {
		timeout = searchTimeout
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began := time.Now()
	dim, replaced, changed, err := r.options.Maker.Identify(within)
	switch {
	case err != nil && late && within.Err() != nil && ctx.Err() == nil:
		return ErrLate
	case err != nil:
		return err
	case replaced:
		r.slab.reset(dim)
	}
	if late && time.Since(began) > r.options.Budget {
		return ErrLate
	}
	r.become(State{Ready: true, Changed: changed})
	return nil
}

// read reads documents of one index and has their vectors made. Those that
// have changed since they were found get none.
func (r *Reranker) read(ctx context.Context, found []state) error {
	if len(found) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	var ids []string
	seqNos := make([]int64, len(found))
	type write struct {
		id, routing string
		seqNo       int64
	}
	keys := map[write]uint64{}
	for i, s := range found {
		seqNos[i] = s.seqNo
		if s.id != "" {
			ids = append(ids, s.id)
		}
		keys[write{s.id, s.routing, s.seqNo}] = s.key
	}
	docs, err := r.options.Sources.States(ctx, found[0].index, ids, seqNos, r.options.Fields)
	switch {
	case errors.Is(err, esclient.ErrTooLarge) && len(found) > 1:
		if err := r.read(ctx, found[:len(found)/2]); err != nil {
			return err
		}
		return r.read(ctx, found[len(found)/2:])
	case errors.Is(err, esclient.ErrTooLarge):
		r.slab.put(found[0].key, nil)
		return nil
	case err != nil:
		return fmt.Errorf("documents to make vectors of: %w", err)
	}
	var places []uint64
	var texts []string
	for i := range docs {
		w := write{docs[i].ID, docs[i].Routing, docs[i].SeqNo}
		if ids == nil {
			w = write{seqNo: w.seqNo}
		}
		if key, ok := keys[w]; ok {
			places, texts = append(places, key), append(texts, r.text(&docs[i]))
		}
	}
	return r.remember(ctx, places, texts)
}

// text returns the text of a document of which a vector is made.
func (r *Reranker) text(d *documents.DocRef) string { return Text(d.Source, r.options.Fields) }

// Text returns the part of a document's texts at paths of its source that
// goes to a model; "" if it has none.
func Text(source []byte, paths []string) string {
	texts, err := documents.SourceTexts(source, paths)
	if err != nil { // no such object: then there is no text either
		return ""
	}
	text := strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// remember keeps the vectors of texts by key.
func (r *Reranker) remember(ctx context.Context, keys []uint64, texts []string) error {
	model := r.options.Maker.model().number
	vectors, _, err := r.options.Maker.Make(ctx, texts)
	if model != r.options.Maker.model().number { // they are of another model
		return err
	}
	for i := range vectors {
		r.slab.put(keys[i], vectors[i])
	}
	return err
}

// Warm makes the vectors of documents that a scan has found, with their
// sources at [Options.Fields], unless they are remembered. It returns false
// if there is no room for more.
func (r *Reranker) Warm(ctx context.Context, docs []documents.DocRef) (room bool, err error) {
	if !r.State().Ready {
		return true, ErrModel
	}
	hits := make([]expand.Hit, len(docs))
	for i, d := range docs {
		hits[i] = expand.Hit{Index: d.Index, ID: d.ID, Routing: d.Routing, SeqNo: d.SeqNo}
	}
	states, err := r.states(ctx, hits)
	if err != nil {
		return true, err
	}
	var missing []uint64
	var texts []string
	for _, k := range r.slab.unknown(states) {
		missing, texts = append(missing, states[k].key), append(texts, r.text(&docs[k]))
	}
	if len(missing) > 0 && r.slab.full() {
		return false, nil
	}
	return true, r.remember(ctx, missing, texts)
}
