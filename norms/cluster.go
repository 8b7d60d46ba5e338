package norms

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

// A Reader reads the documents of indices. [documents.API] is one.
type Reader interface {
	// ScanRefs calls fn with the documents that match, some at a time. fn may keep
	// them.
	ScanRefs(ctx context.Context, o documents.RefOptions, fn func(docs []documents.DocRef) error) error
	// TermFreqs returns the terms of documents as they are now, in their order, or
	// an error that wraps [esclient.ErrTooLarge].
	TermFreqs(ctx context.Context, field string, docs []documents.DocRef) ([]documents.DocTerms, error)
}

// A Cluster reads and writes documents. [documents.API] is one.
type Cluster interface {
	Reader
	// Refresh makes what was written to indices visible to searches.
	Refresh(ctx context.Context, index string) error
	// UpdateDocs makes updates and returns what has become of each, in their order.
	// After an error nobody knows which have been made.
	UpdateDocs(ctx context.Context, updates []documents.DocUpdate) ([]documents.UpdateResult, error)
}

const (
	// termsAtOnce is how many documents are asked for their terms in one call at
	// most, and batchDocs how many are written.
	termsAtOnce = 100
	batchDocs   = 500
	// DefaultWorkers is how many batches are under way at the same time by default.
	DefaultWorkers = 3
	// maxTries is how often a call is made that the cluster interrupts, and
	// firstPause the pause before the second; each later one is twice as long.
	maxTries   = 6
	firstPause = time.Second
)

// eachBatch calls fn with batches of what matches, workers times at once.
func eachBatch(
	ctx context.Context, r Reader, o documents.RefOptions, workers int, fn func(ctx context.Context, docs []documents.DocRef) error,
) error {
	if workers <= 0 {
		workers = DefaultWorkers
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var batch []documents.DocRef
	flush := func() {
		docs := batch
		batch = nil
		group.Go(func() error {
			if err := inGroup.Err(); err != nil {
				return err // another batch has failed while this one waited
			}
			return fn(inGroup, docs)
		})
	}
	err := r.ScanRefs(inGroup, o, func(docs []documents.DocRef) error {
		if batch = append(batch, docs...); len(batch) >= batchDocs {
			flush()
		}
		return inGroup.Err()
	})
	if err == nil && len(batch) > 0 {
		flush()
	}
	// The error of a worker is why the scan has ended, and not the other way round.
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}

// A termReader reads the terms of any number of documents, no more at a time
// than a [Reader] returns at once. It is safe for concurrent use.
type termReader struct {
	read func(ctx context.Context, docs []documents.DocRef) ([]documents.DocTerms, error)
	// fewer than termsAtOnce documents are asked for by so many, so that not every
	// call for large ones has to fail first.
	fewer atomic.Int64
}

// each calls fn with the terms of each document, in their order. One that has
// too many by itself gets an error that wraps [documents.ErrTooLarge].
func (t *termReader) each(ctx context.Context, docs []documents.DocRef, fn func(i int, terms *documents.DocTerms) error) error {
	for start := 0; start < len(docs); {
		fewer := t.fewer.Load()
		n := min(termsAtOnce-int(fewer), len(docs)-start)
		found, err := t.read(ctx, docs[start:start+n])
		if errors.Is(err, esclient.ErrTooLarge) {
			if n > 1 {
				t.fewer.Store(int64(termsAtOnce - n/2))
				continue
			}
			found, err = []documents.DocTerms{{Err: err}}, nil
		}
		if err == nil && len(found) != n {
			err = fmt.Errorf("the terms of %d documents for %d", len(found), n)
		}
		if err != nil {
			return err
		}
		if fewer > 0 {
			t.fewer.CompareAndSwap(fewer, fewer-1)
		}
		for i := range found {
			if err := fn(start+i, &found[i]); err != nil {
				return err
			}
		}
		start += n
	}
	return nil
}

// retry calls op until its error is none that passes, at most maxTries times.
func retry(ctx context.Context, op func() error) error {
	wait := firstPause
	for try := 1; ; try++ {
		err := op()
		if err == nil || !documents.Interrupted(err) || ctx.Err() != nil || try == maxTries {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

type meter struct {
	progress simmatrix.Progress
	stage    string
	total    int
	mu       sync.Mutex
	done     int
}

func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	if m.progress != nil {
		total := m.total
		if total > 0 {
			total = max(total, m.done) // documents may have come since they were counted
		}
		m.progress(m.stage, m.done, total)
	}
}
