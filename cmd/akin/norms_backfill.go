package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/akin-search/akin/backfill"
	"github.com/akin-search/akin/cmd/akin/internal/connect"
	"github.com/akin-search/akin/cmd/akin/internal/terminal"
	"github.com/akin-search/akin/esclient/answers"
	"github.com/akin-search/akin/esclient/documents"
	"github.com/akin-search/akin/esclient/mapping"
	"github.com/akin-search/akin/norms"
)

// backfillFlags are the flags of "norms backfill".
type backfillFlags struct {
	normsFlags

	redis               connect.Redis
	weights             string
	all, dryRun, follow bool
	interval            time.Duration // between two rounds of follow
}

// minInterval and maxInterval bound the time between two rounds.
const minInterval, maxInterval = time.Second, time.Hour

const backfillHelp = `backfill computes ‖Wy‖ of every document that has the field and does not have it by these
weights yet, and stores it in the document with the id of the weights: in ` + norms.Object + ` and
` + norms.WeightsObject + `, under the name of the field with "__" for each ".". The document frequencies
of MATRIX make the weights: "norms snapshot" writes them. ` + matrixHelp + `

Each document is updated in part, once: its _version and _seq_no go up, and ingest
pipelines do not run. One that somebody writes at the same time is left as it is written,
and done in another round. The exit status is 1 where documents are left after five
rounds, and where some fail. backfill can be stopped at any time; the same command goes on
from there.

With --follow it does not end: every --interval it looks at the documents that were
written since, also in part, and at indices that are new to --index. It ends with exit
status 0 at SIGTERM or SIGINT. Start one for each field, again when there are new weights,
and with --all after a time without it.

Refused are fields of nested documents, fields that others are copied to by copy_to, and
indices that do not keep the whole _source or lack the mapping, which is then printed.
docs/modes.md has the rest, docs/security.md the rights.

` + connect.Credentials

func newNormsBackfill() *cobra.Command {
	var f backfillFlags
	cmd := &cobra.Command{
		Use:   "backfill --cluster URL --index INDEX --field FIELD --weights MATRIX",
		Short: "Compute and store the lengths of the documents of an index", Long: backfillHelp,
		Example: `  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --dry-run
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --weights weights.akin --all --follow
  akin norms backfill --cluster http://127.0.0.1:9200 --index docs --field body --redis redis://127.0.0.1:6379 --weights docs-weights@active`,
		Args: terminal.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.checkAll(cmd.Flags().Changed("interval")); err != nil {
				return terminal.Usage(err)
			}
			return f.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	f.register(flags)
	f.redis.RegisterServer(cmd)
	flags.StringVar(&f.weights, "weights", "", "MATRIX of the weights (required)")
	flags.BoolVar(&f.all, "all", false, "compute all lengths again; documents that hold the right one are not written")
	flags.BoolVar(&f.dryRun, "dry-run", false, "count the documents to do, in each index, and write nothing")
	flags.BoolVar(&f.follow, "follow", false, "go on with the documents that are written later, until SIGTERM")
	flags.DurationVar(&f.interval, "interval", 10*time.Second, "time between two looks of --follow, 1s to 1h")
	return cmd
}

// checkAll returns all that is wrong with the flags. interval says that the
// interval was given.
func (f *backfillFlags) checkAll(interval bool) error {
	errs := f.check()
	if f.weights == "" {
		errs = append(errs, errors.New("give --weights MATRIX"))
	}
	if f.follow && f.dryRun {
		errs = append(errs, errors.New("--follow and --dry-run do not go together"))
	}
	if !f.follow && interval {
		errs = append(errs, errors.New("--interval is for --follow"))
	}
	if f.interval < minInterval || f.interval > maxInterval {
		errs = append(errs, fmt.Errorf("--interval: %v not in 1s to 1h", f.interval))
	}
	return errors.Join(errs...)
}

func (f *backfillFlags) run(ctx context.Context, stderr io.Writer) error {
	m, err := openMatrix(ctx, stderr, f.weights, &f.redis)
	if err != nil {
		return err
	}
	if m.Meta().MaxNeighbors > 0 {
		return fmt.Errorf("%s is a similarity matrix, not weights: its terms have neighbors, and its document frequencies need not be those of the index; "+
			"make weights of the index with: akin norms snapshot --cluster %s --index %s --field %s --out weights.akin", f.weights, f.URL, f.Index, f.field)
	}
	weights, err := norms.NewWeights(m)
	if err != nil {
		return fmt.Errorf("%s: %w", f.weights, err)
	}
	cluster, indices, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = cluster.Client.Close() }() // every write has been answered
	if err := f.checkMapping(ctx, cluster, f.Index, indices); err != nil {
		return err
	}
	if f.follow {
		return f.followIndex(ctx, cluster, weights, slog.New(slog.NewTextHandler(stderr, nil)))
	}
	query := norms.Missing(f.field, weights.ID())
	if f.all {
		query = norms.Missing(f.field, "")
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
	report.Tell("weights %s: %d documents to do", weights.ID(), docs)
	if !f.dryRun {
		if docs == 0 {
			return nil
		}
		return f.fill(ctx, cluster, weights, int(docs), report)
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

// checkMapping refuses to write what the engine would map as it sees fit.
// indices are those that the expression index stands for.
func (f *backfillFlags) checkMapping(ctx context.Context, cluster documents.API, index string, indices []string) error {
	lacking, err := cluster.NotStoring(ctx, index, indices, norms.NormPath(f.field), norms.WeightsPath(f.field))
	if err != nil || len(lacking) == 0 {
		return err
	}
	const named = 5
	names := strings.Join(lacking[:min(len(lacking), named)], ", ")
	if len(lacking) > named {
		names += fmt.Sprintf(" and %d more", len(lacking)-named)
	}
	return fmt.Errorf("%s: the mapping lacks what the lengths are stored in, or has it otherwise; put it first:\n  PUT /%s/_mapping\n  %s",
		names, index, norms.Mapping(f.field))
}

// maxFailuresShown is how many documents that fail are shown.
const maxFailuresShown = 10

func (f *backfillFlags) fill(ctx context.Context, cluster documents.API, weights *norms.Weights, docs int, report *terminal.Progress) error {
	shown := 0
	counts, err := backfill.Run(ctx, cluster, norms.Task(cluster, weights, f.field), backfill.Options{
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
	report.Tell("%d documents written, %d of them without terms; %d unchanged, %d deleted meanwhile, %d conflicts left, %d failed",
		counts.Written, counts.Empty, counts.Unchanged, counts.Gone, counts.Conflicts, counts.Failed)
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

// followIndex keeps the norms of the documents right until ctx ends.
func (f *backfillFlags) followIndex(ctx context.Context, cluster documents.API, weights *norms.Weights, log *slog.Logger) error {
	log = log.With("indices", f.Index, "field", f.field, "weights", weights.ID())
	log.InfoContext(ctx, "following", "interval", f.interval)
	told, skipped, first := time.Now(), map[string]string{}, true
	err := backfill.Follow(ctx, cluster, norms.Task(cluster, weights, f.field), backfill.FollowOptions{
		Options: backfill.Options{
			Index: f.Index, All: f.all, Workers: f.workers,
			Progress: func(_ string, done, _ int) {
				if time.Since(told) >= progressEvery {
					told = time.Now()
					log.InfoContext(ctx, "under way", "documents", done)
				}
			},
			OnFailure: func(doc documents.DocRef, err error) {
				log.WarnContext(ctx, "no norm until it is written again", "document", doc.ID, "index", doc.Index, "err", err)
			},
		},
		Interval: f.interval,
		Check: func(ctx context.Context, index string) error {
			indices, err := f.countable(ctx, cluster, index)
			if err == nil {
				err = f.checkMapping(ctx, cluster, index, indices)
			}
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
				log.InfoContext(ctx, "round", "written", n.Written, "without_terms", n.Empty, "unchanged", n.Unchanged,
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
