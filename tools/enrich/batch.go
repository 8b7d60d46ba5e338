package enrich

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/simmatrix"
)

// A Cluster finds, reads and writes documents, like [documents.API].
type Cluster interface {
	Count(ctx context.Context, index string, query []byte) (int64, error)
	ScanRefs(ctx context.Context, o documents.RefOptions, fn func(docs []documents.DocRef) error) error
	TermFreqs(ctx context.Context, fields []string, docs []documents.DocRef) ([]documents.DocTerms, error)
	Refresh(ctx context.Context, index string) error
	UpdateDocs(ctx context.Context, updates []documents.DocUpdate) ([]documents.UpdateResult, error)
}

const (
	// batchDocs is how many documents a batch has at most. batchBytes is the limit
	// for its texts, except for one longer text. Writing takes about as much, and
	// engines accept 100 MB in a request.
	batchDocs, batchBytes = 500, 8 << 20
	// defaultWorkers is the default number of batches in flight.
	defaultWorkers = 3
	// MaxTries is how many times an interrupted call is made.
	MaxTries = 6
	// FirstPause is the pause before the second try. Each later pause is twice as
	// long, so that a node has half a minute to come back.
	FirstPause = time.Second
)

// each calls fn with batches of matching documents, workers at once; 0 means
// [defaultWorkers]. It ends with the first error.
func each(
	ctx context.Context, c Cluster, o documents.RefOptions, workers int, fn func(ctx context.Context, docs []documents.DocRef) error,
) error {
	if workers <= 0 {
		workers = defaultWorkers
	}
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var batch []documents.DocRef
	size := 0
	flush := func() {
		docs := batch
		batch, size = nil, 0
		group.Go(func() error {
			if err := inGroup.Err(); err != nil {
				return err // another batch has failed meanwhile
			}
			return fn(inGroup, docs)
		})
	}
	err := c.ScanRefs(inGroup, o, func(docs []documents.DocRef) error {
		for i := range docs {
			added := 0
			for _, text := range docs[i].Texts {
				added += len(text)
			}
			if len(batch) == batchDocs || len(batch) > 0 && size+added > batchBytes {
				flush()
			}
			batch = append(batch, docs[i])
			size += added
		}
		return inGroup.Err()
	})
	if err == nil && len(batch) > 0 {
		flush()
	}
	// A worker's error ends the scan, so it takes precedence.
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}

// Retry calls op until its error is not temporary, at most [MaxTries] times.
func Retry(ctx context.Context, op func() error) error {
	return RetryAfter(ctx, FirstPause, op, func(error, time.Duration) {})
}

// RetryAfter is [Retry] with another first pause. It calls tell before each
// pause.
func RetryAfter(ctx context.Context, wait time.Duration, op func() error, tell func(err error, wait time.Duration)) error {
	for try := 1; ; try++ {
		err := op()
		if err == nil || !documents.Interrupted(err) || ctx.Err() != nil || try == MaxTries {
			return err
		}
		tell(err, wait)
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

// A meter counts progress and reports it. Calls must not overlap.
type meter struct {
	progress    simmatrix.Progress // may be nil
	stage       string
	total, done int // total is 0 if unknown
}

func (m *meter) add(n int) {
	m.done += n
	if m.total > 0 {
		m.total = max(m.total, m.done) // documents may have been added since they were counted
	}
	m.progress.Report(m.stage, m.done, m.total)
}
