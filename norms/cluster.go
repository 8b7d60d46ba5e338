package norms

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/simmatrix"
)

// A Reader reads the documents of indices. [esclient.Client] is one.
type Reader interface {
	// ScanRefs calls fn with the documents that match, some at a time. fn may keep
	// them.
	ScanRefs(ctx context.Context, o esclient.RefOptions, fn func(docs []esclient.DocRef) error) error
	// TermFreqs returns the terms of documents as they are now, in their order, or
	// an error that wraps [esclient.ErrTooLarge].
	TermFreqs(ctx context.Context, field string, docs []esclient.DocRef) ([]esclient.DocTerms, error)
}

// A Writer writes the documents of indices. [esclient.Client] is one.
type Writer interface {
	// Refresh makes what was written to indices visible to searches.
	Refresh(ctx context.Context, index string) error
	// UpdateDocs makes updates and returns what has become of each, in their order.
	// After an error nobody knows which have been made.
	UpdateDocs(ctx context.Context, updates []esclient.DocUpdate) ([]esclient.UpdateResult, error)
}

// A Cluster reads and writes documents.
type Cluster interface {
	Reader
	Writer
}

const (
	// termsAtOnce is how many documents are asked for their terms in one call at
	// most, and batchDocs how many are written.
	termsAtOnce = 100
	batchDocs   = 500
	// DefaultWorkers is how many batches are under way at the same time where
	// nothing else is said.
	DefaultWorkers = 3
	// maxTries is how often a call is made that the cluster interrupts, and
	// firstPause the pause before the second; each later one is twice as long.
	maxTries   = 6
	firstPause = time.Second
)

// eachBatch calls fn with the documents that match, batchDocs at a time and
// workers times at once.
func eachBatch(
	ctx context.Context, r Reader, o esclient.RefOptions, workers int, fn func(ctx context.Context, docs []esclient.DocRef) error,
) error {
	if workers <= 0 {
		workers = DefaultWorkers
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var batch []esclient.DocRef
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
	err := r.ScanRefs(inGroup, o, func(docs []esclient.DocRef) error {
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

// A termReader reads the terms of any number of documents, some at a time, so
// that no more are in memory than a [Reader] returns at once. Its methods may
// be called at the same time.
type termReader struct {
	read func(ctx context.Context, docs []esclient.DocRef) ([]esclient.DocTerms, error)

	mu sync.Mutex
	// fewer is by how much less than termsAtOnce documents are asked for, so that
	// not every call for large ones has to fail first.
	fewer int
}

// each calls fn with the terms of each document, in their order. A document
// that has too many by itself gets an error that wraps [esclient.ErrTooLarge].
func (t *termReader) each(ctx context.Context, docs []esclient.DocRef, fn func(i int, terms *esclient.DocTerms) error) error {
	for start := 0; start < len(docs); {
		n := min(t.askFor(0), len(docs)-start)
		found, err := t.read(ctx, docs[start:start+n])
		if errors.Is(err, esclient.ErrTooLarge) {
			if n > 1 {
				t.askFor(n / 2)
				continue
			}
			found, err = []esclient.DocTerms{{Err: err}}, nil
		}
		if err == nil && len(found) != n {
			err = fmt.Errorf("the terms of %d documents for %d", len(found), n)
		}
		if err != nil {
			return err
		}
		t.enlarge()
		for i := range found {
			if err := fn(start+i, &found[i]); err != nil {
				return err
			}
		}
		start += n
	}
	return nil
}

// askFor returns how many documents to ask for, from now on at most n unless
// that is 0.
func (t *termReader) askFor(n int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 {
		t.fewer = max(t.fewer, termsAtOnce-n)
	}
	return termsAtOnce - t.fewer
}

// enlarge has one document more asked for.
func (t *termReader) enlarge() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fewer = max(t.fewer-1, 0)
}

// retry calls op until it returns an error that does not pass, or none, at most
// maxTries times.
func retry(ctx context.Context, op func() error) error {
	wait := firstPause
	for try := 1; ; try++ {
		err := op()
		if err == nil || !esclient.Interrupted(err) || ctx.Err() != nil || try == maxTries {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait *= 2
	}
}

// pause waits, or returns the error of ctx if that ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// outlast returns a context that ends some time after ctx does. The caller ends
// it before.
func outlast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		_ = pause(longer, d) // whichever comes first
		end()
	})
	return longer, func() {
		forget()
		end()
	}
}

// A meter counts documents for a Progress.
type meter struct {
	progress simmatrix.Progress
	stage    string
	total    int
	mu       sync.Mutex
	done     int
}

// add reports n documents more.
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
