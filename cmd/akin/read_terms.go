package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/enrich"
)

// A reader reads the slices of a plan, some side by side.
type reader struct {
	cluster    documents.API
	plan       scanPlan
	spool      *spool // nil keeps all in memory
	report     *cli.Progress
	memory     int64 // bytes that the texts may take; 0 is no bound
	firstPause time.Duration

	mu    sync.Mutex
	texts *learn.Texts // of the slices that are done, without a spool
	docs  int          // read so far
	bytes int64        // held so far
}

func (r *reader) read(ctx context.Context) (*learn.Texts, error) {
	r.report.Step("reading documents", 0, int(r.plan.Docs))
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(r.plan.sideBySide())
	for k := range r.plan.Slices {
		if r.spool.has(k) {
			continue
		}
		group.Go(func() error {
			if err := inGroup.Err(); err != nil {
				return err
			}
			texts, err := r.slice(inGroup, k)
			if err != nil {
				return err
			}
			return r.keep(inGroup, k, texts)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for k := range r.plan.Slices {
		if r.spool == nil {
			break
		}
		texts, err := r.spool.load(ctx, k)
		if err != nil {
			return nil, err
		}
		r.texts.Append(texts)
		if err := r.add(0, r.texts.Bytes()-r.bytes); err != nil {
			return nil, err
		}
		r.report.Step("reading the spool", k+1, r.plan.Slices)
	}
	return r.texts, ctx.Err()
}

// slice reads a slice, from its beginning as often as it is interrupted.
func (r *reader) slice(ctx context.Context, k int) (texts *learn.Texts, err error) {
	err = enrich.RetryAfter(ctx, r.firstPause, func() error {
		texts, err = r.try(ctx, k)
		return err
	}, func(err error, pause time.Duration) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report.Tell("%v; reading slice %d of %d again in %v", err, k+1, r.plan.Slices, pause)
	})
	return texts, err
}

// try reads a slice once. What it has counted of one that is interrupted is
// taken back.
func (r *reader) try(ctx context.Context, k int) (_ *learn.Texts, err error) {
	texts := learn.NewTexts()
	docs, held := 0, int64(0)
	defer func() {
		if err != nil {
			_ = r.add(-docs, -held)
		}
	}()
	counted := func() error {
		grown := texts.Bytes() - held
		docs, held = docs+1, held+grown
		return r.add(1, grown)
	}
	if r.plan.Terms {
		return texts, r.cluster.ExactTerms(ctx, r.plan.slice(k), func(_ string, own, nested [][]string) error {
			texts.AddTerms(own...)
			for _, terms := range nested {
				texts.AddTerms(terms)
			}
			return counted()
		})
	}
	return texts, r.cluster.Scan(ctx, r.plan.slice(k), func(_ string, own, nested []string) error {
		texts.Add(own...)
		for _, text := range nested {
			texts.Add(text)
		}
		return counted()
	})
}

// add adds to the documents read and to the memory used. Its error wraps
// [simmatrix.ErrMemory].
func (r *reader) add(docs int, bytes int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.docs += docs; docs != 0 {
		r.report.Step("reading documents", r.docs, int(r.plan.Docs))
	}
	r.bytes += bytes
	if r.memory > 0 && r.bytes > r.memory {
		return fmt.Errorf("%w: the texts of the first %d documents take %d MB: raise --max-memory or lower --max-docs",
			simmatrix.ErrMemory, r.docs, r.bytes>>20)
	}
	return nil
}

// keep keeps the texts of a slice that is done.
func (r *reader) keep(ctx context.Context, k int, texts *learn.Texts) error {
	if r.spool != nil {
		if err := r.spool.write(ctx, sliceFile(k), func(w io.Writer) error { return learn.EncodeTexts(w, texts) }); err != nil {
			return err
		}
		return r.add(0, -texts.Bytes())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.texts.Bytes() + texts.Bytes()
	r.texts.Append(texts)
	r.bytes += r.texts.Bytes() - before
	return nil
}
