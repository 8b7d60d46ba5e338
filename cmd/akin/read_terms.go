package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/akin-search/akin/esclient"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/internal/cli"
	"github.com/akin-search/akin/simmatrix"
	"github.com/akin-search/akin/simmatrix/learn"
	"github.com/akin-search/akin/tools/enrich"
)

// An indexReading is what to read.
type indexReading struct {
	Client  *esclient.Client
	Scan    documents.ScanOptions // which documents match
	MaxDocs int                   // read this many of them, a random choice; 0 is all
	Terms   bool                  // read documents as index terms, not as texts
	Spool   string                // the folder that keeps what has been read, "" for none
	Memory  int64                 // bytes that the texts may take; 0 is no bound
	Report  *cli.Progress
}

// Texts reads the documents, from where an interrupted run with the spool has
// left off. The spool is nil where none is asked for.
func (x *indexReading) Texts(ctx context.Context) (*learn.Texts, *spool, error) {
	docs := documents.API{Client: x.Client}
	count, err := docs.Count(ctx, x.Scan.Index, x.Scan.Query)
	if err != nil {
		return nil, nil, err
	}
	indices, err := docs.Indices(ctx, x.Scan.Index)
	if err != nil {
		return nil, nil, err
	}
	plan := newScanPlan(x.Scan, indices, count, x.MaxDocs, x.Terms)
	var spool *spool
	if x.Spool != "" {
		if spool, plan, err = openSpool(ctx, x.Spool, plan); err != nil {
			return nil, nil, err
		}
		if done := spool.finished(plan.Slices); done > 0 {
			x.Report.Tell("%s: %d of %d slices have been read before", x.Spool, done, plan.Slices)
		}
	}
	r := &reader{indexReading: x, plan: plan, spool: spool, firstPause: enrich.FirstPause, texts: learn.NewTexts()}
	texts, err := r.read(ctx)
	if err != nil {
		return nil, nil, spool.explain(err, plan.Slices)
	}
	if x.MaxDocs > 0 {
		texts.Limit(x.MaxDocs)
	}
	x.Report.Tell("read %d documents with %d distinct words", texts.Docs(), len(texts.Words()))
	return texts, spool, nil
}

// A reader reads the slices of a plan, some side by side.
type reader struct {
	*indexReading

	plan       scanPlan
	spool      *spool // nil keeps all in memory
	firstPause time.Duration

	mu    sync.Mutex
	texts *learn.Texts // of the slices that are done, without a spool
	docs  int          // read so far
	bytes int64        // held so far
}

func (r *reader) read(ctx context.Context) (*learn.Texts, error) {
	r.Report.Step("reading documents", 0, int(r.plan.Docs))
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
		r.Report.Step("reading the spool", k+1, r.plan.Slices)
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
		r.Report.Tell("%v; reading slice %d of %d again in %v", err, k+1, r.plan.Slices, pause)
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
	cluster := documents.API{Client: r.Client}
	if r.plan.Terms {
		return texts, cluster.ExactTerms(ctx, r.plan.slice(k), func(_ string, own, nested [][]string) error {
			texts.AddTerms(own...)
			for _, terms := range nested {
				texts.AddTerms(terms)
			}
			return counted()
		})
	}
	return texts, cluster.Scan(ctx, r.plan.slice(k), func(_ string, own, nested []string) error {
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
		r.Report.Step("reading documents", r.docs, int(r.plan.Docs))
	}
	r.bytes += bytes
	if r.Memory > 0 && r.bytes > r.Memory {
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
