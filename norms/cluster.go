package norms

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/simmatrix"
)

// ErrInterrupted is wrapped by the errors of a cluster that may pass: it is
// busy, a node is gone, or it has lost the state of a scan.
var ErrInterrupted = errors.New("interrupted")

// ErrTooLarge is wrapped by the errors of a [Reader] that has been asked for
// more terms at once than it can hold. Fewer documents may do.
var ErrTooLarge = errors.New("the terms are too many")

// A Doc names a document as it was when it was found.
type Doc struct {
	// Index is the concrete index, ID the _id and Routing the _routing, "" where
	// the document has none.
	Index, ID, Routing string
	// SeqNo and PrimaryTerm are the condition on which it is written, and Version
	// tells whether its terms are of the same state.
	SeqNo, PrimaryTerm, Version int64
	// HasNorm says that it holds a norm, of whatever weights.
	HasNorm bool
}

// DocTerms are the terms of a document's field.
type DocTerms struct {
	// Found is false for a document that is not there any more, and Version is
	// the one that the terms are of.
	Found   bool
	Version int64
	// Terms are in any order, none twice.
	Terms []TermFreq
	// Err is why the terms of this document cannot be had.
	Err error
}

// A Reader reads the documents of an index.
type Reader interface {
	// Docs calls fn with the documents that match a query, some at a time, in any
	// order and as they were at the beginning. fn may keep them. It ends at the
	// first error, of fn too.
	Docs(ctx context.Context, query []byte, fn func(docs []Doc) error) error
	// Terms returns the terms of documents as they are now, in their order. It
	// bounds them by their bytes, and returns an error that wraps [ErrTooLarge]
	// where they are more.
	Terms(ctx context.Context, docs []Doc) ([]DocTerms, error)
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
func eachBatch(ctx context.Context, r Reader, query []byte, workers int, fn func(ctx context.Context, docs []Doc) error) error {
	if workers <= 0 {
		workers = DefaultWorkers
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var batch []Doc
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
	err := r.Docs(inGroup, query, func(docs []Doc) error {
		if batch = append(batch, docs...); len(batch) >= batchDocs {
			flush()
		}
		return inGroup.Err()
	})
	if err == nil && len(batch) > 0 {
		flush()
	}
	// What a worker has met is why the scan has ended, and not the other way round.
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}

// A termReader reads the terms of any number of documents, a part of them at a
// time, so that no more are held than a [Reader] returns at once. It is safe
// for use by several goroutines.
type termReader struct {
	read func(ctx context.Context, docs []Doc) ([]DocTerms, error)

	mu sync.Mutex
	// fewer is how many documents less than termsAtOnce are asked for: where they
	// are large, not every call has to fail before.
	fewer int
}

// each calls fn with the terms of each document, in their order. Those of a
// document which alone has too many are an error that wraps [ErrTooLarge] in
// its [DocTerms].
func (t *termReader) each(ctx context.Context, docs []Doc, fn func(i int, terms *DocTerms) error) error {
	for start := 0; start < len(docs); {
		n := min(t.atOnce(), len(docs)-start)
		found, err := t.read(ctx, docs[start:start+n])
		if errors.Is(err, ErrTooLarge) {
			if n > 1 {
				t.reduce(n / 2)
				continue
			}
			found, err = []DocTerms{{Err: err}}, nil
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

// atOnce returns how many documents to ask for, at least 1.
func (t *termReader) atOnce() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return termsAtOnce - t.fewer
}

// reduce asks for n documents at most from now on.
func (t *termReader) reduce(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fewer = max(t.fewer, termsAtOnce-n)
}

// enlarge asks for one document more.
func (t *termReader) enlarge() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fewer = max(t.fewer-1, 0)
}

// ReadTerms returns the terms of documents in their order, from as many calls
// of r as it takes. Those of a document which alone has too many are an error
// that wraps [ErrTooLarge] in its [DocTerms].
func ReadTerms(ctx context.Context, r Reader, docs []Doc) ([]DocTerms, error) {
	t := termReader{read: r.Terms}
	all := make([]DocTerms, 0, len(docs))
	err := t.each(ctx, docs, func(_ int, terms *DocTerms) error {
		all = append(all, *terms)
		return nil
	})
	return all, err
}

// again calls op until it returns an error that does not pass, or none, at most
// maxTries times.
func again(ctx context.Context, op func() error) error {
	wait := firstPause
	for try := 1; ; try++ {
		err := op()
		if err == nil || !errors.Is(err, ErrInterrupted) || ctx.Err() != nil || try == maxTries {
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

// add tells of n documents more.
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

// alone calls fn while the progress is not told.
func (m *meter) alone(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn()
}
