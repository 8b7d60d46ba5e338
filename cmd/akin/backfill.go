package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/pflag"

	"github.com/akin-search/akin/backfill"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
)

// fillFlags are the flags of the commands that give documents what they lack.
type fillFlags struct {
	indexFieldFlags

	all, dryRun, follow bool
	interval            time.Duration // between two rounds of follow
}

// minInterval and maxInterval bound the time between two rounds.
const minInterval, maxInterval = time.Second, time.Hour

// fillHelp is what these commands have in common.
const fillHelp = `Each document is updated in part, once: its _version and _seq_no go up, and ingest
pipelines do not run. One that somebody writes at the same time is left as it is written,
and done in another round. The exit status is 1 where documents are left after five
rounds, and where some fail. backfill can be stopped at any time; the same command goes on
from there.

With --follow it does not end: every --interval it looks at the documents that were
written since, also in part, and at indices that are new to --index. It ends with exit
status 0 at SIGTERM or SIGINT.`

func (f *fillFlags) register(flags *pflag.FlagSet, what string) {
	f.indexFieldFlags.register(flags)
	flags.BoolVar(&f.all, "all", false, "compute all "+what+" again; documents that hold the right ones are not written")
	flags.BoolVar(&f.dryRun, "dry-run", false, "count the documents to do, in each index, and write nothing")
	flags.BoolVar(&f.follow, "follow", false, "go on with the documents that are written later, until SIGTERM")
	flags.DurationVar(&f.interval, "interval", 10*time.Second, "time between two looks of --follow, 1s to 1h")
}

// check returns all that is wrong with the flags.
func (f *fillFlags) check(flags *pflag.FlagSet) []error {
	errs := f.indexFieldFlags.check()
	if f.follow && f.dryRun {
		errs = append(errs, errors.New("--follow and --dry-run do not go together"))
	}
	if !f.follow && flags.Changed("interval") {
		errs = append(errs, errors.New("--interval is for --follow"))
	}
	if f.interval < minInterval || f.interval > maxInterval {
		errs = append(errs, fmt.Errorf("--interval: %v not in 1s to 1h", f.interval))
	}
	return errs
}

// A filling is what documents are given.
type filling struct {
	task backfill.Task
	// kind and id name it, such as "weights" and their id; empty says what the
	// documents that count as such have none of.
	kind, id, empty string
	// check returns the concrete indices of an expression that have the field, or
	// why their documents cannot be given it.
	check func(ctx context.Context, index string) ([]string, error)
}

// fill does what is to do, or counts it.
func (f *fillFlags) fill(ctx context.Context, stderr io.Writer, cluster documents.API, g filling) error {
	indices, err := g.check(ctx, f.Index)
	if err != nil {
		return err
	}
	if f.follow {
		return f.followIndex(ctx, cluster, g, slog.New(slog.NewTextHandler(stderr, nil)))
	}
	query := g.task.Missing
	if f.all {
		query = g.task.Every
	}
	// What was done a moment ago is not to be counted again; without the right
	// to refresh some of it may be.
	err = cluster.Refresh(ctx, f.Index)
	if refusal, ok := errors.AsType[*answers.Error](err); err != nil && (!ok || refusal.Status != http.StatusForbidden) {
		return err
	}
	docs, err := cluster.Count(ctx, f.Index, query)
	if err != nil {
		return err
	}
	report := terminal.NewProgress(stderr)
	defer report.End()
	report.Tell("%s %s: %d documents to do", g.kind, g.id, docs)
	if !f.dryRun {
		if docs == 0 {
			return nil
		}
		return f.run(ctx, cluster, g, int(docs), report)
	}
	for _, name := range indices {
		docs, err := cluster.Count(ctx, name, query)
		if err != nil {
			return err
		}
		report.Tell("  %s: %d", name, docs)
	}
	return nil
}

// maxFailuresShown is how many documents that fail are shown.
const maxFailuresShown = 10

func (f *fillFlags) run(ctx context.Context, cluster documents.API, g filling, docs int, report *terminal.Progress) error {
	shown := 0
	counts, err := backfill.Run(ctx, cluster, g.task, backfill.Options{
		Index: f.Index, All: f.all, Workers: f.workers, Docs: docs, Progress: report.Step,
		OnFailure: func(doc documents.DocRef, err error) {
			if shown++; shown <= maxFailuresShown {
				report.Tell("document %q of index %q: %v", doc.ID, doc.Index, err)
			}
		},
		OnRound: func(conflicts int, err error) {
			if err != nil {
				report.Tell("%v; going on with what is left", err)
				return
			}
			report.Tell("%d documents were written by others meanwhile; going on with those", conflicts)
		},
	})
	report.Tell("%d documents written, %d of them without %s; %d unchanged, %d deleted meanwhile, %d conflicts left, %d failed",
		counts.Written, counts.Empty, g.empty, counts.Unchanged, counts.Gone, counts.Conflicts, counts.Failed)
	if counts.Unanswered > 0 {
		report.Tell("up to %d more documents were under way and got no answer: they may be written, too", counts.Unanswered)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if ctx.Err() != nil || err != nil && documents.Interrupted(err) {
		return fmt.Errorf("%w; the same command goes on with the rest", err)
	}
	return err
}

// progressEvery is the time between two lines on a long round of follow.
const progressEvery = 30 * time.Second

// followIndex gives documents what they lack until ctx ends.
func (f *fillFlags) followIndex(ctx context.Context, cluster documents.API, g filling, log *slog.Logger) error {
	log = log.With("indices", f.Index, "field", f.field, g.kind, g.id)
	log.InfoContext(ctx, "following", "interval", f.interval)
	told, skipped, first := time.Now(), map[string]string{}, true
	err := backfill.Follow(ctx, cluster, g.task, backfill.FollowOptions{
		Options: backfill.Options{
			Index: f.Index, All: f.all, Workers: f.workers,
			Progress: func(_ string, done, _ int) {
				if time.Since(told) >= progressEvery {
					told = time.Now()
					log.InfoContext(ctx, "under way", "documents", done)
				}
			},
			OnFailure: func(doc documents.DocRef, err error) {
				log.WarnContext(ctx, "passed over until it is written again", "document", doc.ID, "index", doc.Index, "err", err)
			},
		},
		Interval: f.interval,
		Check: func(ctx context.Context, index string) error {
			_, err := g.check(ctx, index)
			if err == nil {
				delete(skipped, index)
			}
			return err
		},
		OnSkip: func(index string, err error) {
			if skipped[index] != err.Error() && !errors.Is(err, mapping.ErrNotText) {
				log.WarnContext(ctx, "an index is left out until it is ready", "index", index, "err", err)
			}
			skipped[index] = err.Error()
		},
		AfterRound: func(n backfill.Counts, err error, wait time.Duration) {
			told = time.Now()
			if n != (backfill.Counts{}) || first {
				log.InfoContext(ctx, "round", "written", n.Written, "without_"+g.empty, n.Empty, "unchanged", n.Unchanged,
					"deleted", n.Gone, "conflicts", n.Conflicts, "failed", n.Failed, "unanswered", n.Unanswered)
			}
			if first = first && err != nil; err != nil {
				log.WarnContext(ctx, "interrupted", "wait", wait, "err", err)
			}
		},
	})
	if ctx.Err() == nil {
		return err
	}
	log.InfoContext(context.WithoutCancel(ctx), "ended")
	return nil
}
